"""The prover: the updates of a run and a bound, which z3 satisfies or refutes."""

from __future__ import annotations

import time
from fractions import Fraction

import z3

from olaf.verify.events.facts import Facts
from olaf.verify.events.objectives import Values
from olaf.verify.events.queue import Queue
from olaf.verify.events.reading import read
from olaf.verify.instance import Instance, Kind, Objective, Ties
from olaf.verify.prover import NoRun, UndecidedError
from olaf.verify.schedule import Schedule

MOST_UPDATES = 120
"""Most updates that are ready within the horizon; it decides the order of their pairs."""


class Events:
    """Proves for few updates, however fine the tick, up to the horizon, from an empty queue."""

    name = "events"

    def __init__(self, instance: Instance, objective: Objective) -> None:
        self._instance = instance
        self._objective = objective
        facts = Facts()
        # For the other kinds, larger values are more likely violations.
        self._queue = Queue(facts, instance, may_end_early=objective.kind is Kind.FAIR_PEAK)
        if objective.kind.is_share:
            for phase in self._queue.moments.phases:
                facts.require(phase.tick >= 1)
        self._values = Values(self._queue, objective)
        self._facts = facts
        self._told = 0
        self._solver = _solver()

    @staticmethod
    def takes(instance: Instance, objective: Objective) -> str | None:
        """Why this prover cannot decide the question, or None."""
        if objective.kind is Kind.FAIR_AGE:
            return "the mean age is not linear in the moments of events"
        if instance.ties is Ties.GRID:
            return "it only knows moments that are real numbers, not a grid"
        updates = sum(instance.horizon // sender.interval + 1 for sender in instance.senders)
        if updates > MOST_UPDATES:
            return (
                f"{updates} updates are more than the {MOST_UPDATES} that it can order: shorten "
                "the horizon"
            )
        return None

    def exists(self, above: Fraction, deadline: float) -> Schedule | NoRun:
        """A run whose value is above ``above`` (ns or share), or a proof that there is none."""
        time_like = self._objective.kind.is_time
        wanted = self._values.above(above / self._instance.tick_ns if time_like else above)
        if wanted is False:
            return NoRun()
        # Constraints built for this bound only name formulas: they stay true for the next bound.
        self._solver.add(self._facts.clauses[self._told :])
        self._told = len(self._facts.clauses)
        left = deadline - time.monotonic()
        if left <= 0:
            raise UndecidedError("out of time")
        self._solver.set("timeout", max(int(left * 1000), 1))
        answer = self._solver.check() if wanted is True else self._solver.check(wanted)
        if answer == z3.unsat:
            return NoRun()
        if answer != z3.sat and time.monotonic() >= deadline:
            raise UndecidedError("out of time")
        if answer != z3.sat:
            raise UndecidedError(f"z3 gave up: {self._solver.reason_unknown()}")
        return read(self._queue, self._objective, self._solver.model())


def _solver() -> z3.Solver:
    """z3's older simplex, the fastest of its solvers for constraints that are mostly
    differences."""
    solver = z3.SimpleSolver()
    solver.set("arith.solver", 2)
    return solver
