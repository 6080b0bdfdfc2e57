"""The one-page report: it opens in any browser, needs no network, and is light or dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from olaf import numbers
from olaf.report import plots, tables

Record = Mapping[str, Any]

_CSS = """
:root { color-scheme: light dark; --paper: #fbfbfa; --ink: #1d2126; --soft: #5d6672;
  --card: #fff; --line: #e2e4e8; --good: #1a7f4b; --bad: #b3261e;
  --s0: #3b73c4; --s1: #d1622b; --s2: #2f9170; --s3: #8a5bb8; --s4: #c0392b; --s5: #8c8c2c;
  --s6: #2a8fa8; --s7: #a5527d; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171b; --ink: #e4e7eb; --soft: #9aa4b1;
  --card: #1b1f25; --line: #2c323a; --good: #55c38a; --bad: #ef7a71;
  --s0: #7fb0f5; --s1: #f2955f; --s2: #5fc9a3; --s3: #bd94e8; --s4: #ef7a71; --s5: #cccc66;
  --s6: #66c7de; --s7: #e08db8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 1.5rem 1rem 4rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
p { margin: .2rem 0; } .soft { color: var(--soft); } .good { color: var(--good); }
.bad { color: var(--bad); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: .6rem;
  margin: 1.2rem 0; }
.tile, figure { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; }
.tile { padding: .6rem .8rem; } .tile b { display: block; font-size: 1.25rem; }
.tile span { color: var(--soft); font-size: .8rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(26rem, 1fr)); gap: .8rem; }
.plots .wide { grid-column: 1 / -1; }
figure { margin: 0; padding: .5rem; } svg { width: 100%; height: auto; display: block; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th, td { text-align: left; padding: .25rem 1.4rem .25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
details { margin-top: 1rem; } summary { cursor: pointer; font-weight: 600; }
pre { overflow-x: auto; font-size: .8rem; background: var(--card); padding: .8rem;
  border: 1px solid var(--line); border-radius: .5rem; }
"""


def run_page(record: Record) -> str:
    """The report of one run, from the contents of run.json."""
    result = record["result"]
    local = result.get("local", False)
    figures = [plots.reward_plot(record), plots.reward_plot(record, plots.STEPS)]
    if not local:
        figures.append(plots.age_plot(record))
    if not local and not tables.is_tcp(result):
        figures += [plots.queue_plot(record), plots.fates_plot(record)]
    figures.append(plots.speed_plot(record))
    segments = tables.segments_of(result)
    body = [
        f"<h1>{escape(result['environment'])}: {escape(_verdict(result))}</h1>",
        f"<p>{escape(tables.headline(result))}</p>",
        f'<p class="soft">Olaf {escape(record["olaf"])}, {escape(record["written_at"])}</p>',
        _tiles(result),
        '<div class="plots">',
        *(figure(plot) for plot in figures),
        "</div>",
    ]
    if not local:
        body.append("<h2>Where every update ended</h2>")
        if segments > 1:
            note = escape(tables.unit_note(segments).capitalize())
            body.append(f'<p class="soft">{note}.</p>')
        body.append(fates(result))
    body += [
        "<h2>Measures</h2>",
        table(["", ""], [[name.strip(), text] for name, text in tables.measures(result)]),
    ]
    if result.get("against"):
        heads = ["", "this run", "one process", "ratio"]
        body += [
            "<h2>Against one process without a network</h2>",
            table(heads, tables.against_rows(result), numbers_from=1),
            f'<p class="soft">{escape(tables.against_note(result))}</p>',
        ]
    if not local:
        body += ["<h2>Clusters</h2>", _clusters(result)]
    body += [_events(record["events"]), settings_of(record["settings"])]
    return whole(f"{result['environment']} through Olaf", body)


def _verdict(result: Mapping[str, Any]) -> str:
    reward = numbers.number(result["reward"]["mean"])
    if result["outcome"] == "reached":
        return f"reward {reward} in {numbers.duration(result['reached_s'])}"
    return f"reward {reward}, {result['reason']}"


def _tiles(result: Mapping[str, Any]) -> str:
    age = result["age_of_model"]
    tiles = [
        (numbers.number(result["reward"]["mean"]), "mean reward of the last episodes"),
        (numbers.duration(result["wall_s"]), "wall time"),
        (numbers.number(result["env_steps_per_s"], 0), "environment steps/s"),
        (numbers.number(result["updates_per_s"]), "updates/s"),
    ]
    if result.get("local"):
        return _tile_row(tiles)
    tiles += [
        (numbers.duration(age["mean_s"]), "mean Age-of-Model"),
        (numbers.percent(result["loss"]), "loss"),
        (numbers.number(result["staleness"]["mean"]), "versions behind, mean"),
        (numbers.number(result["fairness"], 3), "fairness of ages"),
    ]
    return _tile_row(tiles)


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
    return table(heads, rows, numbers_from=1, numbers_to=3) + matches


def _clusters(result: Mapping[str, Any]) -> str:
    heads = ["cluster", "mean age", "peak age", "updates", "deliveries", "behind", "at most"]
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


def _events(events: Sequence[Mapping[str, Any]]) -> str:
    if not events:
        return ""
    rows = [[f"{event['at_s']:.1f} s", event["text"]] for event in events]
    return f"<h2>What happened</h2>{table(['', ''], rows)}"


def settings_of(settings: Mapping[str, Any]) -> str:
    """The settings, in a section that opens on a click."""
    lines = [
        f"{section}.{key} = {value}"
        for section, keys in settings.items()
        if section != "compare"
        for key, value in keys.items()
    ]
    return f"<details><summary>Settings</summary><pre>{escape(chr(10).join(lines))}</pre></details>"


def figure(svg: str, *, wide: bool = False) -> str:
    """A plot in its frame."""
    return f"<figure{' class=wide' if wide else ''}>{svg}</figure>"


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
        f"<title>{escape(title)}</title><style>{_CSS}</style></head>"
        f"<body>{''.join(body)}</body></html>\n"
    )
