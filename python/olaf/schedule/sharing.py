"""Jobs that share switches in time, as a file says: who they are, and what they share.

The sharing controller and every host of a job read the same file (``olaf schedule share``, ``olaf
schedule host``).
"""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, ValidationError

from olaf.schedule.reading import read_pattern
from olaf.schedule.simulation import Network
from olaf.united import United
from olaf.usage import ConfigurationError


class _Table(United):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class SharingJob(_Table):
    """A job that runs, or is about to."""

    job: int = Field(ge=1)
    """Its number. A job that is started again gets a new one."""
    hosts: list[str] = Field(min_length=1)
    """Where its hosts listen, by rank: ``address:port``."""
    resources: list[int]
    """What its tree uses."""
    units: int = Field(default=1, ge=1)
    """Of each of them."""
    pattern: str
    """A pattern file, from the folder of this file."""
    steps: int = Field(ge=1)
    """How many it runs."""


class SharingCluster(_Table):
    """Who shares what."""

    controller: str
    """Where the sharing controller listens: ``address:port``."""
    capacity: dict[int, int]
    """Units by resource: a switch, or a port."""
    network: Network = Network()
    """How long an all-reduce takes."""
    jobs: list[SharingJob] = Field(min_length=1)
    silent_ms: int = Field(default=1000, ge=10)
    """A host that does not answer for so long is dead."""
    patience_ms: int = Field(default=5000, ge=10)
    """A host that waits so long for another one's all-reduce gives up."""


def read_cluster(file: Path) -> SharingCluster:
    """Read the file. Raises ConfigurationError that names it and what is wrong."""
    try:
        return SharingCluster.model_validate(tomllib.loads(file.read_text()))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{file}: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(f"{file}: {key}: {first['msg']}") from None


def controller_config(
    file: Path,
    cluster: SharingCluster,
    epoch: int,
    *,
    policy: str = "plan",
    ahead_ns: int | None = None,
) -> str:
    """What the core's controller is told, as JSON. ahead_ns: none for the core's default."""
    ahead = {} if ahead_ns is None else {"ahead_ns": ahead_ns}
    jobs = [
        {
            "job": job.job,
            "hosts": job.hosts,
            "resources": job.resources,
            "units": job.units,
            "pattern": pattern_of(file, job),
            "steps": job.steps,
        }
        for job in cluster.jobs
    ]
    return json.dumps(
        {
            "listen": cluster.controller,
            "epoch": epoch,
            "seed": epoch,
            "capacity": cluster.capacity,
            "network": cluster.network.model_dump(),
            "jobs": jobs,
            "policy": policy,
            **ahead,
            "silent_ns": cluster.silent_ms * 1_000_000,
        }
    )


def host_config(file: Path, cluster: SharingCluster, number: int, rank: int, log: Path) -> str:
    """What the core's host is told, as JSON. Raises ConfigurationError if there is no such host."""
    jobs = {job.job: job for job in cluster.jobs}
    if number not in jobs:
        raise ConfigurationError(f"{file}: no job {number}; there are {sorted(jobs)}")
    job = jobs[number]
    if not 0 <= rank < len(job.hosts):
        raise ConfigurationError(f"{file}: job {number} has {len(job.hosts)} hosts, from rank 0")
    return json.dumps(
        {
            "controller": cluster.controller,
            "job": number,
            "rank": rank,
            "hosts": job.hosts,
            "network": cluster.network.model_dump(),
            "pattern": pattern_of(file, job),
            "steps": job.steps,
            "log": str(log),
            "patience_ns": cluster.patience_ms * 1_000_000,
        }
    )


def pattern_of(file: Path, job: SharingJob) -> dict[str, Any]:
    """The job's pattern, as the core takes it. Raises ConfigurationError."""
    return asdict(read_pattern(file.parent / job.pattern))


def next_epoch(file: Path) -> int:
    """The life of a controller: one more than the last that this file knows; kept there first.

    A controller that said something is never followed by one of its epoch or an earlier one.
    """
    try:
        text = file.read_text()
        last = int(text)
    except FileNotFoundError:
        last = 0
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{file}: no epoch ({error}): write a number above that of any controller before"
        ) from None
    new = file.with_name(file.name + ".new")
    with new.open("w") as stream:
        stream.write(f"{last + 1}\n")
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return last + 1
