"""Runs that exist: those of provers, confirmed by the engine, and samples."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, zip_longest

from olaf.verify.following import follow
from olaf.verify.instance import Instance, Kind, Objective, Ties
from olaf.verify.portfolio import DisagreementError
from olaf.verify.schedule import (
    Departure,
    Run,
    Schedule,
    Send,
    longest_gap,
    mean_age,
    mean_peak,
    on_ticks,
    peaks,
    replay,
    value,
)
from olaf.verify.verdict import Witness

SAMPLES = 12
MOST_SENDS = 100_000
"""Updates in all samples, some tenths of a second of work: long runs get fewer samples."""


def confirm(
    instance: Instance, objective: Objective, above: Fraction, schedule: Schedule, prover: str
) -> Witness:
    """The engine's run of a schedule.

    Raises DisagreementError if senders cannot send like this, or the value is not above.
    """
    wrong = unlike(instance, schedule, objective.kind)
    run = replay(instance, schedule)
    ticks = on_ticks(instance, run)
    reached = value(ticks, objective)
    if wrong is None:
        wrong = _other_departures(schedule, run)
    if wrong is None and (reached is None or reached <= above):
        wrong = f"in it the engine sees {reached}"
    if wrong is not None or reached is None:
        raise DisagreementError(
            f"{prover} found a run with {objective.kind} above {above}, but {wrong}. Please report "
            f"this, with the instance and the schedule:\n{instance}\n{objective}\n{schedule}"
        )
    return Witness(schedule, run, reached, pair_of(ticks, objective))


def _other_departures(schedule: Schedule, run: Run) -> str | None:
    """The places where the engine contradicts the prover."""
    if schedule.departures is None:
        return None
    seen = sorted(
        Departure(each.end_ns, cluster, each.newest_ns)
        for cluster, deliveries in enumerate(run.deliveries)
        for each in deliveries
    )
    for said, done in zip_longest(schedule.departures, seen):
        if said != done:
            return (
                f"it said that {said or 'nothing'} departs, and of the engine {done or 'nothing'}"
            )
    return None


def unlike(instance: Instance, schedule: Schedule, kind: Kind) -> str | None:
    """An action in a schedule that no sender of the instance can take; None if all can.

    On ticks, update n is ready at phase + n T + late, and of each ``window`` ready ones in a row
    ``at_least`` are sent. The conditions for holding back, by heard answers, are not checked.
    """
    ready: list[list[tuple[int, bool]]] = [[] for _ in instance.senders]
    for send in schedule.sends:
        ready[send.sender].append((send.tick, True))
    for tick, index in schedule.held:
        ready[index].append((tick, False))
    for index, sender in enumerate(instance.senders):
        updates = sorted(ready[index])
        phases = [tick - n * sender.interval for n, (tick, _) in enumerate(updates)]
        earliest = max([_first_phase(instance, kind), *(p - sender.jitter for p in phases)])
        # A real phase may be slightly below the interval.
        latest = min([sender.interval - (instance.ties is Ties.GRID), *phases])
        who = f"worker {index} of {instance.clusters[sender.cluster]}"
        if earliest > latest:
            return f"{who} has no phase with which its updates are ready like this"
        if latest + len(updates) * sender.interval + sender.jitter < instance.horizon:
            return f"{who} has an update more before the horizon"
        if instance.control is not None:
            window, needed = instance.control.window, instance.control.at_least
            sent = [is_sent for _, is_sent in updates]
            for first in range(len(sent) - window + 1):
                if sum(sent[first : first + window]) < needed:
                    return f"{who} sends fewer than {needed} of {window} updates in a row"
    if instance.control is None and schedule.held:
        return "an update is held back without transmission control"
    return None


def _first_phase(instance: Instance, kind: Kind) -> int:
    """The earliest phase, in ticks: see `Kind.is_share`."""
    return 1 if kind.is_share and instance.ties is Ties.CONTINUOUS else 0


def pair_of(run: Run, objective: Objective) -> tuple[int, int] | None:
    """The two clusters furthest apart; for kinds about one cluster, (cluster, cluster)."""
    about = objective.clusters

    def far(key: Callable[[Run, int], Fraction | None]) -> tuple[int, int] | None:
        means = {cluster: mean for cluster in about if (mean := key(run, cluster)) is not None}
        pairs = list(combinations(means, 2))
        if not pairs:
            return None
        return max(pairs, key=lambda pair: abs(means[pair[0]] - means[pair[1]]))

    def worst(key: Callable[[int], int]) -> tuple[int, int]:
        cluster = max(about, key=key)
        return cluster, cluster

    match objective.kind:
        case Kind.FAIR_PEAK:
            return far(mean_peak)
        case Kind.FAIR_AGE:
            return far(mean_age)
        case Kind.WORST_PEAK:
            return worst(lambda cluster: max(peaks(run, cluster, last=True), default=0))
        case Kind.STARVATION:
            return worst(lambda cluster: longest_gap(run, cluster))
        case Kind.NO_AVERAGE:
            return worst(lambda cluster: -len(run.deliveries[cluster]))
        case Kind.LOSS:
            return None


def sampled(instance: Instance, objective: Objective) -> Witness | None:
    """The sample with the largest value: one without lateness, and random ones."""
    best: Witness | None = None
    for schedule in _some(instance, objective.kind):
        run = replay(instance, schedule)
        ticks = on_ticks(instance, run)
        reached = value(ticks, objective)
        if reached is not None and (best is None or reached > best.value):
            best = Witness(schedule, run, reached, pair_of(ticks, objective))
    return best


def _some(instance: Instance, kind: Kind) -> Iterator[Schedule]:
    draw = random.Random(0)  # the same samples each time
    first = _first_phase(instance, kind)
    continuous = instance.ties is Ties.CONTINUOUS
    long = sum(instance.horizon // sender.interval + 1 for sender in instance.senders)
    for number in range(max(1, min(SAMPLES, MOST_SENDS // long))):
        ready = []
        for index, sender in enumerate(instance.senders):
            at = first + (draw.randrange(sender.interval) if number else 0)
            # A fraction of a tick for each phase, so that real times have this order.
            offset_ns = index if continuous else 0
            while at <= instance.horizon:
                late = draw.randint(0, sender.jitter) if number else 0
                if at + late <= instance.horizon:
                    ready.append(Send(at + late, offset_ns, index))
                at += sender.interval
        if instance.control is None:
            yield Schedule(tuple(sorted(ready)))
        else:
            holds = draw.random() if number else 0.0
            yield follow(instance, instance.control, ready, draw, holds)
