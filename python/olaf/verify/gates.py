"""Booleans for a solver; known values are folded at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import z3

Bit: TypeAlias = "bool | z3.BoolRef"
"""A Python bool is known; everything else is decided by the solver."""


class Gates:
    """Clauses and named gates of one problem."""

    def __init__(self) -> None:
        self.clauses: list[z3.BoolRef] = []
        self._named: dict[int, z3.BoolRef] = {}
        self._kept: list[z3.BoolRef] = []

    def free(self, name: str) -> z3.BoolRef:
        """A new Boolean for the solver to decide."""
        return z3.Bool(name)

    def require(self, *either: Bit) -> None:
        """Assert that one of these holds."""
        if not any(bit is True for bit in either):
            unknown = [bit for bit in either if bit is not False]
            self.clauses.append(unknown[0] if len(unknown) == 1 else z3.Or(*unknown))

    def all_of(self, bits: Iterable[Bit]) -> Bit:
        """Whether all are true."""
        return self._gate(bits, False, z3.And)

    def any_of(self, bits: Iterable[Bit]) -> Bit:
        """Whether one is true."""
        return self._gate(bits, True, z3.Or)

    def at_most(self, bits: Iterable[Bit], most: int) -> Bit:
        """Whether at most ``most`` are true."""
        open_bits, most = _unknown(bits, most)
        if most < 0:
            return False
        if most >= len(open_bits):
            return True
        if most == 0:
            return self.all_of(negation(b) for b in open_bits)
        return self._name(z3.PbLe([(b, 1) for b in open_bits], most))

    def at_least(self, bits: Iterable[Bit], least: int) -> Bit:
        """Whether at least ``least`` are true."""
        open_bits, least = _unknown(bits, least)
        if least <= 0:
            return True
        if least > len(open_bits):
            return False
        if least == 1:
            return self.any_of(open_bits)
        return self._name(z3.PbGe([(b, 1) for b in open_bits], least))

    def weighs_at_least(self, weights: Iterable[tuple[Bit, int]], least: int) -> Bit:
        """Whether the weights (positive or negative) of the true ones sum to at least ``least``."""
        terms: list[tuple[z3.BoolRef, int]] = []
        for bit, weight in weights:
            if bit is True:
                least -= weight
            elif bit is not False and weight > 0:
                terms.append((bit, weight))
            elif bit is not False and weight < 0:
                # w b = w + (-w)(not b)
                least -= weight
                terms.append((z3.Not(bit), -weight))
        if least <= 0:
            return True
        if least > sum(weight for _, weight in terms):
            return False
        if all(weight >= least for _, weight in terms):
            return self.any_of(bit for bit, _ in terms)
        return self._name(z3.PbGe(terms, least))

    def _gate(self, bits: Iterable[Bit], absorbing: bool, join: Callable[..., z3.BoolRef]) -> Bit:
        unknown: list[z3.BoolRef] = []
        for bit in bits:
            if bit is absorbing:
                return absorbing
            if not isinstance(bit, bool):
                unknown.append(bit)
        if len(unknown) < 2:
            return unknown[0] if unknown else not absorbing
        return self._name(join(*unknown))

    def _name(self, formula: z3.BoolRef) -> z3.BoolRef:
        """A name for the formula; equal formulas share one, so that nothing is built twice."""
        known = self._named.get(formula.get_id())
        if known is not None:
            return known
        name = z3.Bool(f"g{len(self._named)}")
        self._named[formula.get_id()] = name
        # An id is unique only while the formula lives.
        self._kept.append(formula)
        self.clauses.append(name == formula)
        return name


def negation(bit: Bit) -> Bit:
    """Whether it is false."""
    return not bit if isinstance(bit, bool) else z3.Not(bit)


def _unknown(bits: Iterable[Bit], count: int) -> tuple[list[z3.BoolRef], int]:
    unknown: list[z3.BoolRef] = []
    for bit in bits:
        if isinstance(bit, bool):
            count -= bit
        else:
            unknown.append(bit)
    return unknown, count
