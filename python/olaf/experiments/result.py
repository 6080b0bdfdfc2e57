"""What a figure came to: rows of paper against ours, curves, differences; and the verdict's rule.

Everything here is data that goes to results.json and comes back from it as it was; drawing and
wording are in `rendering` and `drawing`.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, computed_field, model_validator

from olaf.drawing.charts import Chart
from olaf.experiments import verdicts
from olaf.experiments.verdicts import GoalVerdict, Verdict
from olaf.spread import Data, Interval, Spread, difference, interval


class Baseline(Data):
    """What a row is above or below, in the paper and with us: FIFO for OLAF, 1 for a speed-up."""

    name: str
    paper: float | None = None
    """None where the paper prints no number: then the row says the ``direction``."""
    ours: Spread | float
    """A spread, by the row's own seeds, where it was measured; a number where it is fixed."""

    @property
    def mean(self) -> float:
        """Ours, over the seeds."""
        return self.ours.mean if isinstance(self.ours, Spread) else self.ours


class Goal(Data):
    """A mark that this project set itself, apart from what the paper reports."""

    at_least: float | None = None
    at_most: float | None = None


class Row(Data):
    """One number of the paper beside ours."""

    once_computed = ("goal_met",)

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
        """By rule, from the 95 % intervals alone (`olaf.experiments.verdicts`).

        - ``matches``: the whole interval of our mean is within 10 % of the paper's value;
        - ``same direction``: the whole interval of the difference to the baseline is on the
          paper's side, but the value does not match;
        - ``differs``: the whole interval is further than 10 % off, or the whole difference is on
          the other side; where the paper prints no number, also within 10 % of the baseline;
        - ``undecided``: the interval is too wide, or too near an edge, to say any of these;
        - ``paper prints no number``: there is nothing to compare with;
        - ``not comparable``: there is, but it is of other inputs.
        """
        if not self.comparable:
            return "not comparable"
        against = self._against()
        if self.paper is not None:
            side = 0 if self.direction is None else _SIDES[self.direction]
            if self.baseline is not None and self.baseline.paper is not None:
                side = _sign(self.paper - self.baseline.paper)
            return verdicts.judge_number(self.ours.interval, self.paper, against, side)
        if self.baseline is None or against is None or self.direction is None:
            return "paper prints no number"
        side = _SIDES[self.direction]
        return verdicts.judge_direction(against, self.baseline.mean, side)

    def _against(self) -> Interval | None:
        """The interval of the difference to the baseline, with the spread of both."""
        if self.baseline is None:
            return None
        if isinstance(self.baseline.ours, Spread):
            return difference(self.ours.values, self.baseline.ours.values)
        fixed = self.baseline.ours
        return interval([value - fixed for value in self.ours.values])

    @computed_field  # type: ignore[prop-decorator]
    @property
    def goal_verdict(self) -> GoalVerdict | None:
        """Whether the goal is kept by the whole interval, on average, or not; None: no goal."""
        if self.goal is None:
            return None
        return verdicts.judge_goal(
            self.ours.mean, self.ours.interval, self.goal.at_least, self.goal.at_most
        )


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


class Result(Data):
    """What a figure's ``run`` gives back."""

    rows: list[Row]
    data: str = ""
    """What was measured with, where a run can be given other inputs than the paper's."""
    charts: list[Chart] = Field(default=[])
    tables: list[Table] = Field(default=[])
    """Further numbers, below the table of rows."""
    differences: list[str] = Field(default=[])
    """Where this setting is not the paper's and why: a sentence or two each, numbered in the
    README. They may quote measured numbers. Those that are known before a run stand in the TOML."""
    notes: list[str] = Field(default=[])
    """What else a reader should know of this run."""
    bounds: list[Bound] = Field(default=[])


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
    tables: list[Table] = Field(default=[])
    differences: list[str]
    notes: list[str]
    bounds: list[Bound]
