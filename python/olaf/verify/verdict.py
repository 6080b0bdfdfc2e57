"""What is told of an objective: the answer, how far it reaches, and the run that shows it."""

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
    """What the engine made of the schedule, offsets included."""
    value: Fraction
    """The objective's value in it on ticks, ns or share: real times a little apart come as near
    to it as one likes."""
    pair: tuple[int, int] | None = None
    """The two clusters furthest apart, for the fair objectives; else (cluster, cluster) of the
    one that has the value, where one has it."""


@dataclass(frozen=True)
class Verdict:
    """The answer to one objective."""

    instance: Instance
    objective: Objective
    answer: Answer
    forever: bool
    """The answer is not only of the horizon."""
    prover: str
    """Who proved or found it: sweep, timeline, events, or more joined by +."""
    seconds: float
    cpu_seconds: float
    witness: Witness | None
    """Violated: the counterexample. Holds: the run that comes nearest to the limit, as far as was
    looked; it shows that the premises can be met at all."""
    at_most: Fraction | None
    """Proved: no run has a value above this. None where nothing was proved."""
    reason: str = ""
    """Why it is undecided; of a violation that is none of the limit, which clause (a cluster
    starves, so that it has no average)."""
    clause: Kind | None = None
    """NO_AVERAGE where not the limit is violated but that: the witness's value counts clusters."""
    edge_forever: bool = False
    """``at_most`` is not only of the horizon."""
    edge_seconds: float = 0.0
    """Looking for the edge took so long, after the answer was known: not part of ``seconds``."""

    @property
    def tight(self) -> bool:
        """Whether the nearest run reaches what was proved: it is the smallest limit that holds."""
        return self.witness is not None and self.witness.value == self.at_most
