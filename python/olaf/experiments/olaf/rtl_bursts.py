"""The bursts of OLAF §8.1 through the verilated hardware, beside the software and the paper."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from olaf import _olaf
from olaf.drawing.charts import Chart
from olaf.errors.outcome import RunError
from olaf.experiments import Column, Row, Spread, Table, Task
from olaf.experiments.hardware import simulated
from olaf.experiments.olaf import fig6, table1
from olaf.experiments.olaf.bursts import Counts, Traffic, replay, write_trace

QUEUES = ("fifo", "olaf")


@dataclass
class Beside:
    """The same traffic through both, by rate and queue; one value a seed."""

    hardware: table1.Runs = field(default_factory=lambda: defaultdict(list))
    software: table1.Runs = field(default_factory=lambda: defaultdict(list))
    cycles: list[int] = field(default_factory=list)
    """Simulated cycles of each run of the hardware."""


def measure(
    task: Task[Any], built: Path, traffic: Traffic, slots: int, rates: Sequence[str]
) -> Beside:
    """Send each seed's traffic through the hardware and through `olaf replay`."""
    found = Beside()
    trace = task.scratch / "trace.csv"
    for seed in task.each_seed():
        write_trace(trace, traffic, seed)
        for rate in rates:
            for queue in QUEUES:
                bursts = settings(traffic, seed, rate, merging=queue == "olaf")
                told = simulated(built, {"bursts": bursts})
                found.hardware[rate, queue].append(counts(told, traffic, f"{queue} at {rate}"))
                found.cycles.append(told["cycles"])
                found.software[rate, queue].append(replay(trace, queue, slots, rate, full=True))
    return found


def settings(traffic: Traffic, seed: int, rate: str, *, merging: bool) -> dict[str, Any]:
    """The bursts that the program reads. Without merging every update is a flow of its own."""
    times, who = traffic.schedule(seed)
    return {
        "at_ns": times.tolist(),
        "worker": who.tolist(),
        "cluster": [traffic.cluster(worker) for worker in who.tolist()],
        "bytes": traffic.bytes,
        "rate_bps": _olaf.parse_rate(rate),
        "merging": merging,
        "seed": seed,
    }


def counts(told: Mapping[str, Any], traffic: Traffic, what: str) -> Counts:
    """What the program prints. Raises RunError if an update has no fate, or no time has passed."""
    if told["received"] + told["aggregated"] + told["dropped"] != traffic.total:
        raise RunError(f"{what}: the fates of {traffic.total} updates do not add up: {told}")
    if told["age_ns"] is None:
        raise RunError(f"{what}: at most one update departed: let there be more packets")
    return Counts(
        received=told["received"],
        aggregated=told["aggregated"],
        loss=told["dropped"] / traffic.total,
        age_ns=told["age_ns"],
        contributors=told["contributors"],
    )


def rows(found: Beside, paper: dict[str, Any]) -> list[Row]:
    """Table 1 through the hardware, and the mean of Figure 6."""
    made = table1.virtual_rows(found.hardware, paper)
    for (rate, queue), runs in found.hardware.items():
        if queue == "olaf":
            made.append(fig6.mean_row(rate, runs, paper, ""))
    return made


def tables(found: Beside, paper: dict[str, Any]) -> list[Table]:
    """Table 1 and the mean of Figure 6: the paper, the software, the hardware."""
    lines: list[list[Spread | float | str | None]] = []
    for (rate, queue), runs in found.hardware.items():
        where = f"{queue.upper()}, {rate.replace('gbit', ' Gbit/s')}"
        for name, label in _QUANTITIES.items():
            if queue == "fifo" and name in ("aggregated", "mean"):
                continue
            printed = paper.get(f"{name}_{queue}_{rate.removesuffix('gbit')}")
            if name == "mean":
                printed = paper.get(f"mean_{rate.removesuffix('gbit')}")
            both = (_of(name, found.software[rate, queue]), _of(name, runs))
            lines.append([label, where, printed, *both])
    return [
        Table(
            title="Table 1 and the mean of Figure 6: paper, software, hardware",
            columns=[
                Column(name="quantity"),
                Column(name="where"),
                Column(name="paper"),
                Column(name="software (`olaf replay`)"),
                Column(name="hardware (RTL)"),
            ],
            rows=lines,
            note="Software and hardware get the same packets at the same nanoseconds. The hardware "
            "decides about a packet some cycles after its last beat is in. A merged entry waits "
            "for its mean reward, which is there 18 cycles after its last update was decided "
            "about: where an entry is locked shortly after a merge, the link is idle meanwhile.",
        )
    ]


_QUANTITIES = {
    "received": "updates received",
    "aggregated": "updates aggregated",
    "loss": "update loss, %",
    "age": "average AoM, µs",
    "mean": "updates for each outgoing one, mean",
}


def _of(name: str, runs: Sequence[Counts]) -> Spread:
    of: dict[str, Callable[[Counts], float]] = {
        "received": lambda one: float(one.received),
        "aggregated": lambda one: float(one.aggregated),
        "loss": lambda one: 100 * one.loss,
        "age": lambda one: one.age_ns / 1000,
        "mean": lambda one: (one.received + one.aggregated) / one.received,
    }
    return Spread.of([of[name](one) for one in runs])


def charts(found: Beside) -> list[Chart]:
    """Figure 6 through the hardware and through the software."""
    made = []
    for name, runs in (("hardware", found.hardware), ("software", found.software)):
        merged = {rate: many for (rate, queue), many in runs.items() if queue == "olaf"}
        drawn = fig6.chart(merged)
        made.append(drawn.model_copy(update={"title": f"{drawn.title}, {name}"}))
    return made
