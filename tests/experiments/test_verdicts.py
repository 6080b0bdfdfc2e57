"""Verdicts come from intervals: spread never earns one, and both arms of a comparison count."""

from __future__ import annotations

import math
from typing import Any

import pytest

from olaf.experiments import Baseline, Goal, Row, Spread
from olaf.experiments.rendering import summary, verdict_text
from olaf.statistics.spread import difference, half_width, interval


def row(values: list[float], paper: float | None, **more: Any) -> Row:
    return Row(quantity="loss", unit="%", paper=paper, ours=Spread.of(values), **more)


def fifo(ours: float | list[float], paper: float | None = None) -> Baseline:
    measured = Spread.of(ours) if isinstance(ours, list) else ours
    return Baseline(name="FIFO", paper=paper, ours=measured)


def test_the_interval_is_students() -> None:
    # t with 4 degrees of freedom is 2.776; the deviation of 1 .. 5 is sqrt(2.5).
    found = interval([1, 2, 3, 4, 5])
    assert found.low == pytest.approx(3 - 2.776 * math.sqrt(2.5 / 5), abs=1e-3)
    assert found.high == pytest.approx(3 + 2.776 * math.sqrt(2.5 / 5), abs=1e-3)
    assert half_width([7.0]) == math.inf
    assert half_width([7.0, 7.0]) == 0.0
    # With 60 degrees of freedom t is 2.0003.
    values = [float(n % 2) for n in range(61)]
    spread = Spread.of(values)
    assert half_width(values) == pytest.approx(2.0003 * spread.sd / math.sqrt(61), rel=1e-4)


def test_a_difference_pairs_the_seeds_and_else_adds_both_variances() -> None:
    ours, theirs = [11.0, 22.0, 33.0], [10.0, 20.0, 30.0]
    assert difference(ours, theirs) == interval([1.0, 2.0, 3.0])
    apart = difference([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0])
    # Welch: variances 5/3 over 4 and 1 over 3, 4.96 degrees of freedom, cut to 4.
    half = 2.776 * math.sqrt(5 / 12 + 1 / 3)
    assert (apart.low, apart.high) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-3)
    assert difference([1.0, 2.0, 3.0], [1.0]).low == -math.inf


def test_a_row_matches_when_its_whole_interval_is_within_a_tenth() -> None:
    assert row([49.0, 50.0, 51.0], 50.0).verdict == "matches"
    assert row([55.0, 55.0], 50.0).verdict == "matches"
    assert row([55.1, 55.1], 50.0).verdict == "differs"
    assert row([0.0, 0.0], 0.0).verdict == "matches"
    assert row([0.1, 0.1], 0.0).verdict == "differs"


def test_spread_earns_no_match() -> None:
    # The mean is the paper's own number, and the seeds lie on both sides of it.
    assert row([20.0, 50.0, 80.0], 50.0).verdict == "undecided"
    assert row([50.0], 50.0).verdict == "undecided"


def test_a_row_near_the_edge_of_a_tenth_is_undecided() -> None:
    assert row([54.0, 55.0, 56.0], 50.0).verdict == "undecided"
    assert row([59.0, 60.0, 61.0], 50.0).verdict == "differs"


def test_the_direction_is_that_of_the_whole_difference_to_the_baseline() -> None:
    below = {"paper": 88.0, "ours": 60.0}
    assert row([20.0, 21.0], 4.5, baseline=fifo(**below)).verdict == "same direction"
    assert row([90.0, 91.0], 4.5, baseline=fifo(**below)).verdict == "differs"
    # Where the paper itself sees no difference there is no direction to share.
    assert row([20.0, 21.0], 4.5, baseline=fifo(60.0, paper=4.5)).verdict == "differs"


def test_the_spread_of_the_baseline_counts() -> None:
    ours = [50.0, 51.0, 52.0, 53.0, 54.0]
    assert row(ours, 20.0, baseline=fifo(60.0, paper=88.0)).verdict == "same direction"
    wild = fifo([20.0, 100.0, 40.0, 80.0, 60.0], paper=88.0)
    assert row(ours, 20.0, baseline=wild).verdict == "differs"
    assert row(ours, 50.0, baseline=wild).verdict == "matches"
    assert row(ours, 58.0, baseline=wild).verdict == "undecided"


def test_pairs_of_seeds_show_a_small_difference_that_two_spreads_would_hide() -> None:
    theirs = [10.0, 100.0, 1_000.0, 50.0]
    ours = [value + 1.0 + 0.1 * (value > 70) for value in theirs]
    assert row(ours, None, baseline=fifo(theirs), direction="above").verdict == "same direction"


def test_a_match_on_the_other_side_of_the_baseline_differs() -> None:
    assert row([49.0, 49.0], 50.0, baseline=fifo(49.5, paper=48.0)).verdict == "differs"


def test_where_the_paper_only_draws_it_the_side_of_the_baseline_counts() -> None:
    def drawn(values: list[float], direction: str = "above", base: Any = 60.0) -> str:
        return row(values, None, baseline=fifo(base), direction=direction).verdict

    assert drawn([70.0, 71.0]) == "same direction"
    assert drawn([50.0, 51.0]) == "differs"
    assert drawn([50.0, 51.0], "below") == "same direction"
    assert drawn([59.0, 60.0, 61.0]) == "differs"  # shown to be as FIFO
    assert drawn([40.0, 65.0, 90.0]) == "undecided"
    assert row([50.0, 50.0], None, baseline=fifo(60.0)).verdict == "paper prints no number"


def test_a_goal_is_met_by_the_whole_interval_or_on_average() -> None:
    def goal(values: list[float], **marks: float) -> str | None:
        return row(values, None, goal=Goal(**marks)).goal_verdict

    assert row([1.0], None).goal_verdict is None
    assert goal([82.0, 82.1], at_least=80.0) == "met"
    assert goal([61.7, 90.0, 128.0], at_least=80.0) == "met on average"
    assert goal([61.7, 70.0, 100.0], at_least=80.0) == "missed on average"
    assert goal([70.0, 70.1], at_least=80.0) == "missed"
    assert goal([79.0, 79.0], at_least=70.0, at_most=75.0) == "missed"
    rows = [
        row([82.0, 82.0], None, goal=Goal(at_least=80.0)),
        row([61.7, 90.0, 128.0], None, goal=Goal(at_least=80.0)),
    ]
    assert summary(rows) == "2 without a number in the paper; goals: 1 of 2 met, 1 on average"
    assert verdict_text(rows[1]) == "paper prints no number; goal >= 80 % met on average"


def test_a_ratio_of_two_means_has_the_spread_of_both() -> None:
    ours, theirs = Spread.of([30.0, 20.0, 40.0]), Spread.of([10.0, 20.0, 15.0])
    ratio = Spread.ratio(ours, theirs)
    assert ratio.mean == pytest.approx(2.0)
    # d(o/f) = (do - 2 df) / 15 about the two means.
    assert ratio.values == pytest.approx([2 + 10 / 15, 2 - 20 / 15, 2 + 10 / 15])
    steady = Spread.ratio(ours, Spread.of([15.0, 15.0, 15.0]))
    assert steady.values == pytest.approx([2.0, 20 / 15, 40 / 15])
    with pytest.raises(ValueError, match="as many"):
        Spread.ratio(ours, Spread.of([1.0]))
    with pytest.raises(ValueError, match="mean of 0"):
        Spread.ratio(ours, Spread.of([0.0, 0.0, 0.0]))


def test_a_record_of_before_is_read_without_what_it_computed() -> None:
    stored = row([1.0, 1.0], 1.0).model_dump()
    stored |= {"goal_met": None, "baseline": {"name": "FIFO", "paper": 2.0, "ours": 1.5}}
    assert Row.model_validate(stored).verdict == "matches"
