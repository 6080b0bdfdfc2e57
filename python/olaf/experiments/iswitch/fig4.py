"""iSwitch §2.3, Figure 4: the share of aggregation in an iteration with PS and AR."""

from __future__ import annotations

from olaf.experiments import Chart, Column, Result, Row, Series, Spread, Table, Task
from olaf.experiments.iswitch.synchronous import (
    APPROACHES,
    Cluster,
    aggregation_ms,
    iteration_ms,
    measure,
    share,
)
from olaf.scenarios.sums import Job

BASELINES = ("ps", "ring")


Parameters = Cluster


def run(task: Task[Cluster]) -> Result:
    """Train each model with both approaches."""
    given = task.parameters
    shares: dict[tuple[str, str], list[float]] = {}
    for seed in task.each_seed():
        for model in given.models:
            task.say(f"seed {seed}: {model}")
            racks = [given.workers]
            jobs: dict[str, Job] = measure(
                given, task.paper, model, racks, seed=seed, engines=BASELINES
            )
            for engine, job in jobs.items():
                shares.setdefault((model, engine), []).append(share(job))
    return Result(
        rows=rows(task, shares), charts=[chart(task, shares)], tables=[table(task, shares)]
    )


def rows(task: Task[Cluster], shares: dict[tuple[str, str], list[float]]) -> list[Row]:
    """The ends of the paper's range, and each bar, which is drawn without a number."""
    seeds = list(zip(*shares.values(), strict=True))
    low, high = task.paper["share"]
    ends = [("the least of all bars", min, low), ("the most of all bars", max, high)]
    made = [
        Row(
            quantity="share of aggregation",
            where=where,
            unit="%",
            paper=paper,
            ours=Spread.of([end(seed) for seed in seeds]),
        )
        for where, end, paper in ends
    ]
    made += [
        Row(
            quantity="share of aggregation",
            where=f"{APPROACHES[engine]}, {model}",
            unit="%",
            ours=Spread.of(values),
            headline=False,
        )
        for (model, engine), values in shares.items()
    ]
    return made


def implied(task: Task[Cluster], model: str, engine: str) -> float:
    """The paper's share that follows from its Table 4 and §6.1."""
    name = APPROACHES[engine]
    took = aggregation_ms(task.paper, model, name, task.parameters.reduction)
    return 100 * took / iteration_ms(task.paper, model, name)


def table(task: Task[Cluster], shares: dict[tuple[str, str], list[float]]) -> Table:
    """Our shares beside what follows from the paper's other numbers."""
    return Table(
        title="Share of aggregation in an iteration, %",
        columns=[
            Column(name="model"),
            Column(name="approach"),
            Column(name="ours", digits=1),
            Column(name="from the paper's Table 4 and §6.1", digits=1),
        ],
        rows=[
            [model, APPROACHES[engine], Spread.of(values), implied(task, model, engine)]
            for (model, engine), values in shares.items()
        ],
        note="The bars of the paper's figure have no numbers. All of them are from 49.9 to 83.2 %.",
    )


def chart(task: Task[Cluster], shares: dict[tuple[str, str], list[float]]) -> Chart:
    """Ours beside what follows from the paper."""
    models = list(task.parameters.models)
    series = []
    for engine in BASELINES:
        name = APPROACHES[engine]
        ours = [Spread.of(shares[model, engine]).mean for model in models]
        theirs = [implied(task, model, engine) for model in models]
        series += [
            Series(name=name, points=[(float(at), one) for at, one in enumerate(ours)]),
            Series(
                name=f"{name}, from the paper's times",
                of="paper",
                points=[(float(at), one) for at, one in enumerate(theirs)],
            ),
        ]
    return Chart(
        title="share of aggregation in an iteration",
        x="model",
        y="%",
        kind="bars",
        series=series,
        ticks=models,
        from_zero=True,
    )
