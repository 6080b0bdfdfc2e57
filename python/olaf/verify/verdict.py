"""The verdict on an objective: the answer, its range, and the run that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from olaf.verify.instance import Instance, Kind, Objective
from olaf.verify.schedule import Run, Schedule


class Answer(StrEnum):
    """Whether an objective holds."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Witness:
    """A run that exists: found by a prover, confirmed by the engine."""

    schedule: Schedule
    run: Run
    """The engine's output for the schedule, including offsets."""
    value: Fraction
    """The objective's value in it on ticks, ns or share; real times slightly apart come arbitrarily
    close to it."""
    pair: tuple[int, int] | None = None
    """For the fair objectives, the two clusters furthest apart; otherwise (cluster, cluster) of the
    one with the value, if there is one."""


@dataclass(frozen=True)
class Verdict:
    """The answer to one objective."""

    instance: Instance
    objective: Objective
    answer: Answer
    forever: bool
    """True if the answer reaches beyond the horizon."""
    prover: str
    """The prover: sweep, timeline, events, or several joined by +."""
    seconds: float
    cpu_seconds: float
    witness: Witness | None
    """Violated: the counterexample. Holds: the run found closest to the limit; it shows that the
    premises can be met at all."""
    at_most: Fraction | None
    """Proved: no run has a value above this. None if nothing was proved."""
    reason: str = ""
    """Why it is undecided; or the violated clause if it is not the limit (a cluster starves, so
    that it has no average)."""
    clause: Kind | None = None
    """NO_AVERAGE if that is violated instead of the limit: the witness's value counts clusters."""
    edge_forever: bool = False
    """True if ``at_most`` reaches beyond the horizon."""
    edge_seconds: float = 0.0
    """Seconds of looking for the edge after the answer was known; not part of ``seconds``."""

    @property
    def tight(self) -> bool:
        """True if the closest run reaches the proved bound: it is the smallest limit that holds."""
        return self.witness is not None and self.witness.value == self.at_most
