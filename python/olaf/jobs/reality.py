"""Compares what clusters do at a switch with what the policy says that they do.

A proof is about the policy's numbers. It says nothing about a cluster with more workers than its
table has, or with workers that send more often: they fill the queue. Nor does it about workers that
send more seldom: their cluster gets older. Fewer workers are no mismatch, because workers join one
after another. Jitter is not compared: counts do not show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from olaf.values.numbers import counted, duration

FEWEST_UPDATES = 20
"""Updates of a worker over which its interval is measured; fewer say little."""
TOLERANCE = 0.1
"""Part by which the measured interval may differ from the declared one: counts have edges."""


@dataclass(frozen=True)
class Declared:
    """A cluster's table in the policy."""

    name: str
    ids: tuple[int, ...]
    workers: int
    interval_s: float
    holds_back: bool = False
    """Transmission control leaves updates out: a longer interval is no mismatch."""


@dataclass(frozen=True)
class Mismatch:
    """What a cluster does otherwise than declared."""

    job: int
    cluster: int
    what: str
    """workers or interval."""
    reason: str


@dataclass
class _Worker:
    since_s: float
    first: int
    interval_s: float | None = None


class Reality:
    """Measures the clusters of one switch from its reports."""

    def __init__(self, declared: Sequence[Declared], newcomer: Declared | None) -> None:
        self._declared = {cluster: one for one in declared for cluster in one.ids}
        self._newcomer = newcomer
        self._workers: dict[tuple[int, int, int], _Worker] = {}

    def look(self, status: Mapping[str, Any], now_s: float) -> list[Mismatch]:
        """The mismatches now. ``status``: the switch's report; ``now_s``: a steady clock."""
        here: dict[tuple[int, int], list[_Worker]] = {}
        seen = set()
        for one in status["workers"]:
            if not (one["alive"] and one["admitted"]):
                continue
            key = (one["job"], one["cluster"], one["worker"])
            seen.add(key)
            declared = self._declared.get(one["cluster"], self._newcomer)
            worker = self._measure(key, one["last_sequence"], now_s, declared)
            here.setdefault(key[:2], []).append(worker)
        self._workers = {key: worker for key, worker in self._workers.items() if key in seen}
        found = []
        for (job, cluster), workers in sorted(here.items()):
            declared = self._declared.get(cluster, self._newcomer)
            if declared is not None:
                found += _compared(job, cluster, workers, declared)
        return found

    def _measure(
        self,
        key: tuple[int, int, int],
        sequence: int | None,
        now_s: float,
        declared: Declared | None,
    ) -> _Worker:
        sent = -1 if sequence is None else sequence
        worker = self._workers.get(key)
        if worker is None or sent < worker.first:  # new, or it began another life
            worker = self._workers[key] = _Worker(now_s, sent)
        updates, passed_s = sent - worker.first, now_s - worker.since_s
        # One who sends seldom, or not at all, is not waited for.
        longest_s = inf if declared is None else declared.interval_s * (1 + TOLERANCE)
        if passed_s > 0 and (updates >= FEWEST_UPDATES or passed_s >= FEWEST_UPDATES * longest_s):
            worker.interval_s = passed_s / updates if updates else inf
            worker.since_s, worker.first = now_s, sent
        return worker


def _compared(
    job: int, cluster: int, workers: Sequence[_Worker], declared: Declared
) -> list[Mismatch]:
    who = f"cluster {cluster} of job {job}"
    found = []
    if len(workers) > declared.workers:
        has = counted(len(workers), "worker")
        reason = f"{who} has {has}, and {declared.name} declares {declared.workers}"
        found.append(Mismatch(job, cluster, "workers", reason))
    measured = [one.interval_s for one in workers if one.interval_s is not None]
    least, most = (declared.interval_s * (1 + part) for part in (-TOLERANCE, TOLERANCE))
    seen: float | None = None
    if measured and min(measured) < least:
        seen = min(measured)
    elif measured and max(measured) > most and not declared.holds_back:
        seen = max(measured)
    if seen is not None:
        sends = "sends nothing" if seen == inf else f"sends every {duration(seen)}"
        reason = (
            f"a worker of {who} {sends}, and {declared.name} declares "
            f"{duration(declared.interval_s)}"
        )
        found.append(Mismatch(job, cluster, "interval", reason))
    return found


def own_mismatches(
    *, slots: int, rate_bps: int | None, policy_slots: int, policy_rate_bps: int | None
) -> list[str]:
    """What the switch's own queue has otherwise than the policy's. Rates are bits per second;
    ``rate_bps`` None: not paced; ``policy_rate_bps`` None: the policy does not say it."""
    found = []
    if slots != policy_slots:
        found.append(f"the switch has {slots} slots, and the policy's queue has {policy_slots}")
    if policy_rate_bps is not None and rate_bps is None:
        found.append("the switch does not pace its uplink, and the policy's queue has a rate")
    elif policy_rate_bps is not None and rate_bps != policy_rate_bps:
        found.append(
            f"the switch's uplink has {rate_bps:,} bit/s, and the policy's queue has "
            f"{policy_rate_bps:,} bit/s"
        )
    return found
