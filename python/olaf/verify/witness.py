"""Runs that exist: what a prover found, confirmed by the engine, and some that need no prover."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations

from olaf.verify.instance import Instance, Kind, Objective, Ties
from olaf.verify.schedule import (
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


class DisagreementError(Exception):
    """A prover and the engine disagree: a bug of ours, and no verdict can stand on it."""


def confirm(
    instance: Instance, objective: Objective, above: Fraction, schedule: Schedule, prover: str
) -> Witness:
    """The run that the engine makes of a schedule; raises DisagreementError if it is not above."""
    run = replay(instance, schedule)
    ticks = on_ticks(instance, run)
    reached = value(ticks, objective)
    if reached is None or reached <= above:
        raise DisagreementError(
            f"{prover} found a run with {objective.kind} above {above}, in which the engine sees "
            f"{reached}. Please report this, with the instance and the schedule:\n"
            f"{instance}\n{objective}\n{schedule}"
        )
    return Witness(schedule, run, reached, pair_of(ticks, objective))


def pair_of(run: Run, objective: Objective) -> tuple[int, int] | None:
    """The two clusters furthest apart; of the kinds that are about one, (cluster, cluster)."""
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
    """The one with the largest value of a few runs: with all phases 0, and drawn ones.

    None where senders hold updates back: when they may is for the provers to say.
    """
    best: Witness | None = None
    for schedule in _some(instance):
        run = replay(instance, schedule)
        ticks = on_ticks(instance, run)
        reached = value(ticks, objective)
        if reached is not None and (best is None or reached > best.value):
            best = Witness(schedule, run, reached, pair_of(ticks, objective))
    return best


def _some(instance: Instance) -> Iterator[Schedule]:
    if instance.control is not None:
        return
    draw = random.Random(0)  # the same runs each time
    continuous = instance.ties is Ties.CONTINUOUS
    for number in range(SAMPLES):
        sends = []
        for index, sender in enumerate(instance.senders):
            phase = draw.randrange(sender.interval) if number else 0
            # A fraction of a tick that is the phase's, so that real times have this order.
            offset_ns = index if continuous else 0
            at = phase
            while at <= instance.horizon:
                late = draw.randint(0, sender.jitter) if number else 0
                if at + late <= instance.horizon:
                    sends.append(Send(at + late, offset_ns, index))
                at += sender.interval
        yield Schedule(tuple(sorted(sends)))
