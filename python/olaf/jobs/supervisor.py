"""Child processes: started, read, restarted when they die, and reliably ended.

One selector reads all their outputs, without threads. This module knows nothing about roles. A
child that dies is reported, and restarts after a pause that doubles, up to a number of times in a
row (`olaf.jobs.backoff`).

A child is dead when its process has exited, whoever still holds its pipes open: a program that an
environment has started inherits them, and may live for ever. Each child has a process group of its
own. When the child is dead, what is left of its group is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

from olaf.errors.outcome import Exit
from olaf.jobs import forking
from olaf.jobs.backoff import STEADY_S, Backoff
from olaf.jobs.processes import Executed, Process
from olaf.processes.loopback import loopback

HERE = "<here>"
"""Placeholder in a first line for the address of the child's machine."""

LINE_BYTES = 1 << 16
"""Longest line that a child may print; a longer one is cut into several."""

MESSAGE_BYTES = 1 << 28
"""Longest message of a child."""

REST_BYTES = 1 << 22
"""Most bytes that are read from a dead child's pipes: others may write to them without an end."""

LOOK_S = 0.1
"""Seconds between looks for dead children on a system that cannot wait for them (no pidfd)."""

DEATH_S = 5.0
"""Seconds for a killed process to be gone, before it is left to the system with a message."""


@dataclass(frozen=True)
class Program:
    """How to start a child. ``first_line`` goes to its stdin, which then stays open."""

    name: str
    argv: Sequence[str]
    first_line: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Sequence[Path] = ()
    """Files that it reads and writes. On another machine they are copied there and back."""
    last_event: str | None = None
    """The event that it says at its end. Without it, an exit with code 0 is a death too."""


@dataclass(frozen=True)
class Started:
    """A child runs."""

    name: str
    incarnation: int
    pid: int
    machine: str = ""
    """Name of its machine, if that is not this one."""


@dataclass(frozen=True)
class Said:
    """A child printed one JSON object to stdout."""

    name: str
    incarnation: int
    message: dict[str, Any]


@dataclass(frozen=True)
class Printed:
    """A child printed a line of anything else to stdout or stderr."""

    name: str
    incarnation: int
    text: str


@dataclass(frozen=True)
class Ended:
    """A child has ended."""

    name: str
    incarnation: int
    code: int
    """Exit code; negative for the signal that killed it."""
    expected: bool
    """True if it ended with code 0 or was asked to stop."""
    back_in_s: float | None
    """Seconds until it restarts, or None if it will not."""
    detail: str = ""
    """A description of its end that is better than the code, or None."""

    @property
    def how(self) -> str:
        """``killed by SIGKILL`` or ``exited with 3 (UNREACHABLE)``."""
        if self.detail:
            return self.detail
        if self.code < 0:
            return f"killed by {signal.Signals(-self.code).name}"
        if self.code in list(Exit):
            return f"exited with {self.code} ({Exit(self.code).name.lower()})"
        if self.code - 128 in list(signal.Signals):  # the convention of shells and srun
            return f"killed by {signal.Signals(self.code - 128).name}"
        return f"exited with {self.code}"


Occurrence = Started | Said | Printed | Ended


@dataclass
class _Child:
    program: Program
    backoff: Backoff
    incarnation: int = 0
    process: Process | None = None
    started_at: float = 0.0
    due: float | None = None
    asked_to_stop: bool = False
    has_said_last: bool = False
    outputs: list[_Output] = field(default_factory=list)
    """Its pipes that are still read."""


@dataclass
class _Output:
    child: _Child
    stream: IO[bytes]
    incarnation: int
    is_json: bool
    rest: bytes = b""


class Supervisor:
    """Keeps the children of one job. A context manager: no child outlives it.

    host: the address of this machine as others reach it, see `HERE`.
    descriptors: open files that children inherit.
    """

    def __init__(
        self,
        *,
        restarts: int = 5,
        restart_delay_s: float = 0.2,
        steady_s: float = STEADY_S,
        host: str | None = None,
        descriptors: Sequence[int] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = loopback() if host is None else host
        self._descriptors = tuple(descriptors)
        self._restarts = restarts
        self._delay_s = restart_delay_s
        self._steady_s = steady_s
        self._clock = clock
        self._children: dict[str, _Child] = {}
        self._selector = selectors.DefaultSelector()
        self._occurrences: list[Occurrence] = []
        self._cpu_s = 0.0
        _SUPERVISORS.add(self)

    def start(self, program: Program) -> None:
        """Start a child, or a new incarnation with its newest program."""
        child = self._children.get(program.name)
        if child is None:
            backoff = Backoff(self._restarts, self._delay_s, steady_s=self._steady_s)
            child = self._children[program.name] = _Child(program, backoff)
        child.program = program
        child.asked_to_stop = False
        self._spawn(child)

    def change(self, program: Program) -> None:
        """Start the child of this name with ``program`` from its next incarnation on."""
        self._children[program.name].program = program

    def poll(self, timeout_s: float) -> list[Occurrence]:
        """Wait at most ``timeout_s`` seconds for an occurrence; return all occurrences in order."""
        now = self._clock()
        dues = [child.due for child in self._children.values() if child.due is not None]
        if self._occurrences:
            timeout_s = 0
        elif dues:
            timeout_s = max(0.0, min(timeout_s, min(dues) - now))
        # The selector tells of the others' end.
        unseen = [c for c in self._children.values() if c.process and c.process.life is None]
        if unseen:
            timeout_s = min(timeout_s, LOOK_S)
        for key, _ in self._selector.select(timeout_s):
            if isinstance(key.data, _Output):
                self._read(key.data)
            else:
                unseen.append(key.data)
        for child in unseen:
            if child.process is not None and child.process.has_exited():
                self._bury(child)
        now = self._clock()
        for child in self._children.values():
            if child.due is not None and child.due <= now:
                child.due = None
                self._spawn(child)
        occurrences, self._occurrences = self._occurrences, []
        return occurrences

    def tell(self, name: str, line: str) -> None:
        """Write a line to the child's stdin, if it lives."""
        child = self._children.get(name)
        if child and child.process and child.process.stdin:
            with contextlib.suppress(OSError):
                child.process.stdin.write(line.encode() + b"\n")
                child.process.stdin.flush()

    def retire(self, names: Iterable[str], line: str) -> None:
        """Write a line to children that are expected to end from now on."""
        for name in names:
            self._children[name].asked_to_stop = True
            self._children[name].due = None
            self.tell(name, line)

    def kill(self, name: str) -> None:
        """Kill the child at once; it restarts like any child that dies."""
        process = self._children[name].process
        if process is not None:
            process.kill()

    def alive(self) -> list[str]:
        """Names of the children that run or wait for their restart."""
        return [n for n, c in self._children.items() if c.process is not None or c.due is not None]

    def restarts(self) -> dict[str, int]:
        """The number of restarts of each child that died."""
        return {n: c.incarnation - 1 for n, c in self._children.items() if c.incarnation > 1}

    def stop(self, names: Iterable[str], timeout_s: float) -> Iterator[Occurrence]:
        """Ask children to stop, return their last messages, kill those that take too long."""
        names = set(names)
        self.retire(names, "stop")
        deadline = self._clock() + timeout_s
        yield from self._poll_until_gone(names, deadline)
        for name in self._left(names):
            self.kill(name)
        yield from self._poll_until_gone(names, self._clock() + DEATH_S)
        for name in self._left(names):
            self._abandon(self._children[name])
        yield from self.poll(0)

    def _poll_until_gone(self, names: Iterable[str], deadline: float) -> Iterator[Occurrence]:
        while self._left(names) and (left_s := deadline - self._clock()) > 0:
            yield from self.poll(left_s)

    def _left(self, names: Iterable[str]) -> list[str]:
        return sorted(name for name in names if self._children[name].process is not None)

    def _abandon(self, child: _Child) -> None:
        """Give up a process that not even SIGKILL ends, as one that waits for a dead disk."""
        assert child.process is not None
        self._let_go(child)
        child.process = None
        detail = f"did not end within {DEATH_S:g} s of SIGKILL"
        name, incarnation = child.program.name, child.incarnation
        self._occurrences.append(Ended(name, incarnation, -signal.SIGKILL, True, None, detail))

    def host(self, name: str) -> str:
        """The address of this child's machine, as others reach it."""
        return self._host

    def bring(self, name: str, files: Sequence[Path]) -> None:
        """Do nothing: a child writes its files on this machine."""

    def cpu_s(self) -> float | None:
        """CPU seconds of all children that have ended, including their start."""
        return self._cpu_s

    def close(self) -> None:
        """Kill all running children and release all resources."""
        for child in self._children.values():
            child.due = None
            child.asked_to_stop = True
            if child.process is not None:
                child.process.end_group()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._reap(child.process, DEATH_S)
                self._let_go(child)
                child.process = None
        self._selector.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def let_go_in_fork(self) -> None:
        """In a forked copy of this process: close everything that keeps the children running.

        A child stops when its stdin ends. A copy of this process, as multiprocessing makes them,
        would hold that input open after this process is gone.
        """
        for child in self._children.values():
            if child.process is not None and child.process.stdin is not None:
                with contextlib.suppress(OSError):
                    child.process.stdin.close()

    def _spawn(self, child: _Child) -> None:
        program = child.program
        child.incarnation += 1
        child.has_said_last = False
        environment = {**os.environ, **program.environment}
        process: Process | None = None
        if (server := forking.current()) is not None:
            process = server.start(program.name, program.argv, environment, self._descriptors)
        if process is None:
            process = Executed(program.argv, environment, self._descriptors)
        child.process = process
        child.started_at = self._clock()
        for stream, is_json in ((process.stdout, True), (process.stderr, False)):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            output = _Output(child, stream, child.incarnation, is_json)
            child.outputs.append(output)
            self._selector.register(stream, selectors.EVENT_READ, output)
        if process.life is not None:
            self._selector.register(process.life, selectors.EVENT_READ, child)
        self._occurrences.append(Started(program.name, child.incarnation, process.pid))
        if program.first_line:
            self.tell(program.name, self._with_address(program))

    def _with_address(self, program: Program) -> str:
        if HERE not in program.first_line:
            return program.first_line
        return program.first_line.replace(HERE, self.host(program.name))

    def _read(self, output: _Output) -> int:
        """Take what a pipe holds now; return the number of bytes."""
        try:
            data = os.read(output.stream.fileno(), 1 << 16)
        except BlockingIOError:
            return 0
        *lines, output.rest = (output.rest + data).split(b"\n")
        if len(output.rest) > (MESSAGE_BYTES if output.is_json else LINE_BYTES) or not data:
            lines, output.rest = [*lines, output.rest], b""
        for line in lines:
            if line.strip():
                self._note(output, line)
        if not data:
            self._close(output)
        return len(data)

    def _note(self, output: _Output, line: bytes) -> None:
        occurrence = _understand(output, line.decode(errors="replace"))
        if isinstance(occurrence, Said) and output.child.program.last_event is not None:
            output.child.has_said_last |= (
                occurrence.message["event"] == output.child.program.last_event
            )
        self._occurrences.append(occurrence)

    def _close(self, output: _Output) -> None:
        self._selector.unregister(output.stream)
        output.child.outputs.remove(output)

    def _bury(self, child: _Child) -> None:
        """Report the end of a child whose process has exited, and end what it has started."""
        process = child.process
        assert process is not None
        process.end_group()
        for output in list(child.outputs):
            left = REST_BYTES
            while left > 0 and (got := self._read(output)):
                left -= got
            if output in child.outputs and output.rest.strip():
                self._note(output, output.rest)
        code = self._reap(process)
        self._let_go(child)
        child.process = None
        is_in_order = child.program.last_event is None or child.has_said_last
        expected = child.asked_to_stop or (code == 0 and is_in_order)
        back_in_s = None if expected else self._plan_return(child, code)
        detail = "exited with 0 in the middle of its work" if code == 0 and not expected else ""
        self._occurrences.append(
            Ended(child.program.name, child.incarnation, code, expected, back_in_s, detail)
        )

    def _reap(self, process: Process, timeout_s: float | None = None) -> int:
        """Wait for the end of a child and add its CPU time; return its exit code."""
        code, cpu_s = process.reap(timeout_s)
        self._cpu_s += cpu_s
        return code

    def _plan_return(self, child: _Child, code: int) -> float | None:
        # An invalid configuration stays invalid: do not restart.
        if code == Exit.USAGE:
            return None
        now = self._clock()
        delay_s = child.backoff.died(now - child.started_at)
        child.due = None if delay_s is None else now + delay_s
        return delay_s

    def _let_go(self, child: _Child) -> None:
        """Close the pipes of a child that is gone."""
        for output in list(child.outputs):
            self._close(output)
        assert child.process is not None
        if child.process.life is not None:
            self._selector.unregister(child.process.life)
        child.process.let_go()


def _understand(output: _Output, line: str) -> Said | Printed:
    name, incarnation = output.child.program.name, output.incarnation
    if output.is_json and line.startswith("{"):
        try:
            message = json.loads(line)
        except ValueError:
            pass
        else:
            # Something that prints before the role has taken stdout for its messages.
            if isinstance(message, dict) and isinstance(message.get("event"), str):
                return Said(name, incarnation, message)
    return Printed(name, incarnation, line.rstrip())


_SUPERVISORS: weakref.WeakSet[Supervisor] = weakref.WeakSet()


def _let_go() -> None:
    for supervisor in list(_SUPERVISORS):
        supervisor.let_go_in_fork()


os.register_at_fork(after_in_child=_let_go)
