"""Trio-ML §6.3, Figure 16: latency and throughput by window, with 512 and 1,024 values."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

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
from olaf.experiments.trio import benchmark
from olaf.experiments.trio.testbed import FLOAT_BYTES


class Parameters(benchmark.Servers):
    """Packets through a window, scaled."""

    gradients: list[Annotated[int, Field(ge=1, le=2048)]] = Field(min_length=1)
    """Values in a packet."""
    windows: list[Annotated[int, Field(ge=1, le=65_535)]] = Field(min_length=2)
    """Packets on their way, before they are divided."""
    printed: int = Field(ge=1)
    """The paper's choice among the windows."""
    scale: int = Field(ge=1)
    """What windows and rate are divided by."""
    rounds: int = Field(ge=2)
    """Packets of a run, in windows."""
    least_packets: int = Field(ge=1)
    """Packets of a run at least."""


Measured = dict[tuple[int, int], tuple[float, float, int]]
"""By values and window: latency of a packet in us, throughput in Gbit/s, packets sent again."""


def run(task: Task[Parameters]) -> Result:
    """Every window, with each number of values."""
    given = task.parameters
    measured: Measured = {}
    for gradients in given.gradients:
        for window in given.windows:
            task.say(f"seed {task.seeds[0]}: {gradients} values, window of {window}")
            measured[gradients, window] = measure(given, gradients, window)
    return Result(
        rows=rows(task, measured),
        charts=[chart(given, measured, "latency"), chart(given, measured, "throughput")],
        tables=[table(given, measured)],
        bounds=[bound(given)],
    )


def measure(given: Parameters, gradients: int, window: int) -> tuple[float, float, int]:
    """A run: latency in us, throughput in Gbit/s of the link without scaling, packets again."""
    own = max(1, window // given.scale)
    packets = max(given.rounds * own, given.least_packets)
    job = given.aggregate(gradients, own, packets, scale=given.scale)
    # A window of packets is always on its way: each one takes the time in which that many end.
    latency_us = own * job.iteration_ns / packets / 1e3
    throughput = packets * gradients * FLOAT_BYTES * 8 / job.iteration_ns * given.scale
    return latency_us, throughput, job.resent


def spread(task: Task[Parameters], value: float) -> Spread:
    """Nothing is drawn: one run counts for every seed."""
    return Spread.of([value] * len(task.seeds))


def rows(task: Task[Parameters], measured: Measured) -> list[Row]:
    """A larger window against the smallest, and the paper's choice against the largest."""
    given = task.parameters
    first, last = min(given.windows), max(given.windows)
    made = []
    for gradients in given.gradients:
        for at, what in enumerate(("latency", "throughput")):
            small = spread(task, measured[gradients, first][at])
            made.append(
                Row(
                    quantity=f"{what}, window of {given.printed}",
                    where=f"{gradients} values",
                    unit=("us", "Gbit/s")[at],
                    ours=spread(task, measured[gradients, given.printed][at]),
                    baseline=Baseline(name=f"window of {first}", ours=small),
                    direction="above",
                )
            )
        of_printed, of_last = (measured[gradients, window][1] for window in (given.printed, last))
        made.append(
            Row(
                quantity=f"throughput of a window of {given.printed} over one of {last}",
                where=f"{gradients} values",
                ours=spread(task, of_printed / of_last),
                note="the paper: a good balance",
                headline=False,
            )
        )
    return made


def bound(given: Parameters) -> Bound:
    """What the paper's engines can add."""
    return Bound(
        quantity="throughput",
        value=6e9 / given.servers * FLOAT_BYTES * 8 / 1e9,
        unit="Gbit/s",
        why=(
            f"the paper's chip adds six billion values a second (§6.3), from {given.servers} "
            "servers; here only links limit"
        ),
    )


def table(given: Parameters, measured: Measured) -> Table:
    """Every window."""
    return Table(
        title="Every window",
        columns=[
            Column(name="values", digits=0),
            Column(name="window", digits=0),
            Column(name="latency of a packet, us", digits=1),
            Column(name="throughput, Gbit/s", digits=2),
            Column(name="sent again", digits=0),
        ],
        rows=[
            [gradients, window, latency, throughput, again]
            for (gradients, window), (latency, throughput, again) in measured.items()
        ],
        note=(
            f"Windows and rate are divided by {given.scale}; throughput is multiplied again. "
            "Throughput counts values, without headers."
        ),
    )


def chart(given: Parameters, measured: Measured, what: str) -> Chart:
    """A line for each number of values."""
    at = ("latency", "throughput").index(what)
    return Chart(
        name="" if at == 0 else what,
        title=f"{what.capitalize()} by window",
        x="window, packets",
        y=("latency of a packet, us", "throughput, Gbit/s")[at],
        series=[
            Series(
                name=f"{gradients} values",
                points=[
                    (float(window), measured[gradients, window][at]) for window in given.windows
                ],
            )
            for gradients in given.gradients
        ],
        x_scale="log",
        y_scale="log" if at == 0 else "linear",
        from_zero=at == 1,
        marked=True,
    )
