"""Checks the logs of hosts and controllers that shared switches (MINA §IV-B)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from olaf.errors.usage import ConfigurationError
from olaf.schedule.sharing import SharingCluster

NEVER = 2**63
"""The end of an all-reduce whose end is in no log."""


@dataclass(frozen=True, slots=True)
class Use:
    """One all-reduce of a job that used the switches, over all its hosts."""

    job: int
    index: int
    begin_ns: int
    end_ns: int


@dataclass(slots=True)
class Account:
    """The contents of the logs."""

    launches: int = 0
    in_network: int = 0
    grants: int = 0
    aborts: int = 0
    fenced: list[int] = field(default_factory=list)
    controllers: int = 0
    locked_ns: list[int] = field(default_factory=list)
    decide_ns: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    summaries: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    """The summary of each host that has ended, by job and rank."""
    late_us: dict[str, float] = field(default_factory=dict)
    """Lateness of timers: ``p50`` is the median, and so on, for the worst process."""


def live_score(cluster: SharingCluster, said: Account) -> float | None:
    """The switches' share of the possible gain, over all jobs, as the simulator's score.

    None if a host has not ended, or if there is nothing to gain.
    """
    gained = possible = 0
    for job in cluster.jobs:
        hosts = [said.summaries.get((job.job, rank)) for rank in range(len(job.hosts))]
        ended = [host for host in hosts if host is not None]
        if len(ended) < len(hosts):
            return None
        gained += ended[0]["none_ns"] - max(host["took_ns"] for host in ended)
        possible += ended[0]["none_ns"] - ended[0]["all_ns"]
    return gained / possible if possible else None


def account(cluster: SharingCluster, files: Iterable[Path]) -> Account:
    """Read the logs; ``wrong`` has a sentence for each broken rule.

    If an all-reduce has a begin and no end in the logs, it uses the switches until its job's tree
    is torn down, or for ever.
    """
    said = Account()
    launches: dict[tuple[int, int], dict[int, dict[str, Any]]] = defaultdict(dict)
    done: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    fenced: dict[int, int] = {}
    for line in _lines(files):
        if line.get("at") == "launch":
            launches[line["job"], line["index"]][line["host"]] = line
            said.launches += 1
            said.in_network += line["in_network"]
            said.locked_ns.append(line["locked_ns"])
            said.decide_ns.append(line["decide_ns"])
        elif line.get("at") == "done":
            done[line["job"], line["index"]][line["host"]] = line["ns"]
        elif line.get("at") == "ended":
            said.summaries[line["job"], line["host"]] = line["summary"]
            _later(said, "host", line["summary"])
        elif line.get("event") == "ended":
            _later(said, "controller", line)
        elif line.get("event") == "fenced":
            fenced.setdefault(line["job"], line["ns"])
            said.fenced.append(line["job"])
        said.grants += line.get("event") == "granted"
        said.aborts += line.get("event") == "aborted"
        said.controllers += line.get("event") == "listening"
    for (job, index), hosts in sorted(launches.items()):
        modes = {host: line["in_network"] for host, line in hosts.items()}
        if len(set(modes.values())) > 1:
            said.wrong.append(f"job {job} launched operation {index} in two modes: {modes}")
        if any(modes.values()):
            ended = done[job, index]
            down = fenced.get(job, NEVER)
            end = max(ended.get(host, down) for host in hosts)
            begin = min(line["ns"] for line in hosts.values())
            said.uses.append(Use(job, index, begin, end))
    said.wrong += _beyond(cluster, said.uses)
    return said


def _later(said: Account, who: str, line: dict[str, Any]) -> None:
    for key in ("p50", "p99"):
        name = f"{who}_{key}"
        said.late_us[name] = max(said.late_us.get(name, 0.0), line[f"late_us_{key}"])


def _beyond(cluster: SharingCluster, uses: list[Use]) -> list[str]:
    """Each moment at which a resource was used beyond its units."""
    wrong = []
    jobs = {job.job: job for job in cluster.jobs}
    for resource, units in cluster.capacity.items():
        of_it = [use for use in uses if resource in jobs[use.job].resources]
        moments = [(use.begin_ns, 1, use) for use in of_it]
        moments += [(use.end_ns, 0, use) for use in of_it]
        running: dict[int, int] = defaultdict(int)
        for ns, begins, use in sorted(moments, key=lambda moment: moment[:2]):
            running[use.job] += 1 if begins else -1
            holders = sorted(job for job, count in running.items() if count > 0)
            if begins and sum(jobs[job].units for job in holders) > units:
                wrong.append(f"resource {resource} was used at {ns} ns by jobs {holders} at once")
    return wrong


def _lines(files: Iterable[Path]) -> list[dict[str, Any]]:
    lines = []
    for file in files:
        try:
            text = file.read_text()
        except OSError as error:
            raise ConfigurationError(f"{file}: {error}") from None
        for number, line in enumerate(text.splitlines(), start=1):
            try:
                lines.append(json.loads(line))
            except json.JSONDecodeError:
                if number < len(text.splitlines()):  # a killed process may leave half a line
                    raise ConfigurationError(f"{file}:{number}: not JSON") from None
    return lines
