"""A comparison as a table for a terminal and as a page: arms side by side, and the ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from rich.console import Group
from rich.table import Table

from olaf.jobs.comparison import arm_of
from olaf.report import page, plots, tables
from olaf.statistics.intervals import ENOUGH
from olaf.values.numbers import counted, number

Record = Mapping[str, Any]
Text = Callable[[float | None], str]


class Row(NamedTuple):
    """A measure of `olaf.jobs.summary.MEASURES`, and its format."""

    key: str
    name: str
    factor: float = 1.0
    """Factor from the measure's unit to the row's."""
    digits: int = 1

    def text(self, value: float | None) -> str:
        """The value in the unit of the row."""
        return number(None if value is None else value * self.factor, self.digits)


ROWS = (
    Row("until_s", "training time to the reward, s", digits=2),
    Row("reward", "reward at the end"),
    Row("env_steps", "environment steps, thousands", 1e-3),
    Row("cpu_s", "CPU seconds"),
    Row("updates", "updates pushed", digits=0),
    Row("carried", "updates carried", digits=0),
    Row("uplink_bytes", "bytes on the uplink, kB", 1e-3, 0),
    Row("loss", "loss, %", 100),
    Row("aom_mean_s", "Age-of-Model, mean, s", digits=2),
    Row("staleness", "staleness, versions"),
)


def arm_rows(comparison: Record) -> tuple[list[str], list[list[str]]]:
    """Heads and rows: a column per arm, then each baseline relative to our best queue.

    A cell is the mean, with its interval on a second line if there are enough seeds.
    """
    summary, ratios = comparison["summary"], comparison.get("ratios")
    compared = ratios["of"] if ratios else {}
    heads = ["", *(_head(arm, own) for arm, own in summary.items())]
    heads += [f"{baseline}\nover {ratios['best']}" for baseline in compared] if ratios else []
    rows = [["reward reached", *(f"{own['reached']} of {own['runs']}" for own in summary.values())]]
    rows[0] += ["" for _ in compared]
    for row in ROWS:
        cells = [_cell(own["intervals"][row.key], row.text) for own in summary.values()]
        for own in compared.values():
            cell = _cell(own["measures"][row.key], lambda value: number(value, 2))
            bound = own["bound"] if row.key == "until_s" else ""
            cells.append(f"{bound} {cell}".strip() if bound != "unknown" else "-")
        rows.append([row.name, *cells])
    return heads, rows


def _head(arm: str, own: Mapping[str, Any]) -> str:
    turns = own["turns_per_push"]
    if turns == [1]:
        return arm
    return f"{arm}\nk = {', '.join(str(k) for k in turns)}"


def _cell(found: Mapping[str, Any] | None, text: Text) -> str:
    if found is None:
        return "-"
    if found["low"] is None:
        return text(found["value"])
    return f"{text(found['value'])}\n[{text(found['low'])}, {text(found['high'])}]"


def title_of(comparison: Record) -> str:
    """The setting of the comparison, in one line."""
    first = comparison["runs"][0]["result"]
    return (
        f"{first['environment']}, {counted(first['workers'], 'worker')} in "
        f"{counted(first['clusters'], 'cluster')}, {counted(first['slots'], 'slot')}, "
        f"uplink {first['uplink']}"
    )


def notes_of(comparison: Record) -> list[str]:
    """Notes that explain the table."""
    notes = [
        "Time counts from the first worker's join. A run that did not reach the reward counts with "
        "its whole time, which is too short.",
    ]
    seeds = max((own["runs"] for own in comparison["summary"].values()), default=0)
    if seeds >= ENOUGH:
        notes.append(
            f"[low, high]: 95 % bootstrap interval over {seeds} seeds; ratios are paired by seed, "
            "and a resample draws both runs of a pair."
        )
    if "push-less-often" in comparison["summary"]:
        notes.append("k: turns of the learner that push-less-often sums for one push, by seed.")
    return notes


def comparison_table(comparison: Record) -> Group:
    """Arms side by side, then each baseline relative to our best queue."""
    heads, rows = arm_rows(comparison)
    table = Table(box=None)
    arms = len(comparison["summary"])
    for index, head in enumerate(heads):
        style = "bold" if index == 0 or index > arms else ""
        table.add_column(head, justify="right" if index else "left", style=style)
    for row in rows:
        table.add_row(*row)
    return tables.titled(title_of(comparison), table)


def _figures(comparison: Record, runs: Sequence[Record]) -> list[plots.Plot]:
    ratios = comparison.get("ratios")
    found = [plots.compared_rewards(runs, plots.TIME), plots.compared_rewards(runs, plots.STEPS)]
    if ratios and ratios["of"]:
        found.append(plots.ratio_plot(ratios, list(comparison["summary"])))
    dots: list[tuple[str, str, Callable[[Record], float | None]]] = [
        ("Age-of-Model, mean", "s", lambda r: r["age_of_model"]["mean_s"]),
        ("Bytes on the uplink", "MB", lambda r: (r.get("uplink_bytes") or 0) / 1e6),
        ("Loss", "%", lambda r: (r["loss"] or 0) * 100),
    ]
    return [*found, *(plots.compared_dots(runs, title, unit, key) for title, unit, key in dots)]


def comparison_page(comparison: Record, runs: Sequence[Record]) -> str:
    """The report of a comparison, from compare.json and run.json of each of its runs."""
    results = [run["result"] for run in runs]
    heads, rows = arm_rows(comparison)
    body = [
        f"<h1>{' against '.join(escape(arm) for arm in comparison['summary'])}</h1>",
        f"<p>{escape(title_of(comparison))}; same seeds, same link.</p>",
        *(f"<p>{escape(line)}</p>" for line in [comparison.get("verdict", "")] if line),
        f'<p class="soft">Olaf {escape(comparison["olaf"])}, '
        f"{escape(comparison['written_at'])}</p>",
        page.table(heads, rows, numbers_from=1),
        *(f'<p class="soft">{escape(note)}</p>' for note in notes_of(comparison)),
        page.figures(_figures(comparison, runs)),
        "<h2>Run by run</h2>",
        page.table(
            ["", *(f"{arm_of(r)}, seed {r['seed']}" for r in results)],
            [[name, *texts] for name, texts in tables.comparison_rows(results)],
            numbers_from=1,
        ),
        *(
            f"<details><summary>Fates: {escape(arm_of(r))}, seed {r['seed']}</summary>"
            f"{page.fates(r)}</details>"
            for r in results
        ),
        page.settings_of(runs[0]["settings"]),
    ]
    return page.whole("FIFO against OLAF", body)
