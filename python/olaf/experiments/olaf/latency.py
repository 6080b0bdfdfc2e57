"""OLAF §12.1: the time of an update in the switch's engine and through a switch process."""

from __future__ import annotations

import json
import statistics
import time
from typing import TYPE_CHECKING

from pydantic import Field

from olaf import experiments
from olaf.errors.outcome import Exit, RunError
from olaf.experiments import Chart, Result, Row, Series, Spread, Task
from olaf.experiments.benches import measured, program
from olaf.experiments.processes import Roles

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

IP_AND_UDP = 28
HEADER = 96
"""Bytes of an update before its lanes, see ``crates/olaf-wire/src/offsets.rs``."""

NO_ENGINE = (
    "The rows of the engine alone are missing: its benchmark needs a checkout of Olaf and cargo."
)


class Parameters(experiments.Parameters):
    """The settings of the timings."""

    packet_bytes: list[int] = Field(min_length=1)
    """Sizes of IP packets in bytes."""
    merged: list[int] = Field(min_length=1)
    """Numbers of updates that leave the engine as one; 1 only forwards."""
    batches: int = Field(ge=1)
    """Batches of 64 departures per repetition, in the engine."""
    round_trips: int = Field(ge=1)
    """Round trips per repetition, with and without the switch process."""
    warm_up: int = Field(ge=0)
    """Round trips of the warm-up."""
    timeout_s: float = Field(gt=0)
    """Time limit for an answer."""


def run(task: Task[Parameters]) -> Result:
    """Time the engine and the process; a seed is a repetition."""
    given = task.parameters
    task.say("building the benchmark of the engine")
    bench = program("olaf-engine", "departures")
    engine: dict[tuple[int, int], list[float]] = {}
    process: dict[tuple[int, str], list[float]] = {}
    for seed in task.each_seed():
        for size in given.packet_bytes:
            if bench is not None:
                for merged in given.merged:
                    taken = engine_ns(bench, lanes_of(size), merged, given.batches)
                    engine.setdefault((size, merged), []).append(taken)
            task.say(f"seed {seed}: {size} bytes, through processes")
            for way, micros in round_trips_us(lanes_of(size), given).items():
                process.setdefault((size, way), []).append(micros)
    return Result(
        rows=[*engine_rows(engine, task.paper), *process_rows(process, task.paper)],
        charts=[engine_chart(engine, task.paper) if engine else process_chart(process)],
        notes=[
            *([] if engine else [NO_ENGINE]),
            "Load on the machine lengthens the tail of the round trips, and less the medians. A "
            "switch that is busy takes several datagrams with one system call, so that its rate "
            "is far above one over this time: see `make bench`.",
        ],
    )


def lanes_of(packet_bytes: int) -> int:
    """Parameters in an update of this many bytes. Raises RunError if none fits."""
    lanes = (packet_bytes - IP_AND_UDP - HEADER) // 4
    if lanes < 1:
        raise RunError(f"packet_bytes = {packet_bytes}: at least {IP_AND_UDP + HEADER + 4}",
                       Exit.USAGE)  # fmt: skip
    return lanes


def engine_ns(bench: Path, lanes: int, merged: int, batches: int) -> float:
    """Nanoseconds per update in the engine, the median over batches."""
    told = measured(bench, {"lanes": lanes, "merged": merged, "batches": batches})
    times: list[float] = told["ns_per_update"]
    return statistics.median(times)


def round_trips_us(lanes: int, given: Parameters) -> dict[str, float]:
    """Median microseconds from push to model: ``direct`` and ``switch``, and ``added``."""
    with Roles() as roles:
        server = roles.start("server")
        switch = roles.start("switch", upstream=server)
        took = {
            "direct": median_us(server, 1, lanes, given),
            "switch": median_us(switch, 2, lanes, given),
        }
    return took | {"added": took["switch"] - took["direct"]}


def median_us(address: str, job: int, lanes: int, given: Parameters) -> float:
    """The median round trip of one worker with the listener at this address."""
    import numpy as np

    from olaf._olaf import Client

    client = Client(
        address, job=job, cluster=0, worker=0, config=json.dumps({"segment_lanes": lanes})
    )
    model, update = [np.zeros(lanes, np.float32)], [np.full(lanes, 1e-6, np.float32)]
    took: list[float] = []
    try:
        version = client.join(model, given.timeout_s)
        for turn in range(given.warm_up + given.round_trips):
            began = time.perf_counter_ns()
            client.push(update, reward=0.0)
            newer = client.wait(version, given.timeout_s)
            ended = time.perf_counter_ns()
            if newer is None:
                raise RunError(
                    f"no answer from {address} within {given.timeout_s:g} s", Exit.UNREACHABLE
                )
            version = newer
            if turn >= given.warm_up:
                took.append((ended - began) / 1e3)
    finally:
        client.leave()
    return statistics.median(took)


def engine_rows(
    engine: dict[tuple[int, int], list[float]], paper: dict[str, float]
) -> Sequence[Row]:
    """A row for each size and number of merged updates."""
    return [
        Row(
            quantity="time per update, engine alone",
            where=f"{size:,} bytes, {'passed on' if merged == 1 else f'{merged} merged into one'}",
            unit="ns",
            paper=paper.get(str(size)),
            ours=Spread.of(values),
        )
        for (size, merged), values in engine.items()
    ]


def process_rows(
    process: dict[tuple[int, str], list[float]], paper: dict[str, float]
) -> Sequence[Row]:
    """The time that the process adds beside the paper's number, and both round trips."""
    words = {
        "added": "added by the switch process, update up and model down",
        "direct": "round trip without a switch",
        "switch": "round trip through the switch",
    }
    return [
        Row(
            quantity=words[way],
            where=f"{size:,} bytes",
            unit="ns" if way == "added" else "µs",
            paper=paper.get(str(size)) if way == "added" else None,
            ours=Spread.of([value * 1e3 for value in values] if way == "added" else values),
            headline=way == "added",
        )
        for (size, way), values in sorted(
            process.items(), key=lambda item: (item[0][0], list(words).index(item[0][1]))
        )
    ]


def engine_chart(engine: dict[tuple[int, int], list[float]], paper: dict[str, float]) -> Chart:
    """Bars: the FPGA's time and the engine's, by size."""
    sizes = sorted({size for size, _ in engine})
    series = []
    known = [(float(at), paper[str(size)]) for at, size in enumerate(sizes) if str(size) in paper]
    if known:
        series.append(Series(name="FPGA (paper)", of="paper", points=known))
    for merged in sorted({merged for _, merged in engine}):
        name = "engine, passed on" if merged == 1 else f"engine, {merged} merged"
        series.append(bars(name, [Spread.of(engine[size, merged]) for size in sizes]))
    return Chart(
        title="Time per update, engine alone", x="IP packet, bytes", y="ns", kind="bars",
        series=series, ticks=[f"{size:,}" for size in sizes], from_zero=True,
    )  # fmt: skip


def process_chart(process: dict[tuple[int, str], list[float]]) -> Chart:
    """Bars: both round trips, by size."""
    sizes = sorted({size for size, _ in process})
    names = {"direct": "without a switch", "switch": "through the switch"}
    series = [
        bars(name, [Spread.of(process[size, way]) for size in sizes]) for way, name in names.items()
    ]
    return Chart(
        title="Round trip of an update", x="IP packet, bytes", y="µs", kind="bars",
        series=series, ticks=[f"{size:,}" for size in sizes], from_zero=True,
    )  # fmt: skip


def bars(name: str, spreads: list[Spread]) -> Series:
    """Bars of one name, one for each size, with their spread."""
    return Series(
        name=name,
        points=[(float(at), spread.mean) for at, spread in enumerate(spreads)],
        low=[spread.low for spread in spreads],
        high=[spread.high for spread in spreads],
    )
