"""Facts about moments, for a solver that knows numbers."""

from __future__ import annotations

from typing import Any, TypeAlias

import z3

from olaf.verify.gates import Bit, Gates, negation

Term: TypeAlias = Any
"""A real number of z3, or a Python number."""


class Facts(Gates):
    """Constraints, and names for formulas."""

    def __init__(self) -> None:
        super().__init__()
        self._unknowns = 0

    def bit(self) -> z3.BoolRef:
        """A new Boolean for the solver to decide."""
        self._unknowns += 1
        return self.free(f"b{self._unknowns}")

    def number(self) -> z3.ArithRef:
        """A new real number for the solver to decide."""
        self._unknowns += 1
        return z3.Real(f"x{self._unknowns}")

    def equal(self, one: Bit, other: Bit) -> None:
        """Assert that both hold or neither."""
        self.require(negation(one), other)
        self.require(one, negation(other))
