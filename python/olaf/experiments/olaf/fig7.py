"""OLAF §8.2, Figure 7: how much sooner OLAF delivers N updates of each worker."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import Field

from olaf import experiments
from olaf.errors.outcome import Exit, RunError
from olaf.experiments import Baseline, Bound, Chart, Result, Row, Spread, Task
from olaf.experiments.training import band

QUEUES = ("fifo", "olaf")


class Parameters(experiments.Parameters):
    """Workers, queue and link."""

    trace: str
    """File by `olaf train --record`; `package` is the record that comes with olaf."""
    clusters: int = Field(ge=1)
    """Number of clusters, each a flow at the switch."""
    workers_per_cluster: int = Field(ge=1)
    """Number of workers in each cluster."""
    wanted: int = Field(ge=1)
    """Number of updates of each worker to deliver: the paper's N."""
    slots: int = Field(ge=1)
    """Number of updates that the queue holds."""
    shares: list[float] = Field(min_length=1)
    """The uplink's rate divided by the offered rate."""
    resend_queues: float = Field(gt=0)
    """A worker sends again after this multiple of the time to empty a full queue, or up to twice
    that, drawn each time."""
    answer_delay_ms: float = Field(ge=0)
    """Delay from the last bit of a departure to the answer at its workers."""
    limit: float = Field(gt=1)
    """A run fails after this multiple of the sum of FIFO's shortest time and the slowest worker's
    own time."""


def run(task: Task[Parameters]) -> Result:
    """Simulate each share with both queues; a seed draws the workers' start in the record."""
    given = task.parameters
    intervals, packet_bytes = recorded = read_trace(given.trace)
    offered = offered_bps(intervals, packet_bytes, given)
    done: dict[tuple[str, float], list[float]] = {}
    for seed in task.each_seed():
        for share in given.shares:
            for queue in QUEUES:
                outcome = deliver(recorded, given, seed=seed, queue=queue, rate_bps=share * offered)
                done.setdefault((queue, share), []).append(outcome["done_ns"] / 1e9)
    speedups = {
        share: [a / b for a, b in zip(done["fifo", share], done["olaf", share], strict=True)]
        for share in given.shares
    }
    shares, seeds = sorted(given.shares), range(len(task.seeds))
    return Result(
        rows=[*speedup_rows(speedups), trend_row(speedups), *time_rows(done, given)],
        charts=[
            Chart(
                title="How much sooner the server has N updates of each worker",
                x="uplink, share of the offered rate", y="time under FIFO / under OLAF",
                series=[
                    band(
                        "OLAF over FIFO",
                        [[(share, speedups[share][n]) for share in shares] for n in seeds],
                    )
                ],
            ),
            Chart(
                name="time", title="Time until the server has N updates of each worker",
                x="uplink, share of the offered rate", y="simulated seconds", y_scale="log",
                series=[
                    band(
                        queue.upper(),
                        [[(share, done[queue, share][n]) for share in shares] for n in seeds],
                    )
                    for queue in QUEUES
                ],
            ),
        ],
        notes=[
            f"The workers offer {offered / 1e6:,.0f} Mbit/s together: {len(intervals)} recorded "
            f"workers with an update of {packet_bytes:,} bytes each "
            f"{sum(map(sum, intervals)) / sum(map(len, intervals)) / 1e6:,.0f} ms on average."
        ],
        bounds=[
            Bound(
                quantity=f"FIFO, at a share of {share:g}: at least",
                value=least_s(given, packet_bytes, share * offered),
                unit="s",
                why="Each of the updates that the server is to have takes the link once.",
            )
            for share in shares
        ],
    )  # fmt: skip


def least_s(given: Parameters, packet_bytes: int, rate_bps: float) -> float:
    """Seconds of the link for this many separate updates."""
    return workers(given) * given.wanted * packet_bytes * 8 / rate_bps


def workers(given: Parameters) -> int:
    """Number of workers."""
    return given.clusters * given.workers_per_cluster


def read_trace(name: str) -> tuple[list[list[int]], int]:
    """Each recorded worker's intervals in ns, in order, and an update's bytes."""
    try:
        if name == "package":
            place = resources.files("olaf.experiments.olaf").joinpath("trace.csv")
            text = place.read_text(encoding="utf-8")
        else:
            text = Path(name).read_text(encoding="utf-8")
        rows = [
            (int(row["worker"]), int(row["t_ns"]), int(row["bytes"]))
            for row in csv.DictReader(text.splitlines())
        ]
    except OSError as error:
        raise RunError(f"trace = {name!r}: {error.strerror}", Exit.USAGE) from None
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"trace = {name!r}: not a trace: {error}", Exit.USAGE) from None
    times: dict[int, list[int]] = {}
    for worker, at_ns, _ in rows:
        times.setdefault(worker, []).append(at_ns)
    intervals = [[max(b - a, 1) for a, b in pairs(own)] for own in times.values() if len(own) > 1]
    if not intervals:
        raise RunError(f"trace = {name!r}: no worker pushed twice", Exit.USAGE)
    return intervals, max(size for *_, size in rows)


def pairs(times: list[int]) -> Iterable[tuple[int, int]]:
    """Each time with the next, in order."""
    ordered = sorted(times)
    return pairwise(ordered)


def offered_bps(intervals: list[list[int]], packet_bytes: int, given: Parameters) -> float:
    """Bits that all workers push per second at the pace of their records."""
    count = workers(given)
    per_s = sum(
        1e9 * len(own) / sum(own) for own in (intervals[n % len(intervals)] for n in range(count))
    )
    return per_s * packet_bytes * 8


def deliver(
    recorded: tuple[list[list[int]], int],
    given: Parameters,
    *,
    seed: int,
    queue: str,
    rate_bps: float,
) -> dict[str, Any]:
    """One run in virtual time. Raises RunError if it reaches the limit."""
    from olaf._olaf import deliver as simulate

    intervals, packet_bytes = recorded
    delay_ns = int(given.answer_delay_ms * 1e6)
    # On a wide link, the workers' own pace takes the time.
    rhythm_ns = max(given.wanted * sum(own) / len(own) + max(own) for own in intervals)
    limit_s = given.limit * (least_s(given, packet_bytes, rate_bps) + rhythm_ns / 1e9)
    full_ns = given.slots * packet_bytes * 8e9 / rate_bps
    again = int(given.resend_queues * full_ns) + delay_ns
    spec = {
        "seed": seed,
        "queue": queue,
        "slots": given.slots,
        "rate_bps": int(rate_bps),
        "packet_bytes": packet_bytes,
        "clusters": given.clusters,
        "workers": given.workers_per_cluster,
        "wanted": given.wanted,
        "intervals_ns": intervals,
        "answer_delay_ns": delay_ns,
        "resend_after_ns": again,
        "resend_spread_ns": again,
        "limit_ns": int(limit_s * 1e9),
    }
    outcome: dict[str, Any] = json.loads(simulate(json.dumps(spec)))
    if outcome["done_ns"] is None:
        have = len(outcome["worker_done_ns"])
        raise RunError(
            f"{queue} at {rate_bps / 1e6:.1f} Mbit/s: after {limit_s:.0f} s only {have} of "
            f"{workers(given)} workers had {given.wanted} updates at the server; raise limit"
        )
    return outcome


def speedup_rows(speedups: dict[float, list[float]]) -> Iterable[Row]:
    """The paper's ratio, at each share."""
    return [
        Row(
            quantity="time under FIFO / under OLAF",
            where=f"uplink {share:g} of the offered rate",
            ours=Spread.of(values),
            baseline=Baseline(name="1", ours=1.0),
            direction="above",
        )
        for share, values in sorted(speedups.items(), reverse=True)
    ]


def trend_row(speedups: dict[float, list[float]]) -> Row:
    """Whether the ratio grows as the link narrows."""
    narrow, wide = min(speedups), max(speedups)
    return Row(
        quantity="speed-up at the narrowest uplink / at the widest",
        where=f"{narrow:g} against {wide:g} of the offered rate",
        ours=Spread.of([a / b for a, b in zip(speedups[narrow], speedups[wide], strict=True)]),
        baseline=Baseline(name="1", ours=1.0),
        direction="above",
    )


def time_rows(done: dict[tuple[str, float], list[float]], given: Parameters) -> Iterable[Row]:
    """The times."""
    return [
        Row(
            quantity=f"time until {given.wanted} of each",
            where=f"{queue.upper()}, uplink {share:g}",
            unit="s",
            ours=Spread.of(values),
            headline=False,
        )
        for (queue, share), values in done.items()
    ]
