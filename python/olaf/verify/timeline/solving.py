"""The prover: the unrolled run and a bound, for z3 to satisfy or to refute."""

from __future__ import annotations

import time
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise

import z3

from olaf.verify.instance import Instance, Kind, Objective
from olaf.verify.prover import NoRun, UndecidedError
from olaf.verify.schedule import Schedule
from olaf.verify.timeline.gates import Bit, Gates
from olaf.verify.timeline.objectives import Values
from olaf.verify.timeline.queue import Unrolled
from olaf.verify.timeline.reading import Unreal, read

MOST_BITS = 60_000
"""Of starts and order, sender by sender and tick by tick: what fits memory and some patience."""

LOOKED_AT = {Kind.FAIR_PEAK: 2, Kind.FAIR_AGE: 2, Kind.WORST_PEAK: 1, Kind.STARVATION: 1}
"""Of clusters that are alike, so many stand for all: one has the value, or two are apart."""


class Timeline:
    """Proves for any senders, up to the horizon, from an empty queue."""

    name = "timeline"

    def __init__(self, instance: Instance, objective: Objective) -> None:
        self._instance = instance
        self._objective = objective
        self._gates = Gates()
        self._line = Unrolled(self._gates, instance)
        self._values = Values(self._line)
        self._about = self._break_symmetry()

    @staticmethod
    def takes(instance: Instance, objective: Objective) -> str | None:
        """Why this prover cannot take the question; None where it can."""
        if objective.kind is Kind.FAIR_AGE:
            return "the mean age is no sum over ticks that it can weigh"
        senders = len(instance.senders)
        bits = (senders * senders + senders * instance.service) * (instance.horizon + 1)
        if bits > MOST_BITS:
            return (
                f"{instance.horizon} ticks of {senders} workers are more than it can unroll: "
                "shorten the horizon or coarsen the tick"
            )
        return None

    def exists(self, above: Fraction, deadline: float) -> Schedule | NoRun:
        """A run whose value is above ``above`` (ns or share), or that there is none."""
        kind = self._objective.kind
        bound = above / self._instance.tick_ns if kind.is_time else above
        wanted = self._values.above(self._objective, bound, self._about)
        if wanted is False:
            return NoRun()
        solver = _solver()
        solver.add(self._gates.clauses)
        if wanted is not True:
            solver.add(wanted)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise UndecidedError("out of time")
            solver.set("timeout", max(int(left * 1000), 1))
            answer = solver.check()
            if answer == z3.unsat:
                return NoRun()
            if answer != z3.sat:
                raise UndecidedError(f"z3 gave up: {solver.reason_unknown()}")
            found = read(self._line, solver.model())
            if not isinstance(found, Unreal):
                return found
            # Ties that no real times can bring about: never these together again.
            solver.add(found.clause)

    def _break_symmetry(self) -> list[int]:
        """Put what may change places in order; the clusters that stand for all."""
        instance = self._instance
        looked_at = LOOKED_AT.get(self._objective.kind, 0)
        groups: dict[tuple[int, bool], list[int]] = defaultdict(list)
        for cluster, alike in enumerate(instance.alike):
            groups[alike, cluster in self._objective.clusters].append(cluster)
            for a, b in pairwise(instance.senders_of(cluster)):
                self._in_order(a, b)
        about: list[int] = []
        for (_, asked), clusters in sorted(groups.items()):
            if asked:
                about += clusters[:looked_at] if looked_at else clusters
            for c, d in pairwise(clusters[looked_at if asked else 0 :]):
                self._in_order(instance.senders_of(c)[0], instance.senders_of(d)[0])
        return about

    def _in_order(self, a: int, b: int) -> None:
        order = self._line.order
        rank: Bit = order.earlier(0, a, b) if order.ranked(a, b) else True
        self._line.phases.in_order(a, b, rank)


def _solver() -> z3.Solver:
    """z3's SAT core with its own sums of Booleans: of what was tried the fastest to refute."""
    steps = ("simplify", "propagate-values", "solve-eqs", "elim-uncnstr", "sat")
    return z3.Then(*steps).solver()
