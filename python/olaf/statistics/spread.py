"""A number measured once for each seed, and where its mean lies with 95 % confidence."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, model_validator

from olaf.statistics.intervals import CONFIDENCE, student_t


class Data(BaseModel):
    """A part of results.json: unknown keys are refused, computed ones are computed anew."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    once_computed: ClassVar[tuple[str, ...]] = ()
    """Keys that earlier versions computed: records keep them."""

    @model_validator(mode="before")
    @classmethod
    def _without_computed(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        computed = {*cls.model_computed_fields, *cls.once_computed}
        return {key: value for key, value in data.items() if key not in computed}


class Spread(Data):
    """One number measured once for each seed."""

    values: list[float]
    """By seed, in the order of the seeds."""
    mean: float
    sd: float
    """Sample standard deviation; 0 of a single value."""
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """The spread of one value a seed. Raises ValueError for none, or one that is not finite."""
        if not values:
            raise ValueError("a spread needs at least one value")
        if not all(math.isfinite(value) for value in values):
            raise ValueError(f"a spread needs finite values, not {list(values)}")
        numbers = [float(value) for value in values]
        return cls(
            values=numbers,
            mean=statistics.fmean(numbers),
            sd=statistics.stdev(numbers) if len(numbers) > 1 else 0.0,
            low=min(numbers),
            high=max(numbers),
        )

    @classmethod
    def ratio(cls, ours: Self, theirs: Self) -> Self:
        """The mean of ours over the mean of theirs, with the spread of both.

        A value a seed is what its pair contributes to the ratio of the two means (delta method),
        so that their interval is that of the ratio. Seed by seed ratios would leave it to the
        seed with the smallest denominator. Raises ValueError where theirs is 0 on average.
        """
        if len(ours.values) != len(theirs.values):
            raise ValueError("a ratio needs as many values on both sides")
        if theirs.mean == 0:
            raise ValueError("a ratio to a mean of 0")
        ratio = ours.mean / theirs.mean
        pairs = zip(ours.values, theirs.values, strict=True)
        return cls.of([ratio + (mine - ratio * other) / theirs.mean for mine, other in pairs])

    @property
    def interval(self) -> Interval:
        """Where the mean lies with 95 % confidence."""
        return interval(self.values)

    @property
    def half_width(self) -> float:
        """Half of that interval; infinite for one value."""
        return half_width(self.values)


class Interval(NamedTuple):
    """Where a mean lies with 95 % confidence."""

    low: float
    high: float

    def is_within(self, low: float, high: float) -> bool:
        """Whether all of it lies there."""
        return low <= self.low and self.high <= high

    def is_apart_from(self, low: float, high: float) -> bool:
        """Whether none of it lies there."""
        return self.high < low or high < self.low

    @property
    def side(self) -> int:
        """1 if all of it is above 0, -1 if all is below, else 0."""
        return (self.low > 0) - (self.high < 0)


def interval(values: Sequence[float]) -> Interval:
    """The 95 % interval of the mean of one value a seed, by Student's t.

    Infinitely wide for one value: a single seed says nothing of the spread.
    """
    mean = statistics.fmean(values)
    half = half_width(values)
    return Interval(mean - half, mean + half)


def half_width(values: Sequence[float]) -> float:
    """Half of the 95 % interval of the mean; infinite for one value."""
    n = len(values)
    if n < 2:
        return math.inf
    return _t(n - 1) * statistics.stdev(values) / math.sqrt(n)


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """The 95 % interval of the mean of ours less the mean of theirs.

    As many values on both sides are of the same seeds and are paired; otherwise both variances
    are added (Welch).
    """
    if len(ours) == len(theirs):
        return interval([a - b for a, b in zip(ours, theirs, strict=True)])
    by = statistics.fmean(ours) - statistics.fmean(theirs)
    if min(len(ours), len(theirs)) < 2:
        return Interval(-math.inf, math.inf)
    parts = [(statistics.variance(each) / len(each), len(each) - 1) for each in (ours, theirs)]
    total = sum(part for part, _ in parts)
    if total == 0:
        return Interval(by, by)
    freedom = total**2 / sum(part**2 / degrees for part, degrees in parts)
    half = _t(max(1, int(freedom))) * math.sqrt(total)
    return Interval(by - half, by + half)


@cache
def _t(freedom: int) -> float:
    return student_t((1 + CONFIDENCE) / 2, freedom)
