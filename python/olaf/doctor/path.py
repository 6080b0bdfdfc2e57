"""The way to a switch or a server: who answers, round trip, loss, size, clocks, versions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from olaf import _olaf
from olaf.doctor import machine
from olaf.doctor.finding import Section
from olaf.values import numbers

EVERY_MS = 10
PATIENCE_MS = 3_000
MUCH_LOSS = 0.01
"""Above this share of lost questions the path needs a look."""
FAR_S = 0.05
"""Above this round trip a synchronous sum waits more than it sums."""
CLOCKS_APART_S = 1.0
"""Ages are corrected for an offset between clocks, but logs of two machines are not."""
OTHER_ENGINE = (
    "or the port is that of an engine that sums (reduce, iswitch, trio, atp): these answer no such "
    "question; name the port of the engine queue"
)
SEGMENT_HEADER = 112
SEAL = 24
LANE_BYTES = 4

ADVICE = {
    "unknown_job": "the switch has no server for this job: give it --upstream, or correct --job",
    "model_too_large": "raise max_parameters at the switch and the server",
    "full": "stop some workers or jobs, or raise max_workers and max_jobs",
    "loop": "switches send in a circle: correct their --upstream",
    "not_admitted": "the switch's admission policy refused it: its log names the reason",
    "worker_id_in_use": "ask again",
}


@dataclass(frozen=True)
class Question:
    """What is asked of a switch or a server."""

    job: int = 1
    parameters: int = 1
    questions: int = 100
    key_file: str | None = None


def path(name: str, address: str, question: Question) -> Section:
    """Ask a switch or a server what the way to it is like. Sends for some seconds at most.

    Raises ValueError for an address or a key that cannot be used.
    """
    config = {
        "job": question.job,
        "parameters": question.parameters,
        "questions": question.questions,
        "every_ms": EVERY_MS,
        "patience_ms": PATIENCE_MS,
        "key_file": question.key_file,
    }
    section = Section(f"{name} {address}")
    longest_s = 30.0 + question.questions * EVERY_MS / 1000
    said = _olaf.probe(address, json.dumps(config), longest_s)
    if said is None:
        section.fix("answers", f"the probe did not end within {longest_s:.0f} s", "ask again")
        return section
    told: dict[str, Any] = json.loads(said)
    section.measured.update(_measured(told))
    if _answers(section, told, name):
        _versions(section, told)
        _delay_and_loss(section, told)
        _size(section, told, question)
        _clock(section, told)
        _job(section, told, question)
    return section


def _measured(told: dict[str, Any]) -> dict[str, Any]:
    asked = told["asked"]
    return {key: value for key, value in told.items() if key != "io"} | {
        "loss": (asked - told["answered"]) / asked if asked else None
    }


def _answers(section: Section, told: dict[str, Any], name: str) -> bool:
    """Whether anybody answers, and lets this worker ask."""
    host, _, port = told["address"].rpartition(":")
    listens = machine.who_listens(host.strip("[]"), int(port))
    section.measured["listens"] = listens
    by = f", {listens} on this machine" if listens else ""
    if told["refused"]:
        code = told["refused"]
        section.fix("answers", f"it refuses: {code}{by}", ADVICE.get(code, "look at its log"))
        return False
    if told["server_silent_ms"] is not None:
        silent = numbers.duration(told["server_silent_ms"] / 1000)
        section.fix(
            "answers",
            f"the switch is there{by}; it has not heard its server for {silent}",
            "start the server, or correct the switch's --upstream",
        )
        return False
    if told["wire_version"] not in (None, told["own_wire_version"]):
        _versions(section, told)
        return False
    if told["wire_version"] is None:
        if told["io"]["connection_refused"]:
            why = "its machine says that nothing listens on that port"
            to_do = f"start it there (olaf {name}), or correct the address"
        else:
            why = f"nothing came back within {numbers.duration(PATIENCE_MS / 1000)}{by}"
            to_do = "see that it runs, that its server runs, and that firewalls let UDP through"
            if name == "switch":
                to_do += f"; {OTHER_ENGINE}"
        advice = told["key_advice"]
        if told["key_refused"]:
            section.fix("answers", f"{advice.partition(': ')[0]}{by}", advice.partition(": ")[2])
        else:
            section.fix("answers", why, f"{to_do}; {advice}" if advice else to_do)
        return False
    who = "a server behind a switch" if told["through_switch"] else "a server, without a switch"
    if name == "switch" and not told["through_switch"]:
        section.fix(
            "answers", f"{who}{by}", "this is no switch: name the switch's address, or use --server"
        )
    elif name == "server" and told["through_switch"]:
        section.fix(
            "answers", f"{who}{by}", "this is a switch: name the server's address, or use --switch"
        )
    else:
        section.ok("answers", f"{who}{by}")
    return True


def _versions(section: Section, told: dict[str, Any]) -> None:
    theirs, ours = told["wire_version"], told["own_wire_version"]
    section.check(
        "wire version",
        f"{theirs} there, {ours} here",
        to_do="install the same release of Olaf on both machines",
        if_bad=theirs != ours,
    )


def _delay_and_loss(section: Section, told: dict[str, Any]) -> None:
    if (median := told["round_trip_median_ns"]) is not None:
        low, middle, high = (
            numbers.duration(told[f"round_trip_{which}_ns"] / 1e9)
            for which in ("min", "median", "max")
        )
        text = f"{middle} (from {low} to {high})"
        if median / 1e9 > FAR_S:
            section.note("round trip", f"{text}: sums wait for it once per window")
        else:
            section.ok("round trip", text)
    loss = section.measured["loss"]
    lost = told["asked"] - told["answered"]
    section.check(
        "loss",
        f"{numbers.percent(loss)}: {lost} of {told['asked']} questions, both ways together",
        to_do="look for a full or faulty link: `ethtool -S`, `tc -s qdisc`, kernel drops in "
        "`nstat`; above 1 % use a queue that merges, and a smaller window",
        if_bad=loss is not None and loss > MUCH_LOSS,
    )


def _size(section: Section, told: dict[str, Any], question: Question) -> None:
    mtu, system = told["mtu_bytes"], told["system_mtu_bytes"]
    needed = _needed_mtu(told, has_key=question.key_file is not None)
    if mtu is None:
        section.fix("path MTU", "not found: every long question was lost", "ask again")
    elif needed is not None and needed > mtu:
        section.fix(
            "path MTU",
            f"{mtu} bytes both ways, and the job's packets have {needed}",
            f"raise the MTU of the path, or start the job anew with mtu_bytes = {mtu} at its "
            "first worker",
        )
    elif mtu < system:
        section.note(
            "path MTU",
            f"{mtu} bytes both ways, although this machine sends {system}: workers find it out",
        )
    else:
        section.ok("path MTU", f"{mtu} bytes both ways")


def _needed_mtu(told: dict[str, Any], *, has_key: bool) -> int | None:
    lanes = min(told["job_segment_lanes"], told["job_parameters"])
    if not lanes:
        return None
    headers = 8 + (40 if told["ipv6"] else 20) + (SEAL if has_key else 0)
    return headers + SEGMENT_HEADER + int(lanes) * LANE_BYTES


def _clock(section: Section, told: dict[str, Any]) -> None:
    if told["clock_error_ns"] is None:
        return
    offset, error = told["clock_offset_ns"] / 1e9, told["clock_error_ns"] / 1e9
    within = f"known to {numbers.duration(error)}"
    ahead = "ahead" if offset > 0 else "behind"
    found = f"the server's is {numbers.duration(abs(offset))} {ahead}" if offset else "the same"
    section.check(
        "clock",
        f"{found}, {within}",
        to_do="let both machines keep time by NTP (timedatectl set-ntp true)",
        if_bad=abs(offset) > CLOCKS_APART_S,
    )


def _job(section: Section, told: dict[str, Any], question: Question) -> None:
    parameters = told["job_parameters"]
    if not parameters:
        section.note("job", f"job {question.job} does not run yet")
        return
    found = f"job {question.job} has a model of {parameters:,} parameters"
    if question.parameters not in (1, parameters):
        section.fix(
            "job",
            f"{found}; yours has {question.parameters:,}",
            "use the network of the job's other workers, or another --job",
        )
    else:
        section.ok("job", found)
