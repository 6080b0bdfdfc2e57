"""iSwitch §6.1, Table 4: hours of synchronous training, in virtual time."""

from __future__ import annotations

from olaf.experiments import Chart, Column, Result, Row, Series, Spread, Table, Task
from olaf.experiments.iswitch.synchronous import (
    APPROACHES,
    S_PER_HOUR,
    Cluster,
    Runs,
    iteration_ms,
    train_all,
)

Parameters = Cluster

USED = ("PS", "iSW")
"""The time to compute follows from the hours of these two approaches."""


def run(task: Task[Cluster]) -> Result:
    """Train each model with each approach."""
    runs = train_all(task)
    return Result(rows=rows(task, runs), charts=[chart(task, runs)], tables=[table(task, runs)])


def hours(task: Task[Cluster], runs: Runs, model: str, engine: str) -> Spread:
    """The paper's number of iterations, at our time of an iteration."""
    iterations = task.paper["table4"][model]["iterations"]
    return Spread.of(
        [iterations * jobs[engine].iteration_ns / 1e9 / S_PER_HOUR for jobs in runs[model]]
    )


def rows(task: Task[Cluster], runs: Runs) -> list[Row]:
    """Every cell of the table's second line."""
    return [
        Row(
            quantity="hours of training",
            where=f"{name}, {model}",
            unit="h",
            paper=task.paper["table4"][model][name],
            ours=hours(task, runs, model, engine),
            fitted="time to compute" if name in USED else "",
            headline=name not in USED,
        )
        for model in runs
        for engine, name in APPROACHES.items()
    ]


def table(task: Task[Cluster], runs: Runs) -> Table:
    """Hours as iterations."""
    return Table(
        title="Time of an iteration, ms",
        columns=[
            Column(name="model"),
            Column(name="iterations in the paper", digits=0),
            Column(name="approach"),
            Column(name="ours", digits=3),
            Column(name="hours over iterations, paper", digits=3),
        ],
        rows=[
            [
                model,
                task.paper["table4"][model]["iterations"],
                name,
                Spread.of([jobs[engine].iteration_ns / 1e6 for jobs in runs[model]]),
                iteration_ms(task.paper, model, name),
            ]
            for model in runs
            for engine, name in APPROACHES.items()
        ],
    )


def chart(task: Task[Cluster], runs: Runs) -> Chart:
    """Our hours over the paper's."""
    models = list(runs)
    return Chart(
        title="hours of training, over the paper's",
        x="model",
        y="times",
        kind="bars",
        series=[
            Series(
                name=name,
                points=[
                    (
                        float(at),
                        hours(task, runs, model, engine).mean / task.paper["table4"][model][name],
                    )
                    for at, model in enumerate(models)
                ],
            )
            for engine, name in APPROACHES.items()
        ],
        ticks=models,
        from_zero=True,
    )
