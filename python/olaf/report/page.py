"""The one-page report: it opens in any browser, needs no network, and is light or dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from olaf.jobs.instruments import SUCCESS
from olaf.report import evaluations, plots, tables
from olaf.report.learning_plots import learning_plots
from olaf.report.page_style import CSS
from olaf.values import numbers

Record = Mapping[str, Any]

MOST_EVENTS = 100
"""Events that are shown from the beginning of a run, and from its end."""

MOST_LINES = 60
"""Lines of a process that are shown."""


def run_page(record: Record) -> str:
    """The report of one run, from the contents of run.json."""
    result = record["result"]
    local = result.get("local", False)
    has_queue = not local and not tables.is_tcp(result)
    drawn: list[plots.Plot] = [plots.reward_plot(record), plots.reward_plot(record, plots.STEPS)]
    if not local:
        drawn.append(plots.age_plot(record))
    if has_queue:
        drawn += [plots.fates_plot(record), plots.queue_plot(record)]
    if record.get("evaluations"):
        drawn.insert(2, evaluations.evaluation_plot(record))
    failed = result["outcome"] == "failed"
    body = [
        f"<h1{' class=bad' if failed else ''}>{escape(result['environment'])}: "
        f"{escape(_verdict(result))}</h1>",
        f"<p>{escape(tables.headline(result))}</p>",
        f'<p class="soft">Olaf {escape(record["olaf"])}, {escape(record["written_at"])}</p>',
        failure(result) if failed else "",
        warnings_of(result),
        _tiles(result),
        figures(drawn),
        *_learning(record),
        *_counts(result),
        "<h2>Measures</h2>",
        '<div class="measures">',
        table(["", ""], [[name.strip(), text] for name, text in tables.measures(result)]),
        "</div>",
    ]
    if record.get("evaluations"):
        heads, rows = evaluations.evaluation_rows(record)
        body += ["<h2>Evaluations</h2>", table(heads, rows, numbers_to=6, numbers_from=0)]
    if result.get("against"):
        heads = ["", "this run", "one process", "ratio"]
        body += [
            "<h2>Against one process without a network</h2>",
            table(heads, tables.against_rows(result), numbers_from=1),
            f'<p class="soft">{escape(tables.against_note(result))}</p>',
        ]
    body += [events(record["events"]), printed(record["events"]), settings_of(record["settings"])]
    return whole(f"{result['environment']} through Olaf", body)


def _learning(record: Record) -> list[str]:
    """The small plots of the learners' numbers, and of the speed."""
    small = [*learning_plots(record), plots.speed_plot(record)]
    return ["<h2>Learning and speed</h2>", figures(small, kind="small")]


def _counts(result: Mapping[str, Any]) -> list[str]:
    """Fates and clusters, if updates were pushed through a network."""
    if result.get("local"):
        return []
    if not result["fates"]["pushed"]:
        return ["<h2>Where every update ended</h2>", "<p>No update was pushed.</p>"]
    segments = tables.segments_of(result)
    note = f'<p class="soft">{escape(tables.unit_note(segments).capitalize())}.</p>'
    ages = '<p class="soft">A peak is an age just before a delivery lowers it. '
    ages += "The mean over time can be above the mean of the peaks.</p>"
    return [
        "<h2>Where every update ended</h2>",
        note if segments > 1 else "",
        fates(result),
        "<h2>Clusters</h2>",
        _clusters(result),
        ages,
    ]


def _verdict(result: Mapping[str, Any]) -> str:
    if result["outcome"] == "failed":
        return "the run failed"
    reward = numbers.score(result["reward"]["mean"])
    if result["outcome"] == "reached":
        return f"reward {reward} in {numbers.duration(result['reached_s'])}"
    return f"reward {reward}, {result['reason']}"


def failure(result: Mapping[str, Any]) -> str:
    """The cause of a failed run, and the last lines of the process at fault."""
    parts = [f'<p class="bad"><b>{escape(result["reason"])}</b></p>']
    if fault := result.get("fault"):
        name = escape(fault["process"])
        times = result["restarts"].get(fault["process"], 0)
        again = f" It was started again {numbers.counted(times, 'time')}." if times else ""
        if fault["how"]:
            parts.append(f"<p>{name} {escape(fault['how'])}.{again}</p>")
        if fault.get("frames"):
            code = escape(f"{fault['error']}\n{fault['frames']}")
            parts.append(f"<p>The error in your code, in {name}:</p><pre>{code}</pre>")
        if fault["lines"]:
            lines = escape("\n".join(fault["lines"]))
            parts.append(f"<p>The last lines that {name} printed:</p><pre>{lines}</pre>")
        else:
            parts.append(f"<p>{name} printed nothing.</p>")
    return f'<div class="alert">{"".join(parts)}</div>'


def warnings_of(result: Mapping[str, Any]) -> str:
    """What was out of its usual range, and since when."""
    found = result.get("warnings", ())
    lines = "".join(
        f"<p><b>{numbers.duration(one['at_s'])}</b> {escape(one['text'])}"
        + ("" if one["over_s"] is None else f" (over at {numbers.duration(one['over_s'])})")
        + "</p>"
        for one in found
    )
    return f'<div class="alert mild">{lines}</div>' if lines else ""


def _tiles(result: Mapping[str, Any]) -> str:
    age, learning = result["age_of_model"], result.get("learning") or {}
    success = learning.get("episode_numbers", {}).get(SUCCESS)
    tiles = [
        (numbers.score(result["reward"]["mean"]), "mean reward of the last episodes"),
        ("-" if success is None else numbers.percent(success, 0), "success of the last episodes"),
        (_steps(learning.get("episode_steps")), "mean length of the last episodes"),
        (numbers.duration(result["wall_s"]), "wall time"),
        (numbers.number(result["env_steps_per_s"], 0), "environment steps/s"),
        (numbers.number(result["updates_per_s"]), "updates/s"),
    ]
    if not result.get("local"):
        tiles += [
            (numbers.duration(age["mean_s"]), "mean Age-of-Model"),
            (numbers.percent(result["loss"]), "loss"),
            (numbers.number(result["staleness"]["mean"]), "versions behind, mean"),
            (numbers.number(result["fairness"], 3), "fairness of ages"),
        ]
    return _tile_row([tile for tile in tiles if tile[0] != "-"])


def _steps(steps: float | None) -> str:
    if steps is None:
        return "-"
    return numbers.counted_shortly(steps, "step")


def _tile_row(tiles: Sequence[tuple[str, str]]) -> str:
    cells = "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for value, name in tiles
    )
    return f'<div class="tiles">{cells}</div>'


def fates(result: Mapping[str, Any]) -> str:
    """Every update's fate, and whether the sums match."""
    found, segments = result["fates"], tables.segments_of(result)
    pushed = found["pushed"]
    rows = [
        [
            row["fate"],
            tables.in_updates(row["count"], segments),
            numbers.percent(row["count"] / pushed if pushed else None, 1),
            row["counted"],
            row["note"],
        ]
        for row in found["rows"]
    ]
    rows.append(["sum", tables.in_updates(found["total"], segments), "", "", ""])
    rows.append(["pushed", tables.in_updates(pushed, segments), "", "workers", found["note"]])
    matches = '<p class="good">The sums match.</p>'
    if not found["matches"]:
        reasons = "; ".join(found["discrepancies"]) or "sum and pushed differ"
        matches = f'<p class="bad">The sums do not match: {escape(reasons)}</p>'
    heads = ["fate", "updates", "share", "counted by", "note"]
    if not any(row[-1] for row in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    return table(heads, rows, numbers_from=1, numbers_to=3) + matches


def _clusters(result: Mapping[str, Any]) -> str:
    heads = [
        "cluster",
        "mean age",
        "mean of the peaks",
        "updates",
        "deliveries",
        "behind",
        "at most",
    ]
    segments = tables.segments_of(result)
    rows = [
        [
            str(c["cluster"]),
            numbers.duration(c["mean_s"]),
            numbers.duration(c["peak_mean_s"]),
            tables.in_updates(c["contributions"], segments),
            tables.in_updates(c["deliveries"], segments),
            numbers.number(c["staleness_mean"]),
            numbers.number(c["staleness_max"], 0),
        ]
        for c in result["age_of_model"]["clusters"]
    ]
    return table(heads, rows, numbers_from=1)


def events(happenings: Sequence[Mapping[str, Any]]) -> str:
    """What happened, without the lines that processes printed; who else said the same is counted.

    Only the first and the last rows of very many are shown.
    """
    rows: list[list[str]] = []
    others: dict[int, set[str]] = {}
    said: dict[str, int] = {}
    speakers: list[str | None] = []
    for event in happenings:
        if event.get("printed"):
            continue
        words = event["text"].removeprefix(f"{event.get('who')}: ")
        if event.get("echo") and words in said:
            others[said[words]].add(event["who"])
            continue
        said[words] = len(rows)
        others[len(rows)] = set()
        speakers.append(event.get("who"))
        rows.append([f"{event['at_s']:.1f} s", event["text"]])
    for row, who in others.items():
        if not (count := len(who - {speakers[row]})):
            continue
        also = "1 other says so" if count == 1 else f"{count} others say so"
        first, _, rest = rows[row][1].partition("\n")
        rows[row][1] = f"{first} ({also}, too)" + (f"\n{rest}" if rest else "")
    if not rows:
        return ""
    if len(rows) > 2 * MOST_EVENTS:
        left_out = f"{numbers.counted(len(rows) - 2 * MOST_EVENTS, 'more event')} in history.jsonl"
        rows = [*rows[:MOST_EVENTS], ["..", left_out], *rows[-MOST_EVENTS:]]
    shown = table(["", ""], rows, numbers_from=0, numbers_to=1)
    return f'<h2>What happened</h2><div class="log">{shown}</div>'


def printed(happenings: Sequence[Mapping[str, Any]]) -> str:
    """The lines that each process printed, the last ones of very many."""
    by_process: dict[str, list[str]] = {}
    for event in happenings:
        if event.get("printed"):
            text = event["text"].removeprefix(f"{event['who']}: ")
            by_process.setdefault(event["who"], []).append(f"{event['at_s']:8.1f} s  {text}")
    parts = []
    for name, lines in by_process.items():
        shown = lines[-MOST_LINES:]
        which = f"the last {len(shown)} of " if len(shown) < len(lines) else ""
        summary = f"{name}: {which}{numbers.counted(len(lines), 'line')}"
        text = escape("\n".join(shown))
        parts.append(f"<details><summary>{escape(summary)}</summary><pre>{text}</pre></details>")
    note = '<p class="soft">The files in output/ have all lines, up to 1 MiB of each process.</p>'
    return f"<h2>Printed</h2>{note}{''.join(parts)}" if parts else ""


def settings_of(settings: Mapping[str, Any]) -> str:
    """The settings, in a section that opens on a click."""
    lines = [
        f"{section}.{key} = {value}"
        for section, keys in settings.items()
        if section != "compare"
        for key, value in keys.items()
    ]
    return f"<details><summary>Settings</summary><pre>{escape(chr(10).join(lines))}</pre></details>"


def figures(found: Sequence[plots.Plot], kind: str = "") -> str:
    """The plots side by side; below them a sentence for each that would be empty."""
    drawn = "".join(figure(plot) for plot in found if isinstance(plot, str))
    why = dict.fromkeys(plot.why for plot in found if isinstance(plot, plots.Nothing))
    sentences = f'<p class="soft">{escape(" ".join(why))}</p>' if why else ""
    return (f'<div class="plots {kind}">{drawn}</div>' if drawn else "") + sentences


def figure(svg: str) -> str:
    """A plot in its frame."""
    return f"<figure>{svg}</figure>"


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers_from: int = 99,
    numbers_to: int = 99,
) -> str:
    """A table; each line of a cell becomes a line of the page."""

    def cell(tag: str, index: int, text: str) -> str:
        kind = ' class="n"' if numbers_from <= index < numbers_to else ""
        return f"<{tag}{kind}>{escape(text).replace(chr(10), '<br>')}</{tag}>"

    head = "".join(cell("th", i, h) for i, h in enumerate(heads)) if any(heads) else ""
    body = "".join(
        "<tr>" + "".join(cell("td", i, text) for i, text in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def whole(title: str, body: Sequence[str]) -> str:
    """The page around a body."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{CSS}</style></head>"
        f"<body>{''.join(body)}</body></html>\n"
    )
