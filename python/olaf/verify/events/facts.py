"""Facts about moments, for a solver that knows numbers too."""

from __future__ import annotations

from typing import Any, TypeAlias

import z3

from olaf.verify.gates import Bit, Gates, negation

Term: TypeAlias = Any
"""A real number of z3, or a Python one."""


class Facts(Gates):
    """What must hold, and names for what follows from it."""

    def __init__(self) -> None:
        super().__init__()
        self._unknowns = 0

    def bit(self) -> z3.BoolRef:
        """A Boolean that nothing decides yet."""
        self._unknowns += 1
        return self.free(f"b{self._unknowns}")

    def number(self) -> z3.ArithRef:
        """A real number that nothing decides yet."""
        self._unknowns += 1
        return z3.Real(f"x{self._unknowns}")

    def equal(self, one: Bit, other: Bit) -> None:
        """Both or neither."""
        self.require(negation(one), other)
        self.require(one, negation(other))
