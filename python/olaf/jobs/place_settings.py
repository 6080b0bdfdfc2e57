"""The configuration of a Ray cluster or a Slurm job as the place of a run."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from olaf.jobs.section import NoneIs, Section


def _on(value: Any) -> Any:
    if not isinstance(value, str) or value in ("local", "ray", "slurm", "srun"):
        return value
    if value.startswith("ray:") and len(value) > len("ray:"):
        return value
    raise ValueError("write local, ray, ray:ADDRESS, slurm or srun")


On = Annotated[str, BeforeValidator(_on)]


class RaySettings(Section):
    """`olaf train --on ray`: the resources of each actor, and its node."""

    cpus_per_worker: float = Field(default=1.0, ge=0)
    """CPUs that Ray reserves for each worker."""
    gpus_per_worker: float = Field(default=0.0, ge=0)
    """GPUs that Ray reserves for each worker; a fraction (0.25) shares a GPU."""
    cpus_per_switch: float = Field(default=1.0, ge=0)
    """CPUs that Ray reserves for the server, the switch and each leaf."""
    switches: Literal["driver", "any"] = "driver"
    """Where the server, the switch and the leaves run. driver: on the node of `olaf train` while it
    has room; any: on nodes of Ray's choice."""
    workers: Literal["spread", "pack"] = "spread"
    """spread: put the workers on as many nodes as possible; pack: fill one node after the other."""


def _time_limit(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # minutes
    if isinstance(value, str) and not re.fullmatch(r"\d+|(\d+-)?\d+(:\d{2}){0,2}", value):
        raise ValueError("write it as sbatch does: MINUTES, H:MM:SS or DAYS-H:MM:SS")
    return value


def _memory(value: Any) -> Any:
    if isinstance(value, str) and not re.fullmatch(r"\d+[KMGT]?", value):
        raise ValueError("write it as sbatch does: a number and K, M, G or T")
    return value


def _one_line(value: Any) -> Any:
    if isinstance(value, str) and ("\n" in value or "\r" in value):
        raise ValueError("write it on one line")
    return value


def _word(value: Any) -> Any:
    if isinstance(value, str) and not re.fullmatch(r"[\w.,:+@/-]+", value):
        raise ValueError("write it without blanks and quotes")
    return value


Line = Annotated[str, BeforeValidator(_one_line)]
OffWord = Annotated[str | None, BeforeValidator(_word), NoneIs("off")]


class SlurmSettings(Section):
    """`olaf train --on slurm`: the resources of the batch job. The server and the switch run on its
    first node, workers on all nodes."""

    nodes: int = Field(default=1, ge=1)
    """Number of nodes of the job; workers are assigned to them in turn."""
    time: Annotated[str, BeforeValidator(_time_limit)] = "1:00:00"
    """Time limit of the job, in sbatch's format."""
    cpus_per_worker: int = Field(default=1, ge=1)
    """CPUs of each worker, of the server and of each switch."""
    gpus_per_worker: int = Field(default=0, ge=0)
    """GPUs of each worker."""
    memory_per_cpu: Annotated[str | None, BeforeValidator(_memory), NoneIs("off")] = "2G"
    """Memory per CPU; off uses the cluster's default."""
    partition: OffWord = None
    """Partition of the job; off uses the cluster's default."""
    account: OffWord = None
    """Account to charge; off uses your default account."""
    options: list[Line] = Field(default=[])
    """More options of sbatch, each as in a batch script: ["--constraint=ib", "--qos=low"]."""
    setup: list[Line] = Field(default=[])
    """Shell commands that run first on each node: ["module load python/3.12"]. The job always uses
    the Python of `olaf train`."""
    address: Annotated[str, BeforeValidator(_word)] = "auto"
    """Address of the first node, as the other nodes reach it. auto looks up the node's name; give
    an address if that is on the wrong network."""
    stop_before_s: int = Field(default=120, ge=30)
    """Time before the time limit at which the run begins to stop: workers finish, the model and the
    report are written. Whole seconds."""
    requeue: bool = True
    """Requeue the job when it was preempted or a node failed; it continues from the last
    checkpoint."""
