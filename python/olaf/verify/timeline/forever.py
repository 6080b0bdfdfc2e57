"""Proofs beyond any horizon: from every possible state, no worse value follows.

A peak, or a time without a delivery, concerns a stretch of ticks that begins with a delivery. If no
such stretch from any allowed state is too long, none in any run is, however late it begins. The
states before a run has had time for that are checked from the empty queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor

from olaf.verify.gates import Bit, Gates
from olaf.verify.instance import Instance, Kind, Objective
from olaf.verify.timeline.beginning import Anything
from olaf.verify.timeline.objectives import Values
from olaf.verify.timeline.queue import Unrolled

KINDS = (Kind.WORST_PEAK, Kind.STARVATION)

MOST_BITS = 60_000
"""Most bits of starts and order, over senders and ticks: a limit on memory and time."""


@dataclass(frozen=True)
class Stretch:
    """A question about every moment: satisfiable if a stretch above the bound is possible."""

    gates: Gates
    wanted: Bit
    beginning: Instance
    """If this is refuted, and no run from an empty queue exceeds the bound up to this instance's
    horizon, no run ever does."""


def stretches(instance: Instance, objective: Objective, bound: Fraction) -> Iterator[Stretch]:
    """Questions that are ever harder to satisfy and to build, with ever more known history.

    bound: ticks.
    """
    if objective.kind not in KINDS:
        return
    too_long = floor(bound) + 1
    longest_wait = (instance.slots - 1) * instance.service
    slowest = max(sender.interval + sender.jitter for sender in instance.senders)
    first = longest_wait if objective.kind is Kind.WORST_PEAK else 0
    for before in (first, longest_wait + slowest, longest_wait + 2 * slowest):
        ends = before + max(too_long, instance.service)
        unrolled = replace(instance, horizon=ends)
        if size(unrolled) > MOST_BITS:
            return
        gates = Gates()
        line = Unrolled(gates, unrolled, Anything(gates, unrolled))
        values = Values(line)
        aged = objective.kind is Kind.WORST_PEAK
        wanted = gates.any_of(
            values.older_after(c, too_long, before)
            if aged
            else values.silent_after(c, too_long, before)
            for c in _one_of_each(instance, objective)
        )
        yield Stretch(gates, wanted, unrolled)


def size(instance: Instance) -> int:
    """Approximate number of bits of an unrolled instance."""
    senders = len(instance.senders)
    return senders * (senders + instance.service) * (instance.horizon + 1)


def _one_of_each(instance: Instance, objective: Objective) -> list[int]:
    """One representative of each set of equal clusters."""
    return list({instance.alike[c]: c for c in reversed(objective.clusters)}.values())
