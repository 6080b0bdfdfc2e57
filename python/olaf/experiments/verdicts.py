"""The verdict on a row, from 95 % intervals alone; docs/design/023-verdicts.md has the reasons.

Spread never earns a verdict: the wider an interval, the less can be said. Only an interval that
lies wholly where a verdict needs it decides.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from olaf.statistics.spread import Interval

TOLERANCE = 0.10
"""A mean so near the paper's value, in shares of it, matches."""

Verdict: TypeAlias = Literal[
    "matches",
    "same direction",
    "differs",
    "undecided",
    "fitted",
    "paper prints no number",
    "not comparable",
]
GoalVerdict: TypeAlias = Literal["met", "met on average", "missed on average", "missed"]


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
