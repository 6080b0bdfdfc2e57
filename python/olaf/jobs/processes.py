"""A child process as `olaf.jobs.supervisor` sees it, and the ordinary kind: a program started anew.

The other kind is a fork of a process that has imported everything already: `olaf.jobs.forking`.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO, Protocol


class Process(Protocol):
    """A child with three pipes. It leads a process group of its own."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None
    life: int | None
    """A pidfd, which is readable once the process has exited; None on a system without."""

    def has_exited(self) -> bool:
        """True if it has; it stays a zombie, so that nobody else gets its number before `reap`."""

    def kill(self) -> None:
        """Kill it at once."""

    def end_group(self) -> None:
        """Kill what is left of its process group."""

    def reap(self, timeout_s: float | None = None) -> tuple[int, float]:
        """Wait for its end; return its exit code (negative: the signal) and its CPU seconds.

        Raises ``subprocess.TimeoutExpired``.
        """

    def let_go(self) -> None:
        """Close the pipes and the pidfd."""


class Executed(subprocess.Popen[bytes]):
    """A program that was started anew. Implements `Process`."""

    def __init__(
        self, argv: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[int] = ()
    ) -> None:
        # A process group of its own: Ctrl-C at the terminal is for the parent, which stops its
        # children in the order that loses nothing.
        super().__init__(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            process_group=0,
            pass_fds=descriptors,
        )
        self.life = _life_of(self.pid)

    def has_exited(self) -> bool:
        """See `Process.has_exited`."""
        if self.returncode is not None or not hasattr(os, "waitid"):  # macOS has none
            return self.poll() is not None
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PID, self.pid, how) is not None
        except ChildProcessError:  # somebody else in this process has waited for it
            return True

    def end_group(self) -> None:
        """See `Process.end_group`."""
        end_group_of(self.pid)

    def reap(self, timeout_s: float | None = None) -> tuple[int, float]:
        """See `Process.reap`."""
        before_s = _cpu_of_children_s()
        code = self.wait(timeout_s)
        return code, _cpu_of_children_s() - before_s

    def let_go(self) -> None:
        """See `Process.let_go`."""
        if self.life is not None:
            os.close(self.life)
            self.life = None
        close_pipes(self)


def end_group_of(leader: int) -> None:
    """Kill the processes of the group with this leader."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def close_pipes(process: Process) -> None:
    """Close the pipes of a process that is gone."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _life_of(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _cpu_of_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
