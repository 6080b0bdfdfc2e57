"""Trio-ML §6.3, Figure 15: latency and rate of aggregation by values in a packet."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from olaf.experiments import Chart, Column, Result, Row, Series, Spread, Table, Task
from olaf.experiments.trio import benchmark


class Parameters(benchmark.Servers):
    """Packets one after the other."""

    gradients: list[Annotated[int, Field(ge=1, le=2048)]] = Field(min_length=2)
    """Values in a packet."""
    packets: int = Field(ge=1)
    """Packets of a run, each after the result of the one before."""


def run(task: Task[Parameters]) -> Result:
    """Every number of values."""
    given = task.parameters
    latency: dict[int, float] = {}
    for gradients in given.gradients:
        task.say(f"seed {task.seeds[0]}: {gradients} values")
        job = given.aggregate(gradients, 1, given.packets)
        latency[gradients] = job.iteration_ns / 1e3 / given.packets
    # Nothing is drawn: one run counts for every seed.
    spreads = {gradients: Spread.of([one] * len(task.seeds)) for gradients, one in latency.items()}
    return Result(
        rows=rows(task, spreads), charts=[chart(task, spreads)], tables=[table(given, spreads)]
    )


def rates(spread: Spread, gradients: int) -> Spread:
    """Values in a microsecond."""
    return Spread.of([gradients / one for one in spread.values])


def rows(task: Task[Parameters], latency: dict[int, Spread]) -> list[Row]:
    """The printed latencies, and what sixteen times the values cost.

    The paper's are of the program in its switch, which takes no time here.
    """
    least, most = min(latency), max(latency)
    count = len(task.seeds)
    made = [
        Row(
            quantity="latency of a packet",
            where=f"{gradients} values",
            unit="us",
            paper=task.paper["latency_us"].get(str(gradients)),
            ours=one,
            headline=False,
            comparable=False,
        )
        for gradients, one in latency.items()
    ]
    factor = latency[most].mean / latency[least].mean
    made.append(
        Row(
            quantity="growth of the latency",
            where=f"from {least} to {most} values",
            paper=task.paper["growth"],
            ours=Spread.of([factor] * count),
            comparable=False,
        )
    )
    rate = [rates(latency[gradients], gradients) for gradients in (least, most)]
    made.append(
        Row(
            quantity="growth of the rate",
            where=f"from {least} to {most} values",
            paper=round(most / least / task.paper["growth"], 2),
            ours=Spread.of([rate[1].mean / rate[0].mean] * count),
            comparable=False,
            note="follows from the latencies",
        )
    )
    return made


def table(given: Parameters, latency: dict[int, Spread]) -> Table:
    """Every number of values."""
    return Table(
        title="Latency and rate",
        columns=[
            Column(name="values", digits=0),
            Column(name="latency, us", digits=3),
            Column(name="of it: values on two links, us", digits=3),
            Column(name="values a microsecond", digits=1),
        ],
        rows=[
            [gradients, one, 2 * given.frame_us(gradients), rates(one, gradients)]
            for gradients, one in latency.items()
        ],
        note="The rest of the latency is the delay of two links, and headers.",
    )


def chart(task: Task[Parameters], latency: dict[int, Spread]) -> Chart:
    """Ours, and the paper's two printed latencies."""
    theirs = [(float(gradients), us) for gradients, us in task.paper["latency_us"].items()]
    return Chart(
        title="Latency and rate of a packet, window of one",
        x="values in a packet",
        y="latency, us",
        right="values a microsecond",
        series=[
            Series(
                name="latency",
                points=[(float(gradients), one.mean) for gradients, one in latency.items()],
            ),
            Series(name="latency, paper", of="paper", points=theirs),
            Series(
                name="rate",
                points=[
                    (float(gradients), rates(one, gradients).mean)
                    for gradients, one in latency.items()
                ],
                right=True,
            ),
        ],
        y_scale="log",
        marked=True,
    )
