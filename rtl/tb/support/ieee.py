"""Floating-point arithmetic, slow and obvious: exact fractions, then one rounding.

It shares no idea with the hardware: no alignment, no guard bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    """A binary format of IEEE 754: a sign, `exponent` bits, `fraction` bits."""

    exponent: int
    fraction: int

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.fraction

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def nan(self) -> int:
        """The only NaN that the hardware gives."""
        return self.infinity | 1 << (self.fraction - 1)

    def sign(self, bits: int) -> int:
        return bits >> (self.bits - 1)

    def magnitude(self, bits: int) -> int:
        return bits & ((1 << (self.bits - 1)) - 1)

    def is_nan(self, bits: int) -> bool:
        return self.magnitude(bits) > self.infinity

    def is_infinite(self, bits: int) -> bool:
        return self.magnitude(bits) == self.infinity

    def value(self, bits: int) -> Fraction:
        """The exact value of a finite number."""
        exponent, fraction = divmod(self.magnitude(bits), 1 << self.fraction)
        significand = fraction + (1 << self.fraction if exponent else 0)
        scale = Fraction(2) ** (max(exponent, 1) - self.bias - self.fraction)
        return (-1) ** self.sign(bits) * significand * scale

    def nearest(self, value: Fraction) -> int:
        """The bits of the number nearest to a value that is not zero; of two, the even one."""
        sign = (1 if value < 0 else 0) << (self.bits - 1)
        value = abs(value)
        # Magnitudes are in the order of their values: bisect for the last one not above.
        low, high = 0, self.infinity - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.value(middle) <= value else (low, middle - 1)
        below = self.value(low)
        # What follows the largest number in even steps is where infinity begins.
        above = 2 * below - self.value(low - 1) if low == self.infinity - 1 else self.value(low + 1)
        if value - below > above - value or (value - below == above - value and low % 2):
            low += 1
        return sign | low

    def add(self, a: int, b: int) -> int:
        """The bits of a + b."""
        if self.is_nan(a) or self.is_nan(b):
            return self.nan
        if self.is_infinite(a) and self.is_infinite(b):
            return a if a == b else self.nan
        if self.is_infinite(a) or self.is_infinite(b):
            return a if self.is_infinite(a) else b
        total = self.value(a) + self.value(b)
        if total == 0:
            # Positive, unless both are -0.
            both_negative = self.sign(a) & self.sign(b)
            return both_negative << (self.bits - 1)
        return self.nearest(total)

    def multiply(self, a: int, b: int) -> int:
        """The bits of a * b."""
        if self.is_nan(a) or self.is_nan(b):
            return self.nan
        sign = (self.sign(a) ^ self.sign(b)) << (self.bits - 1)
        zero = self.magnitude(a) == 0 or self.magnitude(b) == 0
        if self.is_infinite(a) or self.is_infinite(b):
            return self.nan if zero else sign | self.infinity
        return sign if zero else self.nearest(self.value(a) * self.value(b))

    def divide(self, a: int, b: int) -> int:
        """The bits of a / b."""
        if self.is_nan(a) or self.is_nan(b):
            return self.nan
        sign = (self.sign(a) ^ self.sign(b)) << (self.bits - 1)
        if self.is_infinite(a):
            return self.nan if self.is_infinite(b) else sign | self.infinity
        if self.magnitude(b) == 0:
            return self.nan if self.magnitude(a) == 0 else sign | self.infinity
        if self.is_infinite(b) or self.magnitude(a) == 0:
            return sign
        return self.nearest(self.value(a) / self.value(b))
