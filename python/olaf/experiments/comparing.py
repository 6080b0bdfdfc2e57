"""Compares arms that ran with the same seeds: ratios, and lines with the band of the seeds."""

from __future__ import annotations

from collections.abc import Sequence

from olaf.drawing.charts import Series
from olaf.statistics.spread import Spread


def over(ones: Sequence[float], others: Sequence[float]) -> Spread:
    """One arm's values divided by another arm's, seed by seed."""
    return Spread.of([one / other for one, other in zip(ones, others, strict=True)])


def line(name: str, at: Sequence[float], spreads: Sequence[Spread]) -> Series:
    """The means at each place, and a band from the lowest seed to the highest one."""
    return Series(
        name=name,
        points=[(float(x), one.mean) for x, one in zip(at, spreads, strict=True)],
        low=[one.low for one in spreads],
        high=[one.high for one in spreads],
    )
