"""The configuration of the places other than this machine: a Ray cluster, a Slurm job."""

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
    """`olaf train --on ray`: what each actor asks of the cluster, and where it goes."""

    cpus_per_worker: float = Field(default=1.0, ge=0)
    """CPUs that Ray sets aside for each worker."""
    gpus_per_worker: float = Field(default=0.0, ge=0)
    """GPUs that Ray sets aside for each worker; a part of one (0.25) shares it."""
    cpus_per_switch: float = Field(default=1.0, ge=0)
    """CPUs that Ray sets aside for the server, the switch and each leaf."""
    switches: Literal["driver", "any"] = "driver"
    """Where the server, the switch and the leaves go: the node of `olaf train` as long as it has
    room, or whichever Ray takes."""
    workers: Literal["spread", "pack"] = "spread"
    """Workers go to as many nodes as there are, or fill one node after the other."""


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
    """`olaf train --on slurm`: what the batch job asks for. The server and the switch run on its
    first node, workers on all."""

    nodes: int = Field(default=1, ge=1)
    """Nodes of the job; workers are dealt to them in turn."""
    time: Annotated[str, BeforeValidator(_time_limit)] = "1:00:00"
    """Time limit of the job, as sbatch writes it."""
    cpus_per_worker: int = Field(default=1, ge=1)
    """CPUs of each worker, and of the server and each switch."""
    gpus_per_worker: int = Field(default=0, ge=0)
    """GPUs of each worker."""
    memory_per_cpu: Annotated[str | None, BeforeValidator(_memory), NoneIs("off")] = "2G"
    """Memory of each CPU; off leaves it to the cluster's default."""
    partition: OffWord = None
    """Partition to submit to; off takes the cluster's default."""
    account: OffWord = None
    """Account to charge; off takes yours."""
    options: list[Line] = Field(default=[])
    """Further options of sbatch, each as a script has it: ["--constraint=ib", "--qos=low"]."""
    setup: list[Line] = Field(default=[])
    """Shell commands before the start on each node's job: ["module load python/3.12"]. The Python
    of `olaf train` is used in any case."""
    address: Annotated[str, BeforeValidator(_word)] = "auto"
    """The address of the first node that the others find it under: auto looks its name up; name
    one where that gives the wrong network."""
    stop_before_s: int = Field(default=120, ge=30)
    """So long before the time limit the run is ended in order: workers finish, the model and the
    report are written. Whole seconds."""
    requeue: bool = True
    """Let Slurm put the job back into the queue when it was preempted or a node failed; it goes on
    from the last checkpoint."""
