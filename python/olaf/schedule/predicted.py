"""The simulator's prediction for the jobs of a sharing file, before or after they have run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from olaf import _olaf
from olaf.errors.usage import ConfigurationError
from olaf.schedule.sharing import SharingCluster, SharingJob, pattern_of


def predicted(file: Path, cluster: SharingCluster, policy: str) -> dict[str, Any]:
    """The score of all jobs together, and for each job its duration in seconds.

    Jobs whose trees conflict are simulated as a group, in which each must conflict with each. The
    score is None if no job gains anything. Raises ConfigurationError for other groups.
    """
    jobs: dict[int, dict[str, Any]] = {}
    gained = possible = 0
    for group in _groups(cluster):
        for job, ran in zip(group, _simulated(file, cluster, group, policy), strict=True):
            none_ns, all_ns = job.steps * ran["none_ns"], job.steps * ran["all_ns"]
            gained += none_ns - ran["ns"]
            possible += none_ns - all_ns
            jobs[job.job] = {
                "took_s": ran["ns"] / 1e9,
                "without_s": none_ns / 1e9,
                "alone_s": all_ns / 1e9,
                "in_network": ran["in_network"],
                "operations": ran["operations"],
            }
    score = gained / possible if possible else None
    return {"policy": policy, "score": score, "jobs": dict(sorted(jobs.items()))}


def _simulated(
    file: Path, cluster: SharingCluster, group: list[SharingJob], policy: str
) -> list[dict[str, Any]]:
    """The result of each job in the group, in one simulation if all take as many steps."""
    members = [{"pattern": pattern_of(file, job), "hosts": len(job.hosts)} for job in group]
    asked = {
        "policy": policy,
        "network": cluster.network.model_dump(),
        "jobs": members,
        "until": {"steps_each": [job.steps for job in group]},
    }
    try:
        answer = json.loads(_olaf.share_group(json.dumps(asked)))
    except ValueError as error:
        raise ConfigurationError(f"{file}: {error}") from None
    ran: list[dict[str, Any]] = answer["jobs"]
    return ran


def _groups(cluster: SharingCluster) -> list[list[SharingJob]]:
    """Groups of jobs whose trees conflict, with each other or through others.

    A job on one host needs no switches and gets no grant, so it conflicts with no job.
    """
    groups: list[list[SharingJob]] = []
    for job in cluster.jobs:
        mine = [] if len(job.hosts) < 2 else [g for g in groups if _meets(cluster, job, g)]
        groups = [group for group in groups if group not in mine]
        groups.append([*(member for group in mine for member in group), job])
    for group in groups:
        for job in group:
            others = [other for other in group if other is not job]
            if not all(_meets(cluster, job, [other]) for other in others):
                names = ", ".join(str(member.job) for member in group)
                raise ConfigurationError(
                    f"jobs {names}: some do not conflict with each other, which the simulator of a "
                    "group cannot represent; `olaf simulate mina` simulates whole clusters"
                )
    return groups


def _meets(cluster: SharingCluster, job: SharingJob, group: list[SharingJob]) -> bool:
    return any(
        job.units + other.units > cluster.capacity.get(resource, 0)
        for other in group
        if len(other.hosts) > 1
        for resource in set(job.resources) & set(other.resources)
    )
