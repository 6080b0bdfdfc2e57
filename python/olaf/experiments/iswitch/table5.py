"""iSwitch §6.2, Table 5: asynchronous training, with real gradients in virtual time."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from olaf import experiments
from olaf.experiments import Baseline, Chart, Column, Result, Row, Series, Spread, Table, Task
from olaf.experiments.iswitch import asynchronous
from olaf.experiments.iswitch.asynchronous import Course, Times, Training
from olaf.experiments.iswitch.synchronous import compute_ms

APPROACHES = {"ps": "Async PS", "iswitch": "Async iSW"}
FRAME = 1538 / 1472
"""Bytes of a full frame, its preamble and gap over those of its datagram."""


class Model(experiments.Parameters):
    """One of the four benchmarks."""

    bytes: int = Field(gt=0)
    """Of a gradient (Table 1): how long a link needs for it."""
    mark: float
    """Mean reward of the last 20 episodes at which a training ends, on our small task."""
    most: int = Field(ge=1)
    """Iterations after which a training has failed."""


class Parameters(experiments.Parameters):
    """The cluster, and what it learns."""

    workers: int = Field(ge=2)
    """Workers, at one switch."""
    rate_gbit: float = Field(gt=0)
    """Rate of each link."""
    staleness: int = Field(ge=0)
    """Bound S, for both approaches."""
    compute_spread: float = Field(ge=0)
    """Standard deviation of the time to compute, as a share of its mean."""
    reduction: float = Field(gt=0, lt=1)
    """As in iswitch/table4, for the time to compute."""
    models: dict[str, Model] = Field(min_length=1)
    """The benchmarks, by the name of their algorithm."""


Runs = dict[str, dict[str, list[Course]]]
"""By model and approach, one course per seed."""


def run(task: Task[Parameters]) -> Result:
    """Train each model with both approaches."""
    runs = train_all(task)
    return Result(
        rows=[row for model in runs for row in rows(task, runs, model)],
        charts=[chart(task, runs)],
        tables=[table(runs), at_printed_times(task, runs)],
        notes=notes(runs),
    )


def train_all(task: Task[Parameters]) -> Runs:
    """One training for each model, approach and seed."""
    given = task.parameters
    runs: Runs = {model: {approach: [] for approach in APPROACHES} for model in given.models}
    for seed in task.each_seed():
        for model in given.models:
            for approach, name in APPROACHES.items():
                task.say(f"seed {seed}: {model}, {name}")
                runs[model][approach].append(train(given, task.paper, model, approach, seed))
    return runs


def train(
    given: Parameters, paper: Mapping[str, object], model: str, approach: str, seed: int
) -> Course:
    """One training, until its mark."""
    of = given.models[model]
    times = Times(
        compute_s=compute_ms(paper, model, given.reduction) / 1e3,
        vector_s=of.bytes * FRAME * 8 / (given.rate_gbit * 1e9),
        spread=given.compute_spread,
    )
    training = Training(model, given.workers, seed, of.mark, of.most)
    way = asynchronous.parameter_server if approach == "ps" else asynchronous.pipelined
    return way(training, times, given.staleness, seed)


def rows(task: Task[Parameters], runs: Runs, model: str) -> list[Row]:
    """Every number of the table that is of the network or of its effect."""
    paper = task.paper["table5"][model]
    ps, isw = runs[model]["ps"], runs[model]["iswitch"]
    speed = [a.seconds / b.seconds for a, b in zip(ps, isw, strict=True)]
    fewer = [100 * (1 - b.iterations / a.iterations) for a, b in zip(ps, isw, strict=True)]
    made = [
        Row(
            quantity="speed-up of asynchronous training",
            where=f"iSW, {model}",
            paper=paper["hours"][0] / paper["hours"][1],
            ours=Spread.of(speed),
            baseline=Baseline(name="Async PS", paper=1, ours=1),
        ),
        Row(
            quantity="fewer iterations to the mark",
            where=f"iSW, {model}",
            unit="%",
            paper=100 * (1 - paper["iterations"][1] / paper["iterations"][0]),
            ours=Spread.of(fewer),
            baseline=Baseline(name="Async PS", paper=0, ours=0),
        ),
    ]
    made += [
        Row(
            quantity="time of an iteration",
            where=f"{name}, {model}",
            unit="ms",
            paper=paper["iteration_ms"][at],
            ours=Spread.of([1e3 * course.iteration_s for course in runs[model][approach]]),
            headline=False,
        )
        for at, (approach, name) in enumerate(APPROACHES.items())
    ]
    return made


def table(runs: Runs) -> Table:
    """What the rows follow from, and how the gradients were used."""
    return Table(
        title="Until the mark",
        columns=[
            Column(name="model"),
            Column(name="approach"),
            Column(name="reached the mark"),
            Column(name="iterations", digits=0),
            Column(name="gradients", digits=0),
            Column(name="mean staleness, iterations", digits=2),
            Column(name="dropped as stale, %", digits=1),
            Column(name="virtual seconds", digits=1),
            Column(name="reward at the end", digits=0),
        ],
        rows=[
            [
                model,
                name,
                f"{sum(course.reached for course in courses)} of {len(courses)}",
                Spread.of([float(course.iterations) for course in courses]),
                Spread.of([float(course.gradients) for course in courses]),
                Spread.of([course.age for course in courses]),
                Spread.of([100 * c.stale / (c.stale + c.gradients) for c in courses]),
                Spread.of([course.seconds for course in courses]),
                Spread.of([course.reward for course in courses]),
            ]
            for model in runs
            for approach, name in APPROACHES.items()
            for courses in [runs[model][approach]]
        ],
        note=(
            "A run that did not reach the mark counts with all its iterations. Gradients are those "
            "that were applied: one an iteration with the parameter server, four with iSwitch."
        ),
    )


def at_printed_times(task: Task[Parameters], runs: Runs) -> Table:
    """Our iterations, if each took as long as the paper prints."""
    made: list[list[Spread | float | str | None]] = []
    for model, of in runs.items():
        paper = task.paper["table5"][model]
        ps_ms, isw_ms = paper["iteration_ms"]
        pairs = zip(of["ps"], of["iswitch"], strict=True)
        ours = [a.iterations * ps_ms / (b.iterations * isw_ms) for a, b in pairs]
        made.append([model, paper["hours"][0] / paper["hours"][1], Spread.of(ours)])
    return Table(
        title="Speed-up if an iteration took the paper's time",
        columns=[
            Column(name="model"),
            Column(name="paper", digits=2),
            Column(name="our iterations at the paper's times", digits=2),
        ],
        rows=made,
    )


def notes(runs: Runs) -> list[str]:
    """What a sceptic asks first: how many gradients the fewer iterations cost."""
    ratios = {
        model: Spread.of(
            [b.gradients / a.gradients for a, b in zip(of["ps"], of["iswitch"], strict=True)]
        ).mean
        for model, of in runs.items()
    }
    said = ", ".join(f"{model} {ratio:.2f}" for model, ratio in ratios.items())
    return [
        "An iteration of iSwitch applies the mean of four gradients, one of the parameter server a "
        f"single gradient. Gradients to the mark, iSwitch over the parameter server: {said}."
    ]


def chart(task: Task[Parameters], runs: Runs) -> Chart:
    """Speed-ups beside the paper's."""
    models = list(runs)
    ours = [rows(task, runs, model)[0] for model in models]
    return Chart(
        title="asynchronous iSwitch over the asynchronous parameter server",
        x="model",
        y="times as fast to the mark",
        kind="bars",
        series=[
            Series(
                name="paper",
                of="paper",
                points=[(float(at), float(row.paper or 0)) for at, row in enumerate(ours)],
            ),
            Series(
                name="ours",
                points=[(float(at), row.ours.mean) for at, row in enumerate(ours)],
            ),
        ],
        ticks=models,
        from_zero=True,
    )
