"""The smallest average age of any policy, for a few clusters, by relative value iteration.

Time is discrete: a service takes ``ticks`` of it, and in each tick a cluster has an arrival with
the probability that a Poisson process has one or more. A cluster's state is how old its model will
be at the server when what is on the wire has come, and by how much its waiting content would make
it younger. Ages beyond ``horizon`` services' worth are cut off, for all policies alike.
"""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

Values = np.ndarray
DAMPING = 0.6
"""Damping of each step: services of equal length make undamped values oscillate for ever."""


class Exact(BaseModel):
    """A small case."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    clusters: int = Field(ge=1, le=3)
    ticks: int = Field(ge=1)
    """Ticks of a service."""
    horizon: int = Field(ge=4)
    """Largest distinguished age, in ticks."""
    loads: list[float]


def least_age(case: Exact, load: float) -> tuple[float, float, float]:
    """In services: the bound, and the average ages of the best policy and of greatest drop
    first."""
    chance = 1 - np.exp(-load / case.clusters / case.ticks)
    model = _Model(case, chance)
    return _bound(case, chance), model.average(best=True), model.average(best=False)


def _bound(case: Exact, chance: float) -> float:
    """Like `age.bound`, with geometric gaps between arrivals.

    A served cluster waits until its content would make the model younger by some threshold, then
    for the next arrival: gaps between what is served are threshold + geometric. Two neighbouring
    thresholds, mixed, meet the link's rate exactly.
    """
    gap = 1 / chance
    spacing = max(case.clusters * case.ticks, gap)

    def area(threshold: float) -> float:
        square = threshold**2 + 2 * threshold * gap + (2 - chance) / chance**2
        return (square - threshold - gap) / 2

    threshold = np.floor(spacing - gap)
    share = spacing - gap - threshold
    mixed = (1 - share) * area(threshold) + share * area(threshold + 1)
    return float(1 + (mixed / spacing + 0.5) / case.ticks)


class _Model:
    def __init__(self, case: Exact, chance: float) -> None:
        self.case, self.chance = case, chance
        pairs = [(age, drop) for age in range(case.horizon + 1) for drop in range(age + 1)]
        place = {pair: at for at, pair in enumerate(pairs)}
        self.age = np.array([age for age, _ in pairs])
        self.drop = np.array([drop for _, drop in pairs])
        older = [min(age + 1, case.horizon) for age, _ in pairs]
        # The next state after a tick without an arrival, with one, and after a service.
        self.quiet = np.array([place[o, d] for o, (_, d) in zip(older, pairs, strict=True)])
        self.fresh = np.array([place[o, o] for o in older])
        self.served = np.array([place[age - drop, 0] for age, drop in pairs])

    def average(self, *, best: bool) -> float:
        """Average age, in services, of the best policy or of greatest drop first."""
        n, ticks = self.case.clusters, self.case.ticks
        shape = (len(self.age),) * n
        cost = sum(self._along(self.age, axis) for axis in range(n)) + 0.5 * n
        # After a decision, by remaining ticks of the present service; 0: the link is free.
        values = [np.zeros(shape) for _ in range(ticks + 1)]
        average = 0.0
        for _ in range(5000):
            decided = [self._decide(values, best=best), *values[1:ticks]]
            # A free link stays free; otherwise one tick has passed.
            ahead = [self._expect(decided[max(left - 1, 0)]) + cost for left in range(ticks + 1)]
            change = [new - old for new, old in zip(ahead, values, strict=True)]
            low, high = min(c.min() for c in change), max(c.max() for c in change)
            average = (low + high) / 2
            if high - low < 1e-3:
                break
            values = [
                (1 - DAMPING) * old + DAMPING * (new - low)
                for new, old in zip(ahead, values, strict=True)
            ]
        return float(1 + average / n / ticks)

    def _along(self, values: Values, axis: int) -> Values:
        """Values by one cluster's state, shaped to broadcast over all clusters' states."""
        return values.reshape([-1 if at == axis else 1 for at in range(self.case.clusters)])

    def _decide(self, values: list[Values], *, best: bool) -> Values:
        """The value of a free link: it stays free, or serves a cluster."""
        n = self.case.clusters
        chosen = values[0]
        if best:
            for axis in range(n):
                served = np.take(values[-1], self.served, axis)
                chosen = np.minimum(
                    chosen, np.where(self._along(self.drop > 0, axis), served, np.inf)
                )
            return chosen
        drops = [np.broadcast_to(self._along(self.drop, axis), chosen.shape) for axis in range(n)]
        greatest = np.maximum.reduce(drops)
        for axis in reversed(range(n)):
            served = np.take(values[-1], self.served, axis)
            chosen = np.where((drops[axis] == greatest) & (greatest > 0), served, chosen)
        return chosen

    def _expect(self, values: Values) -> Values:
        """The mean over a tick's arrivals."""
        for axis in range(self.case.clusters):
            quiet, fresh = (np.take(values, to, axis) for to in (self.quiet, self.fresh))
            values = (1 - self.chance) * quiet + self.chance * fresh
        return values
