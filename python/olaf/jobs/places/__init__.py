"""Where the processes of a job run: this machine, a Ray cluster, the nodes of a Slurm job.

`olaf.jobs.training.Training` says which roles there are and what each is told; a place starts them,
listens to them, starts them again when they die, and ends them for certain. What a role says and
what it is told are the same everywhere, and so are display, accounts and report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from olaf.extras import need
from olaf.jobs.supervisor import Notice, Program, Supervisor
from olaf.outcome import Exit, RunError

if TYPE_CHECKING:
    from olaf.jobs.settings import Settings


class Place(Protocol):
    """Keeps the processes of one job. A context manager: at its end none is left.

    `olaf.jobs.supervisor.Supervisor` is the place of this machine.
    """

    def start(self, program: Program) -> None:
        """Start a process. ``HERE`` in its first line becomes the address of its machine."""

    def change(self, program: Program) -> None:
        """From its next incarnation on, start the process of this name so."""

    def poll(self, timeout_s: float) -> list[Notice]:
        """Wait at most so long for something to happen; what happened, in order."""

    def tell(self, name: str, line: str) -> None:
        """Give a line to the process, if it lives."""

    def retire(self, names: Iterable[str], line: str) -> None:
        """Give a line to processes whose end, from now on, is no surprise."""

    def kill(self, name: str) -> None:
        """Kill the process where it stands; it comes back like any that dies."""

    def alive(self) -> list[str]:
        """Names of the processes that run or are about to be started again."""

    def restarts(self) -> dict[str, int]:
        """How often each process that died was started again."""

    def stop(self, names: Iterable[str], timeout_s: float) -> Iterator[Notice]:
        """Ask processes to stop, pass on what they still say, kill those that overstay."""

    def host(self, name: str) -> str:
        """The address under which the others find the machine of this process."""

    def bring(self, name: str, files: Sequence[Path]) -> None:
        """See that what this process wrote to these files is at the same paths here."""

    def cpu_s(self) -> float | None:
        """Processor seconds of the processes that have ended; None where nobody counts them."""

    def close(self) -> None:
        """Kill what still runs and let go of everything."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def check_place(settings: Settings) -> None:
    """Raise before anything is begun where ``train.on`` cannot be: an extra, an allocation."""
    kind = settings.train.on.partition(":")[0]
    if kind == "ray":
        need("ray", what="olaf train --on ray")
    elif kind == "srun":
        from olaf.jobs.places.slurm_place import allocated_nodes

        allocated_nodes()
    elif kind == "slurm":
        raise RunError("--on slurm: only the command `olaf train` can submit a job", Exit.USAGE)


def open_place(settings: Settings, *, descriptors: Sequence[int] = ()) -> Place:
    """The place that ``train.on`` names; of the others nothing is imported.

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
