"""The file of jobs that share switches: the jobs, their hosts, and the switches.

The sharing controller and every host of a job read the same file (``olaf schedule share``,
``olaf schedule host``).
"""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, ValidationError

from olaf.errors.usage import ConfigurationError
from olaf.files.keyfile import PUBLIC, key_file
from olaf.schedule.reading import read_pattern
from olaf.schedule.simulation import Network
from olaf.values.defaults import SHARING
from olaf.values.parsed import toml_of
from olaf.values.united import United

MS_NS = 1_000_000
"""Nanoseconds of a millisecond."""


class _Table(United):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class SharingJob(_Table):
    """A job that runs, or is about to run."""

    job: int = Field(ge=1)
    """Number of the job. A job that is started again needs a new number."""
    hosts: list[str] = Field(min_length=1)
    """Addresses of its hosts, by rank: ``address:port``."""
    resources: list[int]
    """Resources of its tree."""
    units: int = Field(default=SHARING["units"], ge=1)
    """Units that it needs of each resource."""
    pattern: str
    """Path of a pattern file, relative to the folder of this file."""
    steps: int = Field(ge=1)
    """Number of steps."""


class SharingCluster(_Table):
    """The contents of a sharing file."""

    controller: str
    """Address of the sharing controller: ``address:port``."""
    key_file: str | None = None
    """File with the key of the controller and of all hosts (``olaf keys``), relative to the folder
    of this file. Without it all addresses are loopback."""
    insecure: bool = False
    """Listen beyond this machine without a key."""
    capacity: dict[int, int]
    """Units by resource: a switch, or a port."""
    network: Network = Network()
    """Network from which the time of an all-reduce follows."""
    jobs: list[SharingJob] = Field(min_length=1)
    silent_ms: int = Field(default=SHARING["silent_ns"] // MS_NS, ge=10)
    """A host that does not answer within this time is dead."""
    patience_ms: int = Field(default=SHARING["patience_ns"] // MS_NS, ge=10)
    """A host gives up after waiting this long for another host's all-reduce."""


@dataclass(frozen=True)
class Watched:
    """Where a party serves what it does over HTTP: the options of the role's command."""

    metrics: str | None = None
    """Address: ``host:port``. None: nowhere."""
    metrics_token_file: str | None = None
    """File with the token that readers send."""


def read_cluster(file: Path) -> SharingCluster:
    """Read the file. Raises ConfigurationError with its name and the error."""
    try:
        return SharingCluster.model_validate(toml_of(file.read_text()))
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
    watched: Watched = Watched(),
    policy: str = SHARING["policy"],
    ahead_ns: int | None = None,
) -> str:
    """Configuration of the core's controller, as JSON. ahead_ns: None uses the core's default."""
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
            **_key(file, cluster),
            **asdict(watched),
            "epoch": epoch,
            "seed": epoch,
            "capacity": cluster.capacity,
            "network": cluster.network.model_dump(),
            "jobs": jobs,
            "policy": policy,
            **ahead,
            "silent_ns": cluster.silent_ms * MS_NS,
        }
    )


def host_config(
    file: Path,
    cluster: SharingCluster,
    number: int,
    rank: int,
    log: Path,
    *,
    watched: Watched = Watched(),
) -> str:
    """Configuration of the core's host, as JSON. Raises ConfigurationError for an unknown host."""
    jobs = {job.job: job for job in cluster.jobs}
    if number not in jobs:
        raise ConfigurationError(f"{file}: no job {number}; the jobs are {sorted(jobs)}")
    job = jobs[number]
    if not 0 <= rank < len(job.hosts):
        raise ConfigurationError(f"{file}: job {number} has {len(job.hosts)} hosts, from rank 0")
    return json.dumps(
        {
            "controller": cluster.controller,
            **_key(file, cluster),
            **asdict(watched),
            "job": number,
            "rank": rank,
            "hosts": job.hosts,
            "network": cluster.network.model_dump(),
            "pattern": pattern_of(file, job),
            "steps": job.steps,
            "log": str(log),
            "patience_ns": cluster.patience_ms * MS_NS,
        }
    )


def _key(file: Path, cluster: SharingCluster) -> dict[str, Any]:
    """The key of a party: that of the file, or that of the environment."""
    named = cluster.key_file
    if named not in (None, PUBLIC):
        named = str(file.parent / named)
    return {"key_file": key_file(named), "insecure": cluster.insecure}


def pattern_of(file: Path, job: SharingJob) -> dict[str, Any]:
    """The job's pattern, as the core takes it. Raises ConfigurationError."""
    return asdict(read_pattern(file.parent / job.pattern))


def next_epoch(file: Path) -> int:
    """The controller's epoch: one more than the last in this file, which is updated first.

    A later controller therefore always has a larger epoch than an earlier one that sent anything.
    """
    try:
        text = file.read_text()
        last = int(text)
    except FileNotFoundError:
        last = 0
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{file}: no epoch ({error}): write a number above that of every earlier controller"
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
