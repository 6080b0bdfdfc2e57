"""Facts for a solver, with what is known already folded away."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import z3

Bit: TypeAlias = "bool | z3.BoolRef"
"""A Python bool is known; anything else the solver decides."""
Term: TypeAlias = Any
"""A real number of z3, or a Python one."""


class Facts:
    """What must hold, and names for what follows from it."""

    def __init__(self) -> None:
        self.clauses: list[z3.BoolRef] = []
        self._names = 0

    def bit(self) -> z3.BoolRef:
        """A Boolean that nothing decides yet."""
        self._names += 1
        return z3.Bool(f"b{self._names}")

    def number(self) -> z3.ArithRef:
        """A real number that nothing decides yet."""
        self._names += 1
        return z3.Real(f"x{self._names}")

    def require(self, *either: Bit) -> None:
        """One of these holds."""
        unknown = [bit for bit in either if bit is not False]
        if not any(bit is True for bit in unknown):
            self.clauses.append(z3.Or(*unknown))

    def equal(self, one: Bit, other: Bit) -> None:
        """Both or neither."""
        self.require(no(one), other)
        self.require(one, no(other))

    def all_of(self, bits: Iterable[Bit]) -> Bit:
        """Whether all are true."""
        unknown = []
        for bit in bits:
            if bit is False:
                return False
            if bit is not True:
                unknown.append(bit)
        return self._named(z3.And(*unknown), unknown, True)

    def any_of(self, bits: Iterable[Bit]) -> Bit:
        """Whether one is true."""
        unknown = []
        for bit in bits:
            if bit is True:
                return True
            if bit is not False:
                unknown.append(bit)
        return self._named(z3.Or(*unknown), unknown, False)

    def at_least(self, bits: Iterable[Bit], least: int) -> Bit:
        """Whether at least so many are true."""
        return self.weighs_at_least([(bit, 1) for bit in bits], least)

    def weighs_at_least(self, weights: Iterable[tuple[Bit, int]], least: int) -> Bit:
        """Whether the weights, all above 0, of what is true sum to at least ``least``."""
        terms: list[tuple[z3.BoolRef, int]] = []
        for bit, weight in weights:
            if bit is True:
                least -= weight
            elif bit is not False:
                terms.append((bit, weight))
        unknown = [bit for bit, _ in terms]
        if least <= 0:
            return True
        if least > sum(weight for _, weight in terms):
            return False
        if all(weight >= least for _, weight in terms):
            return self.any_of(unknown)
        return self._named(z3.PbGe(terms, least), unknown, False)

    def _named(self, formula: z3.BoolRef, of: list[z3.BoolRef], empty: bool) -> Bit:
        if not of:
            return empty
        if len(of) == 1:
            return of[0]
        name = self.bit()
        self.clauses.append(name == formula)
        return name


def no(bit: Bit) -> Bit:
    """Whether it is false."""
    return not bit if isinstance(bit, bool) else z3.Not(bit)
