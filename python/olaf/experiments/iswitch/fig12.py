"""iSwitch §6.1, Figure 12: the time of an iteration and its parts, in virtual time."""

from __future__ import annotations

from collections.abc import Callable

from olaf.experiments import (
    Baseline,
    Bound,
    Chart,
    Column,
    Result,
    Row,
    Series,
    Spread,
    Table,
    Task,
)
from olaf.experiments.iswitch.synchronous import (
    APPROACHES,
    Cluster,
    Runs,
    aggregation_ms,
    all_ready_at_once,
    ends,
    iteration_ms,
    train_all,
)
from olaf.scenarios.sums import Job

Parameters = Cluster

PARTS: dict[str, Callable[[Job], float]] = {
    "compute": lambda job: job.compute_ns,
    "wait": lambda job: job.wait_ns,
    "sum": lambda job: job.aggregation_ns,
    "iteration": lambda job: job.iteration_ns,
}
"""The parts of an iteration, and the whole, nanoseconds."""


def run(task: Task[Cluster]) -> Result:
    """Train each model with each approach."""
    runs = train_all(task)
    return Result(
        rows=[
            *shorter(task, runs, "iteration"),
            *shorter(task, all_ready_at_once(task), "aggregation"),
        ],
        charts=[chart(task, runs)],
        tables=[table(task, runs)],
        bounds=bounds(runs),
    )


def shorter(task: Task[Cluster], runs: Runs, what: str) -> list[Row]:
    """By how much iSwitch's iteration, or its aggregation, is shorter than another approach's."""
    part = PARTS["iteration" if what == "iteration" else "sum"]
    made = []
    for engine, name in APPROACHES.items():
        if name not in task.paper[what]:
            continue

        def reduction(jobs: dict[str, Job], engine: str = engine) -> float:
            return 100 * (1 - part(jobs["iswitch"]) / part(jobs[engine]))

        both = zip(("least", "most"), ends(runs, reduction), task.paper[what][name], strict=True)
        made += [
            Row(
                quantity=f"{what} shorter than {name}'s",
                where=f"the {end} of the models",
                unit="%",
                paper=paper,
                ours=ours,
                baseline=Baseline(name=name, paper=0, ours=0),
            )
            for end, ours, paper in both
        ]
    return made


def of_ps(runs: Runs, model: str, engine: str, part: str) -> Spread:
    """A part of an iteration, in percent of the parameter server's iteration."""
    of = PARTS[part]
    return Spread.of([100 * of(jobs[engine]) / jobs["ps"].iteration_ns for jobs in runs[model]])


def table(task: Task[Cluster], runs: Runs) -> Table:
    """Every bar of the figure, and the bars that follow from the paper's Table 4 and §6.1."""
    paper, reduction = task.paper, task.parameters.reduction
    return Table(
        title="Parts of an iteration, % of the parameter server's iteration",
        columns=[
            Column(name="model"),
            Column(name="approach"),
            *(Column(name=part, digits=2) for part in PARTS),
            Column(name="wait and sum, from the paper's times", digits=1),
            Column(name="iteration, from the paper's times", digits=1),
        ],
        rows=[
            [
                model,
                name,
                *(of_ps(runs, model, engine, part) for part in PARTS),
                100
                * aggregation_ms(paper, model, name, reduction)
                / iteration_ms(paper, model, "PS"),
                100 * iteration_ms(paper, model, name) / iteration_ms(paper, model, "PS"),
            ]
            for model in runs
            for engine, name in APPROACHES.items()
        ],
        note=(
            "wait: from a worker's gradient to the slowest worker's; sum: from then on. The last "
            "two columns follow from Table 4's hours and §6.1, as in iswitch/table3: the bars of "
            "the paper's figure have no numbers."
        ),
    )


def chart(task: Task[Cluster], runs: Runs) -> Chart:
    """Iterations of each approach beside the parameter server's, and the paper's."""
    paper = task.paper
    models = list(runs)
    series = []
    for engine, name in APPROACHES.items():
        if engine == "ps":
            continue
        ours = [of_ps(runs, model, engine, "iteration").mean for model in models]
        theirs = [
            100 * iteration_ms(paper, model, name) / iteration_ms(paper, model, "PS")
            for model in models
        ]
        series += [
            Series(name=name, points=[(float(at), one) for at, one in enumerate(ours)]),
            Series(
                name=f"{name}, from the paper's hours",
                of="paper",
                points=[(float(at), one) for at, one in enumerate(theirs)],
            ),
        ]
    compute = [of_ps(runs, model, "ps", "compute").mean for model in models]
    computing = Series(
        name="computation alone", points=[(float(at), one) for at, one in enumerate(compute)]
    )
    return Chart(
        title="time of an iteration",
        x="model",
        y="% of the parameter server's",
        kind="bars",
        series=[*series, computing],
        ticks=models,
        from_zero=True,
    )


def bounds(runs: Runs) -> list[Bound]:
    """What no network could be faster than."""
    return [
        Bound(
            quantity=f"iteration shorter than PS's, {model}",
            value=100 - of_ps(runs, model, "ps", "compute").mean,
            unit="%",
            why="without any network an iteration takes its computation",
        )
        for model in runs
    ]
