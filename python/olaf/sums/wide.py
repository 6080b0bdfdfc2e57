"""Sums of float32 that keep small values beside large ones: they travel as integers of 64 bits.

All workers agree on a step first, with the maximum of their exponents. Integers add up without an
error in any order, so the same inputs give the same bits. With n workers whose values are below
``2^e`` the step is ``2^(e + ceil(log2 n) - 62)``. A value of at least ``2^-38 n`` of the largest
one is summed without any error, and the sum is rounded once, to float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

BITS = 62
"""Bits below the sign that the sum of all workers may fill."""
NOT_FINITE = 1 << 15
"""Larger than each exponent of a float32."""
ZERO = -(1 << 15)
PART = 1 << 14

Reduce = Callable[[NDArray[Any], str, str], None]
"""Reduces in place: an array, its lanes and an operation, as the core names them."""


def all_reduce(
    values: NDArray[np.float32], op: str, reduce: Reduce, workers: Callable[[], int]
) -> None:
    """Sum ``values`` (or take their mean) in place. Values that are no numbers make all NaN.

    workers: the number of workers, asked once the first operation has ended.
    """
    largest = np.array([_exponent(values)], np.int32)
    reduce(largest, "i32", "max")
    exponent, count = int(largest[0]), workers()
    if exponent == NOT_FINITE:
        # All workers know it, and none begins the second operation.
        values.fill(np.nan)
        return
    if exponent == ZERO:
        values.fill(0)
        return
    scale = 2.0 ** (BITS - exponent - math.ceil(math.log2(count)))
    flat, fixed = values.reshape(-1), np.empty(values.size, np.int64)
    for part in _parts(values.size):
        wide = np.multiply(flat[part], scale, dtype=np.float64)
        fixed[part] = np.rint(wide, out=wide)
    reduce(fixed, "i64", "sum")
    by = scale * (count if op == "mean" else 1)
    for part in _parts(values.size):
        flat[part] = fixed[part] / by


def _parts(size: int) -> Iterator[slice]:
    """Parts that fit a core's cache: the values go through memory once."""
    return (slice(begin, begin + PART) for begin in range(0, size, PART))


def _exponent(values: NDArray[np.float32]) -> int:
    """All values are below 2 to this power."""
    largest = float(np.abs(values).max())
    if not math.isfinite(largest):
        return NOT_FINITE
    return math.frexp(largest)[1] if largest else ZERO
