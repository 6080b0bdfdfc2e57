"""The prover: the unrolled run and a bound, which z3 satisfies or refutes."""

from __future__ import annotations

import time
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise

import z3

from olaf.verify.gates import Bit, Gates, negation
from olaf.verify.instance import Instance, Kind, Objective, Ties
from olaf.verify.prover import NoRun, UndecidedError
from olaf.verify.schedule import Schedule
from olaf.verify.timeline.ages import MOST_HORIZON
from olaf.verify.timeline.forever import MOST_BITS, size, stretches
from olaf.verify.timeline.objectives import Values
from olaf.verify.timeline.queue import Unrolled
from olaf.verify.timeline.reading import Unreal, read

SHARE_FOREVER = 0.3
"""Share of the remaining time for a proof beyond the horizon."""

LOOKED_AT = {Kind.FAIR_PEAK: 2, Kind.FAIR_AGE: 2, Kind.WORST_PEAK: 1, Kind.STARVATION: 1}
"""Like clusters need only this many representatives: one has the value, or two are apart."""


class Timeline:
    """Proves for all senders: for ever if possible, otherwise up to the horizon."""

    name = "timeline"

    def __init__(self, instance: Instance, objective: Objective) -> None:
        self._instance = instance
        self._objective = objective
        self._gates = Gates()
        self._line = Unrolled(self._gates, instance)
        self._values = Values(self._line)
        if objective.kind is Kind.FAIR_PEAK and instance.ties is Ties.CONTINUOUS:
            # For the other kinds, larger values are more likely violations.
            self._values.may_end_early()
        if objective.kind.is_share and instance.ties is Ties.CONTINUOUS:
            for phase in self._line.phases.phase:
                self._gates.require(negation(phase[0]))
        self._about = self._break_symmetry()

    @staticmethod
    def takes(instance: Instance, objective: Objective) -> str | None:
        """Why this prover cannot decide the question, or None."""
        if objective.kind is Kind.FAIR_AGE and instance.horizon > MOST_HORIZON:
            return (
                f"it weighs mean ages over at most {MOST_HORIZON} ticks, and the horizon is "
                f"{instance.horizon}: shorten it or coarsen the tick"
            )
        if size(instance) > MOST_BITS:
            return (
                f"{instance.horizon} ticks of {len(instance.senders)} workers are more than it "
                "can unroll: shorten the horizon or coarsen the tick"
            )
        return None

    def exists(self, above: Fraction, deadline: float) -> Schedule | NoRun:
        """A run whose value is above ``above`` (ns or share), or a proof that there is none."""
        kind = self._objective.kind
        bound = above / self._instance.tick_ns if kind.is_time else above
        if bound >= 0 and self._never(bound, deadline):
            return NoRun(forever=True)
        wanted = self._values.above(self._objective, bound, self._about)
        return _search(self._line, wanted, deadline)

    def _never(self, bound: Fraction, deadline: float) -> bool:
        """Whether it is proved, within a share of the time, for every moment of every run."""
        now = time.monotonic()
        ends = now + (deadline - now) * SHARE_FOREVER
        try:
            for stretch in stretches(self._instance, self._objective, bound):
                solver = _solver()
                solver.add(stretch.gates.clauses)
                solver.add(z3.BoolVal(True) if stretch.wanted is True else stretch.wanted)
                if _check(solver, ends) == z3.unsat:
                    return self._not_at_first(stretch.beginning, bound, ends)
        except UndecidedError:
            pass
        return False

    def _not_at_first(self, beginning: Instance, bound: Fraction, ends: float) -> bool:
        """Whether no run from an empty queue exceeds the bound at its beginning."""
        first = Timeline(beginning, self._objective)
        wanted = first._values.above(self._objective, bound, first._about)
        return isinstance(_search(first._line, wanted, ends), NoRun)

    def _break_symmetry(self) -> list[int]:
        """Order the clusters that may change places; return those that represent all."""
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


def _search(line: Unrolled, wanted: Bit, deadline: float) -> Schedule | NoRun:
    """A run in which ``wanted`` is true."""
    if wanted is False:
        return NoRun()
    solver = _solver()
    solver.add(line.gates.clauses)
    if wanted is not True:
        solver.add(wanted)
    while _check(solver, deadline) == z3.sat:
        found = read(line, solver.model())
        if not isinstance(found, Unreal):
            return found
        # No real times have these ties: exclude the combination.
        solver.add(found.clause)
    return NoRun()


def _check(solver: z3.Solver, deadline: float) -> z3.CheckSatResult:
    """Sat or unsat. Raises UndecidedError."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise UndecidedError("out of time")
    solver.set("timeout", max(int(left_s * 1000), 1))
    answer = solver.check()
    if answer == z3.unknown:
        raise UndecidedError(f"z3 gave up: {solver.reason_unknown()}")
    return answer


def _solver() -> z3.Solver:
    """z3's SAT core with its own sums of Booleans: the fastest of those we tried to refute."""
    steps = ("simplify", "propagate-values", "solve-eqs", "elim-uncnstr", "sat")
    return z3.Then(*steps).solver()
