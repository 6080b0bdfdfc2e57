"""What a prover is: it finds a run that breaks a bound, or proves that there is none."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from olaf.verify.instance import Instance, Objective
from olaf.verify.schedule import Schedule


class UndecidedError(Exception):
    """The prover gave up: out of time, interrupted, or beyond what it can take. Says why."""


@dataclass(frozen=True)
class NoRun:
    """Proved: no run has a value above what was asked."""

    forever: bool = False
    """Not only up to the horizon."""


class Prover(Protocol):
    """One way of proving. Kept between questions, so that it need not learn everything anew."""

    name: str

    def takes(self, instance: Instance, objective: Objective) -> str | None:
        """Why it cannot take this question; None where it can."""

    def exists(self, above: Fraction, deadline: float) -> Schedule | NoRun:
        """A run whose value is above ``above`` (ns or share), or that there is none.

        deadline: on `time.monotonic`. Raises UndecidedError.
        """
