"""Draws what `olaf.cli.looking` saw, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from olaf.cli.consoles import plain_text
from olaf.cli.looking import ENGINES, Look, Status, refusals, total
from olaf.drawing.braille import bar
from olaf.values.numbers import duration, rate, short
from olaf.values.printable import printable

Parts = list[RenderableType | None]

MOST_ROWS = 12
"""Rows of a table; a terminal has few lines."""
EVENTS = 5
BAR = 24
BAD = ("dropped", "rejected", "refused", "failed", "not_delivered", "discarded")


def view(looks: Sequence[Look]) -> RenderableType:
    """All roles, one below the other."""
    return Group(*(_role(_printable(look)) for look in looks))


def _printable(look: Look) -> Look:
    """Without characters that steer a terminal: what answers may be any program."""
    error = None if look.error is None else _without_controls(look.error)
    status = None if look.status is None else _without_controls(look.status)
    return replace(look, error=error, status=status)


def _without_controls(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {_without_controls(key): _without_controls(inner) for key, inner in value.items()}
    return [_without_controls(inner) for inner in value] if isinstance(value, list) else value


def _role(look: Look) -> RenderableType:
    if look.status is None:
        return Panel(
            Text(look.error or "", "red"), title=plain_text(look.address, "bold"), style="red"
        )
    status = look.status
    ready = status["ready"]
    name = {"sum": "worker that sums"}.get(status["role"], status["role"])
    title = plain_text(f"{name}", "bold").append(f" {status['address']}", "not bold")
    about = (
        f"up {duration(status.get('uptime_s'))}, " if status.get("uptime_s") else ""
    ) + f"olaf {status['olaf']['version']}, wire {status['olaf']['wire_version']}"
    parts: list[RenderableType | None] = []
    parts += [Text(f"not ready: {reason}", "red") for reason in ready["reasons"]]
    drawn = {
        "switch": _switch,
        "server": _server,
        "worker": _worker,
        "sum": _sum,
        "sharing controller": _sharing_controller,
        "sharing host": _sharing_host,
    }
    if status["role"] in drawn:
        parts += drawn[status["role"]](look)
    parts += [_old_keys(status), _refusals(status), _traffic(look), _events(status)]
    style = "green" if ready["ready"] else "red"
    body = Group(*(part for part in parts if part is not None))
    return Panel(
        body, title=title, subtitle=plain_text(about), title_align="left", border_style=style
    )


def _old_keys(status: Status) -> RenderableType | None:
    """How many parties use a key that was replaced; nothing without any."""
    tables = [status, *(status.get(engine, {}) for engine in ENGINES)]
    count = sum(table.get("keys", {}).get("with_old_key", 0) for table in tables)
    return Text(f"parties with an old key: {count}", "yellow") if count else None


def _switch(look: Look) -> Parts:
    status = look.status or {}
    parts: Parts = []
    if "fates" in status:
        queue, link = status["queue"], status["uplink"]
        pace = rate(None if link["bits_per_second"] is None else link["bits_per_second"] / 8)
        parts.append(
            Text.assemble(
                ("occupancy ", "dim"),
                (bar(queue["used"] / queue["slots"], BAR), "cyan"),
                f" {queue['used']} of {queue['slots']} slots, {queue['discipline']}",
                ("   uplink ", "dim"),
                pace if link["bits_per_second"] else "not paced",
                ("   workers ", "dim"),
                _workers(status),
            )
        )
        parts.append(_fates("updates", status["fates"], look, "fates."))
        rows = [
            [
                f"{c['job']}",
                f"{c['cluster']}",
                "active" if c["active"] else "quiet",
                _per_s(look, f"clusters.{c['job']}.{c['cluster']}.received"),
                short(c["received"]),
                short(c["merged"]),
                short(c["replaced"]),
                short(c["dropped"] + c["rejected"]),
                short(c["departures"]),
            ]
            for c in status["clusters"]
        ]
        heads = ["job", "cluster", "", "in/s", "received", "merged", "replaced", "lost", "left"]
        parts.append(_table(heads, rows))
        parts.append(_peers(status))
    for engine in ENGINES:
        if engine in status:
            parts += _engine(look, engine, status[engine])
    return parts


def _engine(look: Look, engine: str, table: Mapping[str, Any]) -> Parts:
    name = "pieces" if "pieces" in table else "gradients"
    rows = []
    for job in table.get("jobs", ()):
        workers = job.get("workers")
        slots = job.get("slots")
        rows.append(
            [
                f"{job['job']}",
                str(len(workers) if isinstance(workers, list) else workers),
                f"{job['used_slots']} of {slots}" if slots else "-",
                str(job.get("closed") or "open").replace("_", " "),
            ]
        )
    return [
        _fates(f"{engine}: pieces", table.get(name, {}), look, f"{engine}.{name}."),
        _table(["job", "workers", "slots", ""], rows),
    ]


def _server(look: Look) -> Parts:
    parts: Parts = []
    for job in (look.status or {})["jobs"]:
        path = f"jobs.{job['job']}."
        fairness = job["fairness"]
        parts.append(
            Text.assemble(
                ("job ", "dim"),
                f"{job['job']}",
                ("   version ", "dim"),
                f"{job['version']:,}",
                ("   deliveries ", "dim"),
                f"{job['deliveries']:,} ({_per_s(look, path + 'deliveries')}/s)",
                ("   parameters ", "dim"),
                f"{job['parameters']:,}",
                ("   fairness ", "dim"),
                "-" if fairness is None else f"{fairness:.3f}",
            )
        )
        parts.append(_fates("updates", job["fates"], look, path + "fates."))
        rows = [
            [
                f"{c['cluster']}",
                f"{c['workers']}",
                _per_s(look, f"{path}clusters.{c['cluster']}.deliveries"),
                duration(_s(c["aom_now_ns"])),
                duration(_s(c["aom_mean_ns"])),
                "-" if c["staleness_mean"] is None else f"{c['staleness_mean']:.1f}",
                "-" if c["last_reward"] is None else f"{c['last_reward']:.1f}",
            ]
            for c in job["clusters"]
        ]
        heads = ["cluster", "workers", "deliveries/s", "age", "mean age", "behind", "reward"]
        parts.append(_table(heads, rows))
    return parts or [Text("no job yet", "dim")]


def _worker(look: Look) -> Parts:
    s = look.status or {}
    own = {name: s[name] for name in ("acknowledged", "not_delivered", "unconfirmed", "discarded")}
    return [
        Text.assemble(
            ("job ", "dim"),
            f"{s['job']}",
            ("   cluster ", "dim"),
            f"{s['cluster']}",
            ("   worker ", "dim"),
            f"{s['worker']}",
            ("   model version ", "dim"),
            f"{s['model_version']}",
            ("   updates ", "dim"),
            f"{s['updates']:,} ({_per_s(look, 'updates')}/s)",
            ("   round trip ", "dim"),
            duration(_s(s["round_trip_ns"])),
        ),
        _fates("updates", own, look, ""),
    ]


def _sum(look: Look) -> Parts:
    s = look.status or {}
    return [
        Text.assemble(
            ("job ", "dim"),
            f"{s['job']}",
            ("   rank ", "dim"),
            f"{s['rank']} of {s['workers']}",
            ("   operations ", "dim"),
            f"{s['operations']['done']:,} done, {s['operations']['failed']:,} failed",
            ("   round trip ", "dim"),
            duration(_s(s.get("round_trip_ns"))),
        )
    ]


def _sharing_controller(look: Look) -> Parts:
    s = look.status or {}
    jobs = [
        [
            f"{job['job']}",
            f"failed: {job['failure']}" if job["failed"] else job["phase"],
            f"{job['heard']} of {job['hosts']}",
            f"{job['left']}",
            duration(_s(job["silent_ns"])),
        ]
        for job in s["jobs"]
    ]
    used = [[f"{r['resource']}", f"{r['used']} of {r['units']}"] for r in s["resources"]]
    return [
        Text.assemble(
            ("grants ", "dim"),
            f"{s['granted']:,} ({_per_s(look, 'granted')}/s)",
            ("   rounds without one ", "dim"),
            f"{s['aborted']:,} ({_per_s(look, 'aborted')}/s)",
            ("   timers late ", "dim"),
            _late(s["late"]),
        ),
        _table(["job", "", "hosts heard", "left", "longest silence"], jobs),
        _table(["resource", "units in use"], used),
    ]


def _sharing_host(look: Look) -> Parts:
    s = look.status or {}
    played = s["played"]
    state = "locked" if s["locked"] else "may use the switches" if s["held"] else "without them"
    controller = s["controller"]
    heard = sum(peer["heard"] for peer in s["peers"])
    return [
        Text.assemble(
            ("job ", "dim"),
            f"{s['job']}",
            ("   host ", "dim"),
            f"{s['rank']}",
            ("   launches ", "dim"),
            f"{s['launches']:,} ({_per_s(look, 'launches')}/s)",
            ("   in the switches ", "dim"),
            f"{played['in_network']:,} ({_per_s(look, 'in_network')}/s)",
            ("   now ", "dim"),
            state,
        ),
        Text.assemble(
            ("controller ", "dim"),
            f"{controller['address']} ",
            f"heard {duration(_s(controller['silent_ns']))} ago"
            if controller["heard"]
            else ("not heard", "red"),
            ("   other hosts heard ", "dim"),
            f"{heard} of {len(s['peers'])}",
            ("   timers late ", "dim"),
            _late(played["late"]),
        ),
        Text(f"{s['mixed']} all-reduces in two modes", "red") if s["mixed"] else None,
    ]


def _late(late: Mapping[str, float]) -> str:
    """Half of the timers, and 99 of 100 of them, were late by less."""
    return f"{duration(late['p50_us'] / 1e6)}, 99 %: {duration(late['p99_us'] / 1e6)}"


def _fates(what: str, fates: Mapping[str, Any], look: Look, path: str) -> RenderableType:
    line = Text.assemble((f"{what} ", "dim"))
    for fate, value in fates.items():
        count = total(value)
        if fate != "received" and count:
            style = "red" if fate in BAD else "yellow" if fate == "waiting" else ""
            changed = look.rates.get(path + fate)
            speed = "" if changed is None or fate == "waiting" else f" ({_number(changed)}/s)"
            line.append(f"  {fate.replace('_', ' ')} ", "dim")
            line.append(f"{count:,.0f}{speed}", style)
    return line


def _peers(status: Status) -> RenderableType | None:
    line = Text()
    for server in status["servers"]:
        what = "switch above" if server["is_switch"] else "server"
        _peer(line, f"{what} of job {server['job']}", server)
    for switch in status["switches"]:
        _peer(line, f"switch below, job {switch['job']}", switch)
    return line if line else None


def _peer(line: Text, what: str, peer: Mapping[str, Any]) -> None:
    if line:
        line.append("   ")
    heard = "heard" if peer["alive"] else f"silent for {duration(_s(peer['silent_ns']))}"
    line.append(f"{what} ", "dim").append(f"{peer['address']} ")
    line.append(heard, "green" if peer["alive"] else "red")


def _workers(status: Status) -> str:
    alive = sum(worker["alive"] for worker in status["workers"])
    silent = len(status["workers"]) - alive
    return f"{alive}" + (f" and {silent} silent" if silent else "")


def _refusals(status: Status) -> RenderableType | None:
    found = refusals(status)
    rows = [[one.what, one.reason, f"{one.count:,}"] for one in found]
    return _table(["refused", "why", "count"], rows, style="red") if rows else None


def _traffic(look: Look) -> RenderableType:
    tables = ["io.", *(f"{engine}.io." for engine in ENGINES)]

    def moved(key: str) -> str:
        known = [look.rates[name + key] for name in tables if name + key in look.rates]
        return rate(sum(known)) if known else "-"

    return Text.assemble(
        ("traffic  received ", "dim"),
        moved("received_bytes"),
        ("  sent ", "dim"),
        moved("sent_bytes"),
    )


def _events(status: Status) -> RenderableType | None:
    newest = list(status.get("recent_events", ()))[-EVENTS:]
    lines = []
    for event in reversed(newest):
        left_out = ("event", "s_ago")
        details = ", ".join(f"{k} {v}" for k, v in event.items() if k not in left_out)
        line = Text.assemble((f"{duration(event.get('s_ago'))} ago  ", "dim"))
        line.append(f"{event['event'].replace('_', ' ')}: {details}"[:160].replace("_", " "))
        lines.append(line)
    return Group(*lines) if lines else None


def _table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, style: str = ""
) -> RenderableType:
    rows = list(rows)
    if not rows:
        return Text("")
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for at, head in enumerate(heads):
        is_text = any(not _is_number(row[at]) for row in rows)
        table.add_column(head, justify="left" if is_text else "right", style=style)
    for row in rows[:MOST_ROWS]:
        table.add_row(*(Text(cell) for cell in row))
    if len(rows) > MOST_ROWS:
        return Group(table, Text(f"and {len(rows) - MOST_ROWS} more", "dim"))
    return table


def _is_number(cell: str) -> bool:
    return cell[:1].isdigit() or cell[:1] == "-"


def _per_s(look: Look, path: str) -> str:
    changed = look.rates.get(path)
    return "-" if changed is None else _number(changed)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _s(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e9
