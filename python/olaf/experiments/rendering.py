"""Records as text: the table for a terminal, a figure's README and the table over all figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import tomlkit

from olaf.experiments.result import Column, Goal, Record, Row, Table
from olaf.experiments.verdicts import TOLERANCE
from olaf.statistics.intervals import CONFIDENCE
from olaf.statistics.spread import Spread
from olaf.values.numbers import duration, short

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from olaf.experiments.catalog import Figure

THOUSANDS = 1000
LONG = 6
"""A parameter with more values is printed over several lines of the README; of seeds in a row only
the first and the last are printed."""


def paper_text(row: Row) -> str:
    """The paper's value with its unit, or a dash."""
    if row.paper is not None:
        return f"{short(row.paper, row.digits)}{_unit(row.unit)}"
    if row.direction is not None and row.baseline is not None:
        return f"{row.direction} {row.baseline.name}"
    return "-"


def spread_text(spread: Spread, unit: str, digits: int | None = None) -> str:
    """``44.1 ± 0.3 ms (43.8 .. 44.5)``: the mean, half of its 95 % interval, lowest and highest.

    A value without variance is printed alone, and so is that of a single seed.
    """
    text = short(spread.mean, digits)
    if spread.low == spread.high:
        return f"{text}{_unit(unit)}"
    between = f"{short(spread.low, digits)} .. {short(spread.high, digits)}"
    return f"{text} ± {_as_fine(spread.half_width, text)}{_unit(unit)} ({between})"


def _as_fine(value: float, text: str) -> str:
    """A deviation with as many decimals as its mean."""
    if value >= THOUSANDS:
        return short(value)
    return f"{value:.{len(text.partition('.')[2])}f}"


def verdict_text(row: Row) -> str:
    """The verdict, and whether a goal was met."""
    text: str = row.verdict
    if text == "fitted":
        text += f": {row.fitted}"
    if row.goal is not None:
        text += f"; goal {goal_text(row.goal, row.unit)} {row.goal_verdict}"
    return text


def goal_text(goal: Goal, unit: str) -> str:
    """``>= 80 %``."""
    parts = []
    if goal.at_least is not None:
        parts.append(f">= {short(goal.at_least)}{_unit(unit)}")
    if goal.at_most is not None:
        parts.append(f"<= {short(goal.at_most)}{_unit(unit)}")
    return " and ".join(parts)


def summary(rows: Sequence[Row]) -> str:
    """Numbers of verdicts: ``3 match, 2 differ; goals: 2 of 3 met, 1 on average``."""
    counts = Counter(row.verdict for row in rows)
    words = {
        "matches": "match",
        "same direction": "same direction",
        "differs": "differ",
        "undecided": "undecided",
        "fitted": "fitted",
        "paper prints no number": "without a number in the paper",
        "not comparable": "not comparable",
    }
    parts = [f"{counts[key]} {word}" for key, word in words.items() if counts[key]]  # type: ignore[index]
    goals = Counter(row.goal_verdict for row in rows if row.goal_verdict is not None)
    text = ", ".join(parts)
    if goals:
        text += f"; goals: {goals['met']} of {goals.total()} met"
        if goals["met on average"]:
            text += f", {goals['met on average']} on average"
    return text


def result_table(record: Record) -> RichTable:
    """A record for a terminal."""
    from rich.table import Table as RichTable

    table = RichTable(title=f"{record.figure}: {record.title} ({record.source})", box=None)
    table.title_justify = "left"
    for name in ("quantity", "where"):
        table.add_column(name, overflow="fold")
    for name in ("paper", "ours"):
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("verdict", overflow="fold")
    for row in record.rows:
        style = {"differs": "yellow", "undecided": "dim"}.get(row.verdict, "")
        ours = spread_text(row.ours, row.unit, row.digits)
        table.add_row(
            row.quantity, row.where, paper_text(row), ours, verdict_text(row), style=style
        )
    table.caption = f"{summary(record.rows)}; {duration(record.run_s)}"
    if record.data:
        table.caption += f"\nmeasured with {record.data}"
    table.caption_justify = "left"
    return table


def list_table(figures: Sequence[Figure]) -> RichTable:
    """The list of figures."""
    from rich.table import Table as RichTable

    table = RichTable(box=None)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("source", no_wrap=True)
    table.add_column("shows", overflow="fold")
    table.add_column("takes", justify="right", no_wrap=True)
    for figure in figures:
        table.add_row(figure.name, figure.source, figure.shows, about(figure.expected_s))
    return table


def about(seconds: float) -> str:
    """A run time in a person's words."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def figure_page(record: Record) -> str:
    """README.md of a figure."""
    parts = [
        f"# {record.figure}: {record.title}\n",
        f"{record.source}. {record.shows}\n",
        *([f"**Measured with:** {record.data}\n"] if record.data else []),
        _how(record),
        _rows_table(record.rows),
    ]
    for index, chart in enumerate(record.charts):
        stem = "plot" if index == 0 else f"plot-{chart.name or index}"
        parts.append(f"![{chart.title}]({stem}.svg)\n")
    parts += [table_text(table) for table in record.tables]
    if record.bounds:
        lines = [
            f"- **{b.quantity}: {short(b.value)}{_unit(b.unit)}.** {b.why}" for b in record.bounds
        ]
        parts.append("## Bounds\n\n" + "\n".join(lines) + "\n")
    if record.differences:
        lines = [f"{number}. {text}" for number, text in enumerate(record.differences, 1)]
        parts.append("## Differences from the paper\n\n" + "\n".join(lines) + "\n")
    if record.notes:
        parts.append("## Notes\n\n" + "\n".join(f"- {note}" for note in record.notes) + "\n")
    parts.append(f"## Parameters\n\n```toml\n{_toml(record)}```\n")
    parts.append(rule_text())
    return "\n".join(parts)


def _how(record: Record) -> str:
    machine = record.machine
    command = f"olaf reproduce {record.figure}{' --quick' if record.quick else ''}"
    first, last = record.seeds[0], record.seeds[-1]
    seeds = ", ".join(map(str, record.seeds))
    if len(record.seeds) > LONG and record.seeds == list(range(first, last + 1)):
        seeds = f"{first} to {last}"
    warning = "**A quick run: it shows that everything works, not what it measures.** "
    return (
        f"{warning if record.quick else ''}`{command}` at {_commit(record)} took "
        f"{duration(record.run_s)} on "
        f"{machine.processor}, {machine.cores} cores (load average {machine.load_before} before, "
        f"{machine.load_after} after); seeds {seeds}. Ours is mean ± half of the mean's "
        "95 % interval (lowest .. highest) over the seeds. This page and the plots are rendered "
        "from results.json.\n"
    )


def _commit(record: Record) -> str:
    """The measured commit with its day."""
    day = record.written_at.partition("T")[0]
    return f"commit {record.commit} on {day}" if record.commit else f"a commit of {day}"


def _rows_table(rows: Sequence[Row]) -> str:
    noted = any(row.note for row in rows)
    lines = [
        "| quantity | where | paper | ours | verdict |" + (" note |" if noted else ""),
        "|---|---|--:|--:|---|" + ("---|" if noted else ""),
    ]
    for row in rows:
        cells = [
            row.quantity, row.where, paper_text(row), spread_text(row.ours, row.unit, row.digits),
            verdict_text(row), *([row.note] if noted else []),
        ]  # fmt: skip
        lines.append(line(cells))
    return "\n".join(lines) + "\n"


def table_text(table: Table) -> str:
    """A table as Markdown: its title, the rows, and its note."""
    named = [
        any(isinstance(row[at], str) for row in table.rows) for at in range(len(table.columns))
    ]
    lines = [
        f"**{table.title}**\n",
        line([column.name for column in table.columns]),
        f"|{'|'.join('---' if words else '--:' for words in named)}|",
        *(line(list(map(cell_text, row, table.columns))) for row in table.rows),
    ]
    return "\n".join(lines) + "\n" + (f"\n{table.note}\n" if table.note else "")


def cell_text(cell: Spread | float | str | None, column: Column) -> str:
    """``44.1 (43.8 .. 44.5)`` for a value per seed; a dash for none."""

    def told(value: float) -> str:
        return short(value) if column.digits is None else f"{value:,.{column.digits}f}"

    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    if not isinstance(cell, Spread):
        return told(cell)
    low, high = told(cell.low), told(cell.high)
    return told(cell.mean) if low == high else f"{told(cell.mean)} ({low} .. {high})"


def line(cells: Sequence[str]) -> str:
    """A line of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _toml(record: Record) -> str:
    document = tomlkit.document()
    for key, value in record.parameters.items():
        item = tomlkit.item("off" if value is None else value)
        if isinstance(item, tomlkit.items.Array) and len(item) > LONG:
            item.multiline(True)
        document.add(key, item)
    return tomlkit.dumps(document).rstrip() + "\n"


def rule_text() -> str:
    """The rule of the verdicts, for the foot of a page."""
    within, sure = f"{TOLERANCE:.0%}", f"{CONFIDENCE:.0%}"
    return (
        f"The verdicts come from the {sure} interval of our mean over the seeds (Student's t; "
        "± is half of it). A row *matches* when the whole interval is within "
        f"{within} of the paper's number. It has the *same direction* when it does not match, and "
        f"the whole {sure} interval of its difference to its baseline (FIFO, or 1 for a ratio) is "
        "on the paper's side. That interval holds the spread of both, seed by seed. A row "
        f"*differs* when its whole interval is more than {within} off, or the whole difference is "
        "on the other side, or, where the paper only draws a side, it is shown to be within "
        f"{within} of its baseline. Otherwise it is *undecided*: the spread is too large. A row is "
        "*fitted* when a parameter that the paper leaves open was chosen so that its number comes "
        "out: that is no match. A row "
        "with other inputs than the paper's is *not comparable*. A goal is *met* or *missed* when "
        "the whole interval is, and otherwise only *on average*. The rule is in "
        "`olaf.experiments.verdicts`.\n"
    )


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""
