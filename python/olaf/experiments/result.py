"""What a figure came to: rows of paper against ours, curves, differences; and the verdict's rule.

Everything here is data that goes to results.json and comes back from it as it was; drawing and
wording are in `rendering` and `drawing`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, computed_field, model_validator

TOLERANCE = 0.10
"""A mean so near the paper's value, in shares of it, matches."""

Verdict = Literal[
    "matches", "same direction", "differs", "paper prints no number", "not comparable"
]


class Data(BaseModel):
    """A part of results.json: unknown keys are refused, computed ones are computed anew."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_computed(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if key not in cls.model_computed_fields}


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


class Baseline(Data):
    """What a row is above or below, in the paper and with us: FIFO for OLAF, 1 for a speed-up."""

    name: str
    paper: float | None = None
    """None where the paper prints no number: then the row says the ``direction``."""
    ours: float


class Goal(Data):
    """A mark that this project set itself, apart from what the paper reports."""

    at_least: float | None = None
    at_most: float | None = None

    def is_met(self, value: float) -> bool:
        """Whether a mean keeps within the mark."""
        above = self.at_least is None or value >= self.at_least
        return above and (self.at_most is None or value <= self.at_most)


class Row(Data):
    """One number of the paper beside ours."""

    quantity: str
    """What is measured: ``update loss``."""
    where: str = ""
    """In which setting of the figure: ``FIFO, 40 Gbit/s``."""
    unit: str = ""
    """``ms``, ``%``, ``updates``; empty for a ratio."""
    paper: float | None = None
    """The paper's value; None where it prints none."""
    ours: Spread
    baseline: Baseline | None = None
    """Gives a row a direction. Without one a row matches or differs."""
    direction: Literal["above", "below"] | None = None
    """On which side of the baseline the paper has it, where it says so without a number."""
    goal: Goal | None = None
    headline: bool = True
    """Whether the row stands in the table over all figures, too."""
    note: str = ""
    """A few words in the table; a reason for what differs belongs to the differences."""
    digits: int | None = None
    """Decimals of its numbers; None: as many as tell."""
    comparable: bool = True
    """False where other inputs than the paper's were measured: then there is no verdict."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def verdict(self) -> Verdict:
        """By rule, from the numbers alone.

        - ``matches``: the mean is within 10 % of the paper's value, or that value lies between our
          lowest and highest seed; and not on the other side of the baseline, if there is one;
        - ``same direction``: on the same side of the baseline as in the paper, by more than the
          seeds' standard deviation, but further off;
        - ``differs``: neither;
        - where the paper only draws or says on which side of the baseline it is: ``same direction``
          or ``differs``;
        - ``paper prints no number``: there is nothing to compare with;
        - ``not comparable``: there is, but it is of other inputs.
        """
        if not self.comparable:
            return "not comparable"
        if self.paper is None:
            if self.baseline is None or self.direction is None:
                return "paper prints no number"
            same = self._side(self.baseline.ours) == _SIDES[self.direction]
            return "same direction" if same else "differs"
        ours = theirs = 0
        if self.baseline is not None and self.baseline.paper is not None:
            theirs = _sign(self.paper - self.baseline.paper)
            ours = self._side(self.baseline.ours)
        near = abs(self.ours.mean - self.paper) <= TOLERANCE * abs(self.paper)
        if (near or self.ours.low <= self.paper <= self.ours.high) and ours * theirs >= 0:
            return "matches"
        return "same direction" if theirs != 0 and ours == theirs else "differs"

    def _side(self, baseline: float) -> int:
        """Above (1) or below (-1) the baseline by more than the seeds' spread; else 0."""
        by = self.ours.mean - baseline
        return _sign(by) if abs(by) > self.ours.sd else 0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def goal_met(self) -> bool | None:
        """Whether our mean keeps the goal; None where there is no goal."""
        return None if self.goal is None else self.goal.is_met(self.ours.mean)


_SIDES = {"above": 1, "below": -1}


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


class Bound(Data):
    """A limit that no implementation in this setting can pass, with its reason."""

    quantity: str
    value: float
    unit: str = ""
    why: str


class Column(Data):
    """A column of a table."""

    name: str
    """With its unit: ``AoM S1, ms``."""
    digits: int | None = None
    """Decimals of its numbers; None: as many as tell."""


class Table(Data):
    """What has too many numbers to be rows of paper against ours: settings by measures, say."""

    title: str
    columns: list[Column]
    rows: list[list[Spread | float | str | None]]
    """By column: a number measured once a seed, one number, a name, or None where there is none."""
    note: str = ""

    @model_validator(mode="after")
    def _rows_fit(self) -> Self:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.title!r}: a row of {len(row)} under {len(self.columns)} columns"
                )
        return self


class Series(Data):
    """One line, or one set of bars, of a chart."""

    name: str
    points: list[tuple[float, float]]
    low: list[float] | None = None
    """Lowest over the seeds at each point; drawn as a band together with ``high``."""
    high: list[float] | None = None
    of: Literal["ours", "paper"] = "ours"
    """The paper's are drawn dashed."""
    right: bool = False
    """By the axis on the right."""
    marks: bool = False
    """Single points, whatever the chart's kind."""
    beyond: list[tuple[float, float]] = []
    """Points of which only a lower bound is known, a timeout say: drawn as an arrow upwards."""

    @model_validator(mode="after")
    def _band_fits(self) -> Self:
        bands = [band for band in (self.low, self.high) if band is not None]
        if len(bands) == 1 or any(len(band) != len(self.points) for band in bands):
            raise ValueError("low and high go together and have a value for each point")
        return self


class Chart(Data):
    """A plot as data. The first of a figure is written to plot.svg, others to plot-NAME.svg."""

    name: str = ""
    title: str
    x: str
    """Label of the axis, with its unit: ``environment steps, thousands``."""
    y: str
    right: str = ""
    """Label of the axis on the right, if a series is drawn by it."""
    kind: Literal["line", "step", "points", "bars", "map"] = "line"
    """A map is a row of coloured cells for each series, from the top, at x = 0, 1, 2 .."""
    series: list[Series]
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    ticks: list[str] | None = None
    """Names of x = 0, 1, 2 .. (for bars and maps)."""
    from_zero: bool = False
    """Whether the y axis begins at 0."""
    marked: bool = False
    """Whether each point of a line is marked: where there are few."""


class Result(Data):
    """What a figure's ``run`` gives back."""

    rows: list[Row]
    data: str = ""
    """What was measured with, where a run can be given other inputs than the paper's."""
    charts: list[Chart] = []
    tables: list[Table] = []
    """Further numbers, below the table of rows."""
    differences: list[str] = []
    """Where this setting is not the paper's and why: a sentence or two each, numbered in the
    README. They may quote measured numbers. Those that are known before a run stand in the TOML."""
    notes: list[str] = []
    """What else a reader should know of this run."""
    bounds: list[Bound] = []


class Machine(Data):
    """On what a figure was measured."""

    processor: str
    cores: int
    load_before: float
    """Load average of a minute when the run began: above 0, somebody else was at work."""
    load_after: float


class Record(Data):
    """results.json: a result, and all that is needed to read it or to run it again."""

    figure: str
    title: str
    source: str
    shows: str
    olaf: str
    """Version."""
    written_at: str
    quick: bool
    """A short run to see that everything works: its numbers are not meant to be compared."""
    seeds: list[int]
    run_s: float
    expected_s: float
    machine: Machine
    parameters: dict[str, Any]
    paper: dict[str, Any]
    data: str = ""
    rows: list[Row]
    charts: list[Chart]
    tables: list[Table] = []
    differences: list[str]
    notes: list[str]
    bounds: list[Bound]
