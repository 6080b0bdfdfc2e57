"""The average age as a sum over ticks and ages, for the mean Age-of-Model of two clusters."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from math import floor

from olaf.verify.gates import Bit, Gates, negation
from olaf.verify.instance import Instance

AgedStarts = Iterable[tuple[int, list[tuple[int, Bit]]]]
"""For each tick and j = 0, 1 ..: whether service begins then for content at least j ticks old."""

MOST_HORIZON = 30
"""Most ticks: every pair of first deliveries is a separate case with a sum over all ages."""


class MeanAge:
    """A cluster's age at each tick, in unary, and the time of its first delivery."""

    def __init__(self, gates: Gates, instance: Instance, starts: AgedStarts) -> None:
        horizon, service = instance.horizon, instance.service
        self._horizon = horizon
        self.older: list[Bit] = []
        """For each tick before the horizon and each j: delivered, and at least j ticks old."""
        self.first: dict[int, Bit] = {}
        """For each tick before the horizon: whether the first delivery ends then."""
        fresh: list[Bit] = [False] * (horizon + 1)  # delivered content made at this tick or later
        of_start = dict(starts)
        for tick in range(service, horizon):
            aged = [bit for _, bit in of_start[tick - service]]
            begun = aged[0]
            self.first[tick] = gates.all_of([begun, negation(fresh[0])])
            for made in range(tick - service + 1):
                wait = tick - service - made
                stale = aged[wait + 1] if wait + 1 < len(aged) else False
                arrives = gates.all_of([begun, negation(stale)])
                fresh[made] = gates.any_of([fresh[made], arrives])
            for age in range(1, tick + 1):
                newer = fresh[tick - age + 1]
                self.older.append(gates.all_of([fresh[0], negation(newer)]))

    def cases(self) -> Iterable[tuple[int, Bit]]:
        """The number of ticks of the mean, with the condition for it."""
        return ((self._horizon - tick, bit) for tick, bit in self.first.items() if bit is not False)


def apart(gates: Gates, u: MeanAge, v: MeanAge, bound: Fraction) -> Bit:
    """Whether u's average age exceeds v's by more than the bound, in ticks.

    The age grows by one per tick, so the average is the mean of the whole ages plus a half, which
    cancels. With sums su, sv over nu, nv ticks: nv su - nu sv > bound nu nv.
    """
    ways: list[Bit] = []
    for (nu, of_u), (nv, of_v) in product(u.cases(), v.cases()):
        case = gates.all_of([of_u, of_v])
        weights = [(bit, nv) for bit in u.older] + [(bit, -nu) for bit in v.older]
        enough = gates.weighs_at_least(weights, floor(bound * nu * nv) + 1)
        ways.append(gates.all_of([case, enough]))
    return gates.any_of(ways)
