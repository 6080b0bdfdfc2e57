"""Decisions as sentences, in one place for the log, the lists and ``olaf schedule explain``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from olaf.schedule.worth import SAID, show

Json = dict[str, Any]

MOST_NAMES = 8
"""Number of names of a long list that are shown."""


def event(message: Json) -> str:
    """A line of the service's log."""
    return _EVENTS.get(message["event"], _unknown)(message)


def _unknown(message: Json) -> str:
    return " ".join(f"{key}={value}" for key, value in message.items())


_CLOSED = {
    "gave_way": "gave way to others",
    "full": "found no place",
    "late": "were too slow",
    "no_files": "could not be accepted (no files left)",
}

_EVENTS: dict[str, Callable[[Json], str]] = {
    "listening": lambda m: (
        f"listening on {m['url']}, store {m['store']}: {m['replayed']} commands replayed "
        f"in {m['took_s']:.2f} s"
    ),
    "suppressed": lambda m: f"{m['lines']} more lines of {m['of']} were left out",
    "changed": lambda m: f"changed, for jobs from now on: {m['what']}",
    "completed": lambda m: (
        "the store was written before stores kept bandwidth, speed-up and patterns; it has now "
        + ", ".join(
            f"{SAID[key]} {show(key, value)}"
            for key, value in m["network"].items()
            if key != "latency_ns"
        )
        + f" and {plural(len(m['patterns']), 'pattern')} ({names(m['patterns'])}); start it once "
        "with other values and --change if its jobs were submitted under others"
    ),
    "shares": lambda m: (
        "jobs of this store may share switches (join "
        + (m["join"] if isinstance(m["join"], str) else "one")
        + "): a switch may have more jobs than its capacity, and a program of yours must make "
        "them take turns. A new store shares nothing without --join"
    ),
    "connections_closed": lambda m: (
        "connections closed: "
        + ", ".join(f"{m[key]} {text}" for key, text in _CLOSED.items() if key in m)
    ),
    "stopped": lambda m: f"stopped after {m['events']} events",
    "queued": lambda m: f"job {m['job']} waits at place {m['position']}: {waiting(m['why'])}",
    "started": lambda m: (
        f"job {m['job']} runs on {plural(len(m['hosts']), 'host')} ({names(m['hosts'])}): "
        f"{placed(m['reason'])}"
    ),
    "planned": lambda m: (
        f"job {m['job']}: assigned "
        + (f"tree {m['generation']} with root {m['root']}" if m["root"] else "no tree")
        + f": {tree(m['reason'])}"
    ),
    "release": lambda m: f"job {m['job']} is told to release tree {m['generation']}",
    "acquire": lambda m: (
        f"job {m['job']} is told to acquire tree {m['generation']}: "
        f"{plural(len(m['tree']['switches']), 'switch', 'switches')} up to {m['tree']['root']}"
    ),
    "fence": lambda m: f"job {m['job']} is dead: its tree {m['generation']} is to be fenced",
    "stop": lambda m: f"job {m['job']} is told to stop",
    "ended": lambda m: (
        f"job {m['job']} {'was ' if m['state'] == 'cancelled' else ''}{m['state']}"
        + (f": {m['note']}" if m["note"] else "")
    ),
    "drained": lambda m: f"{m['name']} is {'drained' if m['drained'] else 'not drained any more'}",
}


def waiting(why: Json) -> str:
    """Why a job waits for hosts."""
    if why["kind"] == "hosts":
        return f"it is the head and needs {why['hosts']} hosts, {why['free']} are free"
    if why["kind"] == "behind":
        return f"job {why['head']} is the head; no job overtakes it"
    return fields(why)


def placed(reason: Json) -> str:
    """The reason for these hosts."""
    match reason["kind"]:
        case "first":
            return "the first free hosts"
        case "random":
            return "random free hosts"
        case "fragments":
            alpha, score = reason["alpha_millis"] / 1000, reason["score_millis"] / 1000
            return (
                f"fewest fragments: {reason['job']} of the job + {alpha:g} x "
                f"{reason['free_after']} of the free hosts (before: {reason['free_before']}) "
                f"= {score:g}"
            )
    return fields(reason)


def tree(reason: Json) -> str:
    """The reason for the tree, or for no tree."""
    say = _TREES.get(reason["kind"])
    return fields(reason) if say is None else say(reason)


def _looked(reason: Json) -> str:
    return f"each of the {plural(reason['candidates'], 'tree')} looked at conflicts with"


_TREES: dict[str, Callable[[Json], str]] = {
    "one_host": lambda r: "it has one host: nothing to sum",
    "off": lambda r: "the policy gives no trees",
    "cut": lambda r: "no switch that is not drained is above all its hosts",
    "too_large": lambda r: f"it needs {r['units']} units, a resource has {r['capacity']}",
    "conflict": lambda r: f"{_looked(r)} {jobs(r['with'])}",
    "no_gain": lambda r: f"it gains nothing by one, and conflicts with {jobs(r['with'])}",
    "left_out": lambda r: f"{_looked(r)} jobs that do not share with it: {jobs(r['with'])}",
    "alone": lambda r: "it conflicts with no other tree",
    "moved": lambda r: f"it conflicts with no other tree; made room for job {r['made_room_for']}",
    "shares": lambda r: f"takes turns with {jobs(r['with'])}",
}


def policy(told: Json) -> str:
    """``fragments (alpha millis 500)``."""
    return fields({"kind": told["policy"], **{k: v for k, v in told.items() if k != "policy"}})


def fields(reason: Json) -> str:
    """A reason from a newer core, as it is."""
    rest = ", ".join(f"{key} {value}" for key, value in reason.items() if key != "kind")
    return str(reason["kind"]).replace("_", " ") + (f" ({rest})" if rest else "")


def names(many: list[str]) -> str:
    """``h0, h1, .. h9``."""
    if len(many) <= MOST_NAMES:
        return ", ".join(many)
    return f"{', '.join(many[: MOST_NAMES - 1])}, .. {many[-1]}"


def jobs(numbers: Iterable[int]) -> str:
    """``job 3``, ``jobs 3, 5``."""
    known = [str(number) for number in numbers]
    if not known:
        return "nobody"
    return f"job{'s' if len(known) > 1 else ''} {names(known)}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """``1 host``, ``2 hosts``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def explanation(told: Json) -> list[tuple[str, str]]:
    """``olaf schedule explain``: labels and sentences."""
    job = told["job"]
    lines = [("job", f"{job['job']} {job['name']}: {_state(job)}")]
    lines.append(("asked", _asked(job)))
    if told["waiting"] is not None:
        lines.append(("waits", f"at place {job['position']}: {waiting(told['waiting'])}"))
    if told["hosts_by_switch"]:
        lines += _hosts(told)
    if job["state"] in ("running", "stopping"):
        lines += _tree(told)
    elif job["held"] is not None:
        held = job["held"]
        lines.append(
            (
                "fencing",
                f"tree {held['generation']} up to {held['root']}: the switches "
                "have not confirmed that they refuse it",
            )
        )
    return lines


def _state(job: Json) -> str:
    return f"{job['state']}, {job['note']}" if job["note"] else str(job["state"])


def _asked(job: Json) -> str:
    pattern = f"pattern {job['pattern']}" if job["pattern"] else "no pattern"
    steps = f", {plural(job['steps'], 'step')}" if job["steps"] else ""
    wins = f"; a tree saves it {job['gain'] / 1e9:.3g} host-seconds per second"
    return f"{plural(job['hosts'], 'host')}, {pattern}{steps}{wins}"


def _hosts(told: Json) -> list[tuple[str, str]]:
    by_switch = told["hosts_by_switch"]
    lines = []
    if told["placed"] is not None:
        lines.append(("hosts", placed(told["placed"])))
    for switch, hosts in list(by_switch.items())[:MOST_NAMES]:
        lines.append(("", f"{switch}: {names(hosts)}"))
    if len(by_switch) > MOST_NAMES:
        lines.append(("", f".. and below {len(by_switch) - MOST_NAMES} other switches"))
    return lines


def _blocked(told: Json) -> list[tuple[str, str]]:
    """The resources for which a job without a tree waits; one line if all trees need the same."""
    blocked, again = told["blocked"], told.get("again")
    if again == "never" and any(each["by"] for each in blocked):
        return [("", "for good: this policy gives a tree when a job begins, or never")]
    lines = []
    for each in blocked:
        by = each["by"]
        held = f"{jobs(by)} {'hold' if len(by) > 1 else 'holds'}"
        what = f"for {each['resource']}, which {held}" if by else f"{each['resource']} is drained"
        lines.append((f"up to {each['root']}: ", what))
    if len({what for _, what in lines}) == 1:
        lines = [("", lines[0][1])]
    said = [("waits" if at == 0 else "", f"{up}{what}") for at, (up, what) in enumerate(lines)]
    if again == "arrival" and said:
        said.append(("", "this policy looks again when the next job begins"))
    return said


def _tree(told: Json) -> list[tuple[str, str]]:
    job, held = told["job"], told["job"]["held"]
    lines = []
    if told["tree"] is None:
        why = tree(told["why_tree"]) if told["why_tree"] else "none was planned"
        lines.append(("tree", f"none: {why}"))
        lines += _blocked(told)
    else:
        switches = told["tree"]["switches"]
        lines.append(
            (
                "tree",
                f"{job['generation']}, {plural(len(switches), 'switch', 'switches')} up to "
                f"{told['tree']['root']}: {tree(told['why_tree'])}",
            )
        )
        if told["shares_with"]:
            lines.append(("shares", f"with {jobs(told['shares_with'])}, in turns"))
    if held is not None:
        phases = {
            "acquiring": "told to acquire, has not answered",
            "held": "acquired",
            "releasing": "told to release, has not answered",
        }
        lines.append(
            (
                "holds",
                f"tree {held['generation']} up to {held['root']}: "
                f"{phases.get(held['phase'], held['phase'])}",
            )
        )
    wait = told["waits_for"]
    if wait is not None and wait["own"]:
        lines.append(("waits", "until it has released its own earlier tree"))
    elif wait is not None:
        lines.append(
            ("waits", f"for {wait['resource']}, which {jobs(wait['holders'])} has still to release")
        )
    if job["migrations"]:
        lines.append(("moved", plural(job["migrations"], "time")))
    return lines
