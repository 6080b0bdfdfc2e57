"""Where the processes of a job run: this machine, a Ray cluster, the nodes of a Slurm job.

`olaf.jobs.training.Training` defines the roles and their instructions. A place starts the roles,
reads their messages, restarts them when they die, and makes sure that they end. Messages and
instructions are the same everywhere, and so are display, accounts and report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from olaf.errors.outcome import Exit, RunError
from olaf.extras import need
from olaf.jobs.supervisor import Occurrence, Program, Supervisor

if TYPE_CHECKING:
    from olaf.jobs.settings import Settings


class Place(Protocol):
    """Keeps the processes of one job. A context manager: no process outlives it.

    `olaf.jobs.supervisor.Supervisor` is the place of this machine.
    """

    def start(self, program: Program) -> None:
        """Start a process. ``HERE`` in its first line becomes the address of its machine."""

    def change(self, program: Program) -> None:
        """Start the process of this name with ``program`` from its next incarnation on."""

    def poll(self, timeout_s: float) -> list[Occurrence]:
        """Wait at most ``timeout_s`` seconds for an occurrence; return all occurrences in order."""

    def tell(self, name: str, line: str) -> None:
        """Send a line to the process, if it lives."""

    def retire(self, names: Iterable[str], line: str) -> None:
        """Send a line to processes that are expected to end from now on."""

    def kill(self, name: str) -> None:
        """Kill the process at once; it restarts like any that dies."""

    def alive(self) -> list[str]:
        """Names of the processes that run or wait for their restart."""

    def restarts(self) -> dict[str, int]:
        """The number of restarts of each process that died."""

    def stop(self, names: Iterable[str], timeout_s: float) -> Iterator[Occurrence]:
        """Ask processes to stop, return their last messages, kill those that take too long."""

    def host(self, name: str) -> str:
        """The address of this process's machine, as other machines reach it."""

    def bring(self, name: str, files: Sequence[Path]) -> None:
        """Make the files that this process wrote available at the same paths here."""

    def cpu_s(self) -> float | None:
        """CPU seconds of the processes that have ended; None if this place cannot tell."""

    def close(self) -> None:
        """Kill all running processes and release all resources."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def check_place(settings: Settings) -> None:
    """Raise before the start if ``train.on`` cannot work: a missing extra, no allocation."""
    kind = settings.train.on.partition(":")[0]
    if kind == "ray":
        need("ray", what="olaf train --on ray")
    elif kind == "srun":
        from olaf.jobs.places.slurm_place import allocated_nodes

        allocated_nodes()
    elif kind == "slurm":
        raise RunError("--on slurm: only the command `olaf train` can submit a job", Exit.USAGE)


def open_place(settings: Settings, *, descriptors: Sequence[int] = ()) -> Place:
    """The place that ``train.on`` names; the other places are not imported.

    descriptors: open files that processes of this machine inherit.
    """
    check_place(settings)
    train = settings.train
    kind = train.on.partition(":")[0]
    if kind == "ray":
        from olaf.jobs.places.ray_place import RayPlace

        return RayPlace(settings)
    if kind == "srun":
        from olaf.jobs.places.slurm_place import SlurmPlace

        return SlurmPlace(settings, descriptors=descriptors)
    return Supervisor(
        restarts=train.restarts, restart_delay_s=train.restart_delay_s, descriptors=descriptors
    )
