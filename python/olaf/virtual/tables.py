"""The result of a simulation, as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from olaf.virtual.plan import ALONE
from olaf.virtual.summary import Arm, Ends

COLUMNS = (
    "machines", "reached", "steps a machine", "virtual s", "lowest .. highest", "speed-up",
    "95 %", "staleness", "merged", "replaced", "lost",
)  # fmt: skip


def table(arms: Sequence[Arm]) -> Table:
    """A row for each number of machines."""
    made = Table(box=None, padding=(0, 2, 0, 0))
    for column in COLUMNS:
        made.add_column(column, justify="right")
    for arm in arms:
        made.add_row(*_row(arm))
    return made


def markdown(arms: Sequence[Arm]) -> str:
    """The same table for a page."""
    rows = [COLUMNS, ["--:"] * len(COLUMNS), *(_row(arm) for arm in arms)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(arm: Arm) -> list[str]:
    return [
        "1, no network" if arm.machines == ALONE else str(arm.machines),
        f"{arm.reached} of {arm.seeds}",
        _number(arm.steps_per_machine.median, ",.0f"),
        _seconds(arm.time_s.median),
        _range(arm.time_s),
        _number(arm.speed_up, ".2f") if arm.machines != ALONE else "",
        _interval(arm),
        _number(arm.staleness_mean, ".1f", ""),
        _percent(arm.merged),
        _percent(arm.replaced),
        _percent(arm.lost),
    ]


def _interval(arm: Arm) -> str:
    if arm.speed_up_low is None and arm.speed_up_high is None:
        return ""
    return f"{_number(arm.speed_up_low, '.2f')} .. {_number(arm.speed_up_high, '.2f')}"


def _range(ends: Ends) -> str:
    return f"{_seconds(ends.low)} .. {_seconds(ends.high)}"


def _seconds(value: float | None) -> str:
    return _number(value, ",.1f" if value is not None and value >= 10 else ".2f")


def _number(value: float | None, form: str, none: str = "-") -> str:
    """A dash means: not reached within the limit."""
    return none if value is None else format(value, form)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"
