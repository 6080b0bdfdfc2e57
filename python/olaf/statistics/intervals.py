"""Means and ratios over a few seeds, with intervals that contain the spread of both sides.

The interval is a percentile bootstrap over the seeds. With five seeds the plain interval is too
narrow, so its percentiles are moved outwards to those of Student's t (the expanded percentile
interval of Hesterberg, "What Teachers Should Know About the Bootstrap", 2015, section 4.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
ENOUGH = 5
"""Seeds that an interval needs; with fewer a bootstrap has no meaning."""

RESAMPLES = 20_000
SEED = 0
"""Random seed of the bootstrap: the same values always have the same interval."""


@dataclass(frozen=True)
class Interval:
    """A mean or a ratio with its 95 % confidence interval; without ends if seeds are too few."""

    value: float
    low: float | None = None
    high: float | None = None
    seeds: int = 1

    @property
    def includes_one(self) -> bool | None:
        """True if a ratio may be 1: these seeds show no difference. None: unknown."""
        if self.low is None or self.high is None:
            return None
        return self.low <= 1.0 <= self.high


def mean(values: Sequence[float]) -> Interval | None:
    """The mean of one value per seed; None without values."""
    if not values:
        return None
    drawn = np.array(values, float)
    if len(values) < ENOUGH:
        return Interval(float(drawn.mean()), seeds=len(values))
    means = drawn[_draws(len(values))].mean(axis=1)
    return Interval(float(drawn.mean()), *_ends(means, len(values)), seeds=len(values))


def ratio(above: Sequence[float], below: Sequence[float]) -> Interval | None:
    """Mean of ``above`` divided by mean of ``below``, paired: one value per seed each, in order.

    A resample draws seeds and takes both values of each, so the interval contains the spread of
    both sides. None if a ratio has no meaning: no seeds, or values that are not above 0.
    """
    if len(above) != len(below):
        raise ValueError(f"pairs need the same number of values: {len(above)} and {len(below)}")
    if not above or min(*above, *below) <= 0:
        return None
    one, other = np.array(above, float), np.array(below, float)
    value = float(one.mean() / other.mean())
    if len(above) < ENOUGH:
        return Interval(value, seeds=len(above))
    draws = _draws(len(above))
    ratios = one[draws].mean(axis=1) / other[draws].mean(axis=1)
    return Interval(value, *_ends(ratios, len(above)), seeds=len(above))


def _draws(count: int) -> NDArray[np.int64]:
    rng = np.random.default_rng([SEED, count])
    return rng.integers(count, size=(RESAMPLES, count))


def _ends(resampled: NDArray[np.float64], count: int) -> tuple[float, float]:
    tail = 100 * expanded_tail(count)
    low, high = np.percentile(resampled, [tail, 100 - tail])
    return float(low), float(high)


def expanded_tail(count: int) -> float:
    """The probability below the lower end: less than 2.5 %, since there are few seeds."""
    t = student_t((1 + CONFIDENCE) / 2, count - 1)
    return _normal_below(-math.sqrt(count / (count - 1)) * t)


def student_t(share: float, degrees: int) -> float:
    """The quantile of Student's t at ``share`` (0.5 to 1), by bisection."""
    low, high = 0.0, 1.0
    while _t_below(high, degrees) < share:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_below(middle, degrees) < share else (low, middle)
    return high


def _t_below(t: float, degrees: int) -> float:
    """P(T <= t) for t >= 0, by the finite series (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    if degrees % 2:
        term, total = cosine, 0.0
        for k in range(1, degrees, 2):
            total += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        inside = 2 / math.pi * (angle + sine * total)
    else:
        term, total = 1.0, 0.0
        for k in range(0, degrees, 2):
            total += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        inside = sine * total
    return 0.5 + inside / 2


def _normal_below(z: float) -> float:
    return math.erfc(-z / math.sqrt(2)) / 2
