"""The result of a figure: rows of paper against ours, curves, differences; and its verdicts.

Everything here is data that is written to results.json and read back unchanged. `rendering` and
`drawing` make text and pictures of it.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, computed_field, model_validator

from olaf.drawing.charts import Chart
from olaf.experiments import verdicts
from olaf.experiments.verdicts import GoalVerdict, Verdict
from olaf.statistics.spread import Data, Interval, Spread, difference, interval


class Baseline(Data):
    """The value that a row is compared with, in the paper and here: FIFO for OLAF, 1 for a
    ratio."""

    name: str
    paper: float | None = None
    """None if the paper prints no number: then the row has a ``direction``."""
    ours: Spread | float
    """A spread over the row's own seeds if it was measured; a number if it is fixed."""

    @property
    def mean(self) -> float:
        """Our value, over the seeds."""
        return self.ours.mean if isinstance(self.ours, Spread) else self.ours


class Goal(Data):
    """A goal of this project, apart from the paper's numbers."""

    at_least: float | None = None
    at_most: float | None = None


class Row(Data):
    """One number of the paper beside ours."""

    once_computed = ("goal_met",)

    quantity: str
    """The measured quantity: ``update loss``."""
    where: str = ""
    """The setting in the figure: ``FIFO, 40 Gbit/s``."""
    unit: str = ""
    """``ms``, ``%``, ``updates``; empty for a ratio."""
    paper: float | None = None
    """The paper's value; None if it prints none."""
    ours: Spread
    baseline: Baseline | None = None
    """Gives a row a direction. Without a baseline a row matches or differs."""
    direction: Literal["above", "below"] | None = None
    """The paper's side of the baseline, if it gives a side without a number."""
    goal: Goal | None = None
    headline: bool = True
    """True if the row is also in the table over all figures."""
    note: str = ""
    """A few words in the table; reasons for a difference belong to the differences."""
    digits: int | None = None
    """Decimals of its numbers; None: as many as are significant."""
    comparable: bool = True
    """False if other inputs than the paper's were measured: then there is no verdict."""
    fitted: str = ""
    """Parameters that the paper leaves open and that were chosen so that this very number comes
    out: ``length of the bursts``. Agreement with the paper then says nothing. Empty: none."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def verdict(self) -> Verdict:
        """The verdict, from the 95 % intervals alone (`olaf.experiments.verdicts`).

        - ``matches``: the whole interval of our mean is within 10 % of the paper's value;
        - ``same direction``: the whole interval of the difference to the baseline is on the
          paper's side, but the value does not match;
        - ``differs``: the whole interval is further than 10 % off, or the whole difference is on
        the other side; if the paper prints no number, also within 10 % of the baseline;
        - ``undecided``: the interval is too wide, or too close to an edge, for these verdicts;
        - ``paper prints no number``: there is nothing to compare with;
        - ``fitted``: our setting was chosen so that this number comes out, which proves nothing;
        - ``not comparable``: there is a number, but for other inputs.
        """
        if not self.comparable:
            return "not comparable"
        if self.fitted and self.paper is not None:
            return "fitted"
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
        """Whether the whole interval meets the goal, only the mean, or neither; None: no goal."""
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
    """Name with its unit: ``AoM S1, ms``."""
    digits: int | None = None
    """Decimals of its numbers; None: as many as are significant."""


class Table(Data):
    """More numbers than fit into rows of paper against ours, such as settings by measures."""

    title: str
    columns: list[Column]
    rows: list[list[Spread | float | str | None]]
    """By column: a value per seed, one number, a name, or None for an empty cell."""
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
    """The return value of a figure's ``run``."""

    rows: list[Row]
    data: str = ""
    """The inputs, if a run can be given other inputs than the paper's."""
    charts: list[Chart] = Field(default=[])
    tables: list[Table] = Field(default=[])
    """More numbers, below the table of rows."""
    differences: list[str] = Field(default=[])
    """Differences of this setting from the paper's, with reasons: a sentence or two each, numbered
    in the README. They may quote measured numbers. The TOML file has those known before a run."""
    notes: list[str] = Field(default=[])
    """Other remarks about this run for the reader."""
    bounds: list[Bound] = Field(default=[])


class Machine(Data):
    """The machine of a measurement."""

    processor: str
    cores: int
    load_before: float
    """Load average of the minute before the run: above 0, other programs were running."""
    load_after: float


class Record(Data):
    """results.json: a result, and everything needed to read it or to run it again."""

    figure: str
    title: str
    source: str
    shows: str
    olaf: str
    """Version."""
    commit: str = ""
    """The commit that was measured; with ``+changes`` if files differed from it. Empty: not known,
    as without a checkout, and in records from before this was stored."""
    written_at: str
    quick: bool
    """True for a short run that only tests the figure: do not compare its numbers."""
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
