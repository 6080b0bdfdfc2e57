"""The program that a worker belongs to: a number that all its workers share, and no other program.

A switch keeps two programs apart that say different ones. What starts the workers often names the
program: `torchrun`, Slurm, Open MPI.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass

VARIABLE = "OLAF_PROGRAM"
"""Names the program where ``program`` of `olaf.connect_sum` does not."""

NOT_SAID = 0
"""The worker names no program."""

LARGEST = 2**64 - 1


@dataclass(frozen=True)
class Launcher:
    """What starts the workers of a program, and tells each of them."""

    name: str
    told: tuple[str, ...]
    """Variables that are the same at all workers, and together differ from all other programs'."""
    workers: tuple[str, ...]
    """Variables with the number of workers; the first that is set counts."""

    def program(self, workers: int, environment: Mapping[str, str]) -> int:
        """The program that it started; `NOT_SAID` where it did not start just these workers."""
        told = [environment.get(name, "") for name in self.told]
        counts = [environment[name] for name in self.workers if environment.get(name)]
        if not all(told) or not counts or counts[0] != str(workers):
            return NOT_SAID
        return named("\0".join((self.name, *told)))


LAUNCHERS = (
    # Each round of a rendezvous has a port of its own: a program that torchrun starts anew, too.
    Launcher(
        "torchrun",
        ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"),
        ("WORLD_SIZE",),
    ),
    Launcher("pmix", ("PMIX_NAMESPACE",), ("OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")),
    Launcher("openmpi", ("OMPI_MCA_ess_base_jobid",), ("OMPI_COMM_WORLD_SIZE",)),
    # A job alone may run several programs at once.
    Launcher("slurm", ("SLURM_JOB_ID", "SLURM_STEP_ID"), ("SLURM_STEP_NUM_TASKS",)),
)
"""In this order, for one may start another. MPICH tells its processes nothing that all share."""


def program_of(
    given: str | int | None, workers: int | None, environment: Mapping[str, str] = os.environ
) -> int:
    """The number of the program: as given, or as the environment says; `NOT_SAID`: nobody says.

    Raises ValueError for a number out of range.
    """
    if isinstance(given, int):
        if not 0 <= given <= LARGEST:
            raise ValueError(f"program = {given}: must be from 0 to {LARGEST}, or a name")
        return given
    if name := given or environment.get(VARIABLE):
        return named(name)
    if workers is None:
        return NOT_SAID
    told = (launcher.program(workers, environment) for launcher in LAUNCHERS)
    return next((program for program in told if program != NOT_SAID), NOT_SAID)


def named(name: str) -> int:
    """The number of the program of that name; never `NOT_SAID`."""
    digest = hashlib.blake2b(name.encode(), digest_size=8, person=b"olaf.program").digest()
    return int.from_bytes(digest, "big") or 1
