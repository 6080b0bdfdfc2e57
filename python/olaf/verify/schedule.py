"""Replays a run of a prover through the real queue: departures, and their ages.

No claim of a prover is shown before the engine has confirmed it.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from olaf.verify.instance import Instance, Kind, Objective

RATE = "8mbit"
"""Rate of the replayed link: a byte per microsecond, so a service of s microseconds is s bytes."""


@dataclass(frozen=True, order=True)
class Send:
    """An update that is sent."""

    tick: int
    offset_ns: int
    """Nanoseconds after the tick; they order the events of one tick."""
    sender: int


@dataclass(frozen=True, order=True)
class Departure:
    """A departure that a prover claims."""

    end_ns: int
    cluster: int
    newest_ns: int
    """Time at which the newest of its contributions was made."""


@dataclass(frozen=True)
class Schedule:
    """The senders' actions in a run, in the order in which they reach the queue."""

    sends: tuple[Send, ...]
    held: tuple[tuple[int, int], ...] = ()
    """(tick, sender) of updates that were ready and not sent."""
    last_counts: bool = True
    """True if a departure at the horizon's tick is observed; otherwise it comes just after it."""
    departures: tuple[Departure, ...] | None = None
    """The departures up to the horizon, if the prover claims some: the engine must confirm them."""


@dataclass(frozen=True)
class Delivery:
    """A departure of a cluster."""

    start_ns: int
    end_ns: int
    """The paper's D."""
    newest_ns: int
    """Time at which the newest of its contributions was made: the paper's A of it."""


@dataclass(frozen=True)
class Run:
    """The queue's output for a schedule, up to the horizon."""

    horizon_ns: int
    deliveries: tuple[tuple[Delivery, ...], ...]
    """The deliveries of each cluster, in order."""
    sent: tuple[int, ...]
    dropped: tuple[int, ...]


def trace_of(instance: Instance, schedule: Schedule) -> str:
    """The schedule as a trace for ``olaf replay --rate 8mbit``."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["t_ns", "cluster", "worker", "seq", "reward", "bytes"])
    numbers = [0] * len(instance.senders)
    size = instance.service * instance.tick_ns // 1000
    for send in schedule.sends:
        cluster = instance.clusters[instance.senders[send.sender].cluster]
        at = send.tick * instance.tick_ns + send.offset_ns
        writer.writerow([at, cluster, f"w{send.sender}", numbers[send.sender], 0, size])
        numbers[send.sender] += 1
    return text.getvalue()


def replay(instance: Instance, schedule: Schedule) -> Run:
    """Run a schedule through the OLAF engine."""
    return read_replay(instance, _replayed(instance, schedule), last_counts=schedule.last_counts)


def lost_of(instance: Instance, schedule: Schedule) -> list[tuple[Send, bool]]:
    """Each update of a schedule, and whether it found the queue full."""
    fates = _replayed(instance, schedule)["fates"]
    fate_of = {(row["worker"], row["seq"]): row["fate"] for row in fates}
    numbers = [0] * len(instance.senders)
    found: list[tuple[Send, bool]] = []
    for send in schedule.sends:
        fate = fate_of[f"w{send.sender}", numbers[send.sender]]
        numbers[send.sender] += 1
        found.append((send, fate == "dropped"))
    return found


def _replayed(instance: Instance, schedule: Schedule) -> dict[str, Any]:
    from olaf import _olaf

    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.csv"
        trace.write_text(trace_of(instance, schedule), encoding="utf-8")
        text = _olaf.replay(str(trace), engine="olaf", slots=instance.slots, rate=RATE)
    told: dict[str, Any] = json.loads(text)
    return told


def read_replay(instance: Instance, replayed: dict[str, Any], *, last_counts: bool = True) -> Run:
    """The output of ``olaf replay --json``, up to the horizon.

    Events of the horizon's tick count, although offsets put them some nanoseconds after it; its
    departure counts only with ``last_counts``.
    """
    past_ns = (instance.horizon + last_counts) * instance.tick_ns
    of = {name: index for index, name in enumerate(instance.clusters)}
    deliveries: list[list[Delivery]] = [[] for _ in instance.clusters]
    sent, dropped = [0] * len(of), [0] * len(of)
    for left in replayed["departures"]:
        if left["end_ns"] < past_ns:
            times = Delivery(left["start_ns"], left["end_ns"], left["newest_ns"])
            deliveries[of[left["cluster"]]].append(times)
    for fate in replayed["fates"]:
        cluster = of[fate["cluster"]]
        sent[cluster] += 1
        dropped[cluster] += fate["fate"] == "dropped"
    kept = tuple(tuple(each) for each in deliveries)
    return Run(instance.horizon * instance.tick_ns, kept, tuple(sent), tuple(dropped))


def on_ticks(instance: Instance, run: Run) -> Run:
    """The ideal run of this one: the same order of events, without offsets."""

    def cut(time_ns: int) -> int:
        return time_ns - time_ns % instance.tick_ns

    deliveries = tuple(
        tuple(Delivery(cut(d.start_ns), cut(d.end_ns), cut(d.newest_ns)) for d in of_cluster)
        for of_cluster in run.deliveries
    )
    return Run(run.horizon_ns, deliveries, run.sent, run.dropped)


def value(run: Run, objective: Objective) -> Fraction | None:
    """The value that the objective bounds, in this run; None if there is none (fewer than two
    averages, no delivery, no update sent)."""
    about = objective.clusters
    match objective.kind:
        case Kind.FAIR_PEAK:
            return _widest(mean_peak(run, cluster) for cluster in about)
        case Kind.FAIR_AGE:
            return _widest(mean_age(run, cluster) for cluster in about)
        case Kind.WORST_PEAK:
            ages = [age for cluster in about for age in peaks(run, cluster, last=True)]
            return Fraction(max(ages)) if ages else None
        case Kind.STARVATION:
            return Fraction(max(longest_gap(run, cluster) for cluster in about))
        case Kind.NO_AVERAGE:
            return Fraction(sum(len(run.deliveries[cluster]) < 2 for cluster in about))
        case Kind.LOSS:
            sent = sum(run.sent[cluster] for cluster in about)
            lost = sum(run.dropped[cluster] for cluster in about)
            return Fraction(lost, sent) if sent else None


def peaks(run: Run, cluster: int, *, last: bool = False) -> list[int]:
    """The cluster's ages just before each delivery except the first, ns (OLAF §6, peak AoM).

    ``last``: add the age at the horizon, since the next peak will not be lower.
    """
    delivered = run.deliveries[cluster]
    ages = [b.end_ns - a.newest_ns for a, b in pairwise(delivered)]
    if last and delivered:
        ages.append(max(run.horizon_ns, delivered[-1].end_ns) - delivered[-1].newest_ns)
    return ages


def mean_peak(run: Run, cluster: int) -> Fraction | None:
    """Mean of the cluster's peaks, ns; None with fewer than two deliveries."""
    found = peaks(run, cluster)
    return Fraction(sum(found), len(found)) if found else None


def mean_age(run: Run, cluster: int) -> Fraction | None:
    """Time average of the cluster's AoM from its first delivery to the horizon, ns."""
    delivered = run.deliveries[cluster]
    if not delivered or delivered[0].end_ns >= run.horizon_ns:
        return None
    twice = 0
    ends = [*(each.end_ns for each in delivered[1:]), run.horizon_ns]
    for each, end in zip(delivered, ends, strict=True):
        twice += (end - each.newest_ns) ** 2 - (each.end_ns - each.newest_ns) ** 2
    return Fraction(twice, 2 * (run.horizon_ns - delivered[0].end_ns))


def longest_gap(run: Run, cluster: int) -> int:
    """Longest time without a delivery, ns, including before the first and after the last."""
    ends = [0, *(each.end_ns for each in run.deliveries[cluster]), run.horizon_ns]
    return max(b - a for a, b in pairwise(ends))


def _widest(means: Iterable[Fraction | None]) -> Fraction | None:
    known = [mean for mean in means if mean is not None]
    return max((abs(a - b) for a, b in combinations(known, 2)), default=None)
