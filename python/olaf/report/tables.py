"""Tables for a terminal, from run.json and compare.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from olaf.jobs.instruments import phrases
from olaf.report.evaluations import measure
from olaf.values.numbers import counted, duration, number, percent, rate, score

Result = Mapping[str, Any]


def segments_of(result: Result) -> int:
    """Number of segments of the run's model: a contribution counts one, an update all of them."""
    return max(int(result.get("model", {}).get("segments") or 1), 1)


def in_updates(contributions: float, segments: int) -> str:
    """Contributions counted as whole updates: ``1,234``, or ``1,234.5`` if some are incomplete."""
    updates = contributions / segments
    return f"{updates:,.0f}" if updates == round(updates) else f"{updates:,.1f}"


def unit_note(segments: int) -> str:
    """The unit of the counts, if an update is more than one contribution."""
    return f"counted in updates; each has {counted(segments, 'segment')} that travel separately"


def titled(title: str, table: Table) -> Group:
    """A table under its title, which has the width of the terminal and not of the table."""
    return Group(Text(title, style="italic"), table)


def measures(result: Result) -> list[tuple[str, str]]:
    """The measures of a run in words, in the order of the table."""
    age, reward, staleness = result["age_of_model"], result["reward"], result["staleness"]
    segments = segments_of(result)
    rows = [
        ("outcome", f"{result['outcome']}: {result['reason']}"),
        ("reward", _reward(reward)),
        (
            "wall time",
            f"{duration(result['wall_s'])}, first update after {duration(result['ready_s'])}",
        ),
        (
            "environment steps",
            f"{result['env_steps']:,} ({number(result['env_steps_per_s'], 0)}/s), "
            f"{counted(reward['episodes'], 'episode')}",
        ),
        ("updates", f"{result['updates']:,} ({number(result['updates_per_s'])}/s)"),
    ]
    if session := _session(result):
        rows.append(("resumed", session))
    if result.get("normalise") == "on":
        rows.append(("observations", "normalised by the moments that the model carries"))
    rows += measure(result)
    rows += _learning(result)
    if result.get("local"):
        return rows
    rows.append(
        (
            "Age-of-Model",
            f"mean {duration(age['mean_s'])}, mean of the peaks "
            f"{duration(age['peak_mean_s'])}{_since(result)}",
        )
    )
    if len(age["clusters"]) > 1:
        rows += [
            (
                f"  cluster {c['cluster']}",
                f"mean {duration(c['mean_s'])}, mean of the peaks {duration(c['peak_mean_s'])}, "
                f"{_of_updates(c['contributions'], segments, 'update', 'updates')} in "
                f"{_of_updates(c['deliveries'], segments, 'delivery', 'deliveries')}",
            )
            for c in age["clusters"]
        ]
    rows += [
        (
            "staleness",
            f"mean {number(staleness['mean'])}, at most {_versions(staleness['max'])}"
            f"{_since(result)}",
        ),
        ("loss", percent(result["loss"])),
        ("fairness", number(result["fairness"], 4)),
        ("goodput", rate(result["goodput_bytes_per_s"])),
    ]
    aggregate = result.get("aggregate", {"mode": "each"})
    if aggregate["mode"] != "each":
        text = f"{aggregate['mode']}: applied {counted(aggregate['collections'], 'time')}"
        if aggregate["mode"] == "round":
            text += f", {aggregate['rounds_short']:,} of them without some worker"
        rows.append(("aggregation", text))
    if result["restarts"]:
        text = ", ".join(f"{name} {count}x" for name, count in result["restarts"].items())
        rows.append(("started again", text))
    return rows


def _versions(most: float | None) -> str:
    return "-" if most is None else counted(round(most), "version")


def _of_updates(contributions: float, segments: int, noun: str, nouns: str) -> str:
    text = in_updates(contributions, segments)
    return f"{text} {noun if text == '1' else nouns}"


def _reward(reward: Mapping[str, Any]) -> str:
    """The mean reward, and the episodes that it is the mean of."""
    episodes = min(reward["window"], reward["episodes"])
    if not episodes:
        return "- (no episode has ended)"
    last = "the one episode" if episodes == 1 else f"the last {episodes:,} episodes"
    best = f"; best {score(reward['best'])}" if reward["best"] is not None else ""
    return f"{score(reward['mean'])} (mean of {last}{best})"


def _learning(result: Result) -> list[tuple[str, str]]:
    """What the learners reported last; nothing for a record of an earlier version."""
    learning = result.get("learning") or {}
    numbers, steps = learning.get("episode_numbers", {}), learning.get("episode_steps")
    rows = [
        ("last episodes", ", ".join(phrases({}, steps, numbers))),
        ("learning at the end", ", ".join(phrases(learning.get("losses", {}), None, {}))),
    ]
    return [(name, text) for name, text in rows if text]


def _session(result: Result) -> str:
    """For a resumed run: a remark about the values of its last session."""
    session = result.get("session", {"number": 1})
    if session["number"] == 1:
        return ""
    return (
        f"session {session['number']}, from {duration(session['began_at_s'])} on: "
        f"{counted(session['updates'], 'update')}, "
        f"{counted(session['env_steps'], 'environment step')}; rates, fates and ages are "
        "of this session"
    )


def _since(result: Result) -> str:
    """A remark if a server was killed, since its averages of ages and staleness are then lost."""
    restarts = result["restarts"].get("server", 0)
    return f" (since server #{restarts + 1} started)" if restarts else ""


def headline(result: Result) -> str:
    """The setting of the run, in one line."""
    if result.get("local"):
        return (
            f"{result['environment']}, one process without a network, {result['learner']} learner, "
            f"seed {result['seed']}"
        )
    if is_tcp(result):
        return (
            f"{result['environment']}, {counted(result['workers'], 'worker')}, "
            f"plain TCP parameter server, uplink {result['uplink']}, rule {result['rule']}, "
            f"seed {result['seed']}"
        )
    return (
        f"{result['environment']}, {counted(result['workers'], 'worker')} in "
        f"{counted(result['clusters'], 'cluster')}, "
        f"{result['queue']} queue of {result['slots']}, uplink {result['uplink']}, "
        f"rule {result['rule']}, seed {result['seed']}"
    )


def is_tcp(result: Result) -> bool:
    """True if a run had a plain TCP parameter server, and no switch."""
    return bool(result.get("transport", "udp") == "tcp")


def result_table(result: Result) -> Group:
    """The final table of a run: measures, then every fate and the sum."""
    table = Table(show_header=False, box=None)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, text in measures(result):
        table.add_row(name, text)
    return titled(headline(result), table)


def fates_table(result: Result) -> Group:
    """Every update's fate, the party that counted it, and whether the sums match."""
    fates, segments = result["fates"], segments_of(result)
    title = "Where every update ended"
    if segments > 1:
        title += f" ({unit_note(segments)})"
    table = Table(box=None)
    table.add_column("fate", style="bold")
    table.add_column("updates", justify="right")
    table.add_column("share", justify="right")
    table.add_column("counted by")
    table.add_column("note", overflow="fold", style="dim")
    for row in fates["rows"]:
        style = "yellow" if row["lost"] and row["count"] else ""
        table.add_row(
            row["fate"],
            in_updates(row["count"], segments),
            percent(row["count"] / fates["pushed"] if fates["pushed"] else None, 1),
            row["counted"],
            row["note"],
            style=style,
        )
    table.add_section()
    table.add_row("sum", in_updates(fates["total"], segments), "", "", "")
    table.add_row("pushed", in_updates(fates["pushed"], segments), "", "workers", fates["note"])
    if fates["matches"]:
        table.add_row(Text("the sums match", style="green"))
    else:
        reason = "; ".join(fates["discrepancies"]) or "sum and pushed differ"
        table.add_row(Text("the sums do NOT match", style="bold red"), "", "", "", reason)
    return titled(title, table)


def comparison_rows(runs: Sequence[Result]) -> list[tuple[str, list[str]]]:
    """Measures as rows, with one text per run."""
    measure: list[tuple[str, Any]] = [
        ("outcome", lambda r: r["outcome"]),
        ("time to the reward", lambda r: duration(r["reached_s"])),
        ("reward at the end", lambda r: score(r["reward"]["mean"])),
        ("best reward", lambda r: score(r["reward"]["best"])),
        ("wall time", lambda r: duration(r["wall_s"])),
        ("updates", lambda r: f"{r['updates']:,}"),
        ("environment steps", lambda r: f"{r['env_steps']:,}"),
        ("CPU seconds", lambda r: number(r.get("cpu_s"))),
        ("env steps/s", lambda r: number(r["env_steps_per_s"], 0)),
        ("loss", lambda r: percent(r["loss"])),
        ("Age-of-Model, mean", lambda r: duration(r["age_of_model"]["mean_s"])),
        ("Age-of-Model, mean of the peaks", lambda r: duration(r["age_of_model"]["peak_mean_s"])),
        ("staleness, versions", lambda r: number(r["staleness"]["mean"])),
        ("fairness", lambda r: number(r["fairness"], 4)),
        ("sums match", lambda r: "yes" if r["fates"]["matches"] else "NO"),
    ]
    return [(name, [text(run) for run in runs]) for name, text in measure]


AGAINST: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("to_the_mark_s", "seconds to the mark", lambda value: number(value, 2)),
    ("env_steps", "environment steps", lambda value: number(value, 0)),
    ("env_steps_per_machine", "environment steps per machine", lambda value: number(value, 0)),
    ("env_steps_per_worker", "environment steps per worker", lambda value: number(value, 0)),
    ("cpu_s", "CPU seconds", lambda value: number(value, 1)),
    ("reward", "reward at the end", score),
)
"""Measure, its name, and the format of its value, for a run beside its baseline."""


def against_rows(result: Result) -> list[list[str]]:
    """A run beside its one-process baseline: measure, the run, the baseline, and the ratio."""
    against = result["against"]
    if "skipped" in against:
        return []
    return [
        [
            name,
            text(against["run"][key]),
            text(against["local"][key]),
            number(against["ratios"][key], 2),
        ]
        for key, name, text in AGAINST
    ]


def against_note(result: Result) -> str:
    """The note that explains `against_rows`."""
    against = result["against"]
    if "skipped" in against:
        return f"not run: {against['skipped']}"
    ends = f"The baseline: {against['outcome']}, {against['reason']}."
    if against["outcome"] == "interrupted":
        return f"{ends} It was interrupted, so its numbers are not final."
    return (
        f"{ends} Seconds count from the launch. CPU seconds are those of all processes of a run "
        "with one session. The ratio is the run divided by the baseline."
    )


def against_table(result: Result) -> Group:
    """A run beside its baseline, see `olaf.runs.against`."""
    table = Table(box=None)
    table.add_column("", style="bold")
    for name in ("this run", "one process", "ratio"):
        table.add_column(name, justify="right")
    for row in against_rows(result):
        table.add_row(*row)
    return titled("Against one process without a network", table)


SWITCH_COLUMNS = (
    "received",
    "sent_alone",
    "merged",
    "departures",
    "replaced",
    "filtered",
    "dropped",
    "rejected",
    "waiting",
)


def switches_table(result: Result) -> Group:
    """What each switch received, and the fates there, in updates."""
    segments = segments_of(result)
    title = "Switches" if segments == 1 else f"Switches ({unit_note(segments)})"
    table = Table(box=None)
    table.add_column("")
    for column in SWITCH_COLUMNS:
        name = "datagrams out" if column == "departures" else column.replace("_", " ")
        table.add_column(name, justify="right")
    for row in result["switches"]:
        table.add_row(row["name"], *(in_updates(row[name], segments) for name in SWITCH_COLUMNS))
    return titled(title, table)


def replay_table(summary: Mapping[str, Any], title: str) -> Group:
    """The summary of a replayed trace."""
    table = Table(box=None)
    clusters = summary["clusters"]
    rows = clusters.items() if isinstance(clusters, Mapping) else enumerate(clusters)
    fates = ("delivered", "merged", "replaced", "filtered", "dropped", "rejected")
    for name in ("cluster", "mean AoM", "mean of AoM peaks", *fates, "loss"):
        table.add_column(name, justify="right")
    for key, row in rows:
        counts = row.get("fates", row)
        table.add_row(
            str(row.get("cluster", key)),
            duration(_seconds(row["aom_mean_ns"])),
            duration(_seconds(row["aom_peak_mean_ns"])),
            *(f"{counts.get(fate, 0):,}" for fate in fates),
            percent(row["loss"]),
        )
    table.caption = f"fairness {number(summary.get('fairness'), 4)}"
    table.caption_justify = "left"
    return titled(title, table)


def _seconds(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e9
