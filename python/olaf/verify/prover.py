"""The interface of a prover: it finds a run that breaks a bound, or proves that there is none."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from olaf.verify.instance import Instance, Objective
from olaf.verify.schedule import Schedule


class UndecidedError(Exception):
    """The prover gave up: out of time, interrupted, or the question is beyond it. Has the
    reason."""


@dataclass(frozen=True)
class NoRun:
    """Proof that no run has a value above the bound."""

    forever: bool = False
    """True if it holds beyond the horizon."""
    bears_rounding: bool = False
    """True if beyond the horizon it also holds for the times before they were rounded."""
    at_most: Fraction | None = None
    """A smaller value that no run exceeds either, if the proof has one."""


class Prover(Protocol):
    """A method of proof. It is kept between questions, so that it can reuse its work."""

    name: str

    def takes(self, instance: Instance, objective: Objective) -> str | None:
        """Why it cannot decide this question, or None."""

    def exists(self, above: Fraction, deadline: float) -> Schedule | NoRun:
        """A run whose value is above ``above`` (ns or share), or a proof that there is none.

        deadline: on the clock `time.monotonic`. Raises UndecidedError.
        """
