"""The verdict on a row, from 95 % intervals alone; docs/design/023-verdicts.md has the reasons.

Spread never earns a verdict: the wider an interval, the less can be said. Only an interval that
lies wholly where a verdict needs it decides.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from olaf.intervals import CONFIDENCE, student_t

TOLERANCE = 0.10
"""A mean so near the paper's value, in shares of it, matches."""

Verdict: TypeAlias = Literal[
    "matches",
    "same direction",
    "differs",
    "undecided",
    "paper prints no number",
    "not comparable",
]
GoalVerdict: TypeAlias = Literal["met", "met on average", "missed on average", "missed"]


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


def judge_number(
    ours: Interval, paper: float, against: Interval | None, their_side: int
) -> Verdict:
    """The verdict where the paper prints a number.

    against: ours less the baseline; None where the row has no baseline in the paper.
    their_side: on which side of its baseline the paper's number is: 1, -1, or 0.
    """
    margin = TOLERANCE * abs(paper)
    ours_side = 0 if against is None else against.side
    if ours_side * their_side < 0:
        return "differs"
    if ours.is_within(paper - margin, paper + margin):
        return "matches"
    if their_side != 0 and ours_side == their_side:
        return "same direction"
    if ours.is_apart_from(paper - margin, paper + margin):
        return "differs"
    return "undecided"


def judge_direction(against: Interval, baseline: float, their_side: int) -> Verdict:
    """The verdict where the paper only draws or says on which side of the baseline a row is.

    A row that is shown to be within 10 % of its baseline on either side of it, differs.
    """
    if against.side != 0:
        return "same direction" if against.side == their_side else "differs"
    margin = TOLERANCE * abs(baseline)
    return "differs" if against.is_within(-margin, margin) else "undecided"


def judge_goal(
    mean: float, ours: Interval, at_least: float | None, at_most: float | None
) -> GoalVerdict:
    """Whether a goal is kept by the whole interval, by the mean alone, or by neither."""
    low = -math.inf if at_least is None else at_least
    high = math.inf if at_most is None else at_most
    if ours.is_within(low, high):
        return "met"
    if ours.is_apart_from(low, high):
        return "missed"
    return "met on average" if low <= mean <= high else "missed on average"


@cache
def _t(freedom: int) -> float:
    return student_t((1 + CONFIDENCE) / 2, freedom)
