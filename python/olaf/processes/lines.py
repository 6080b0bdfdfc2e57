"""The protocol between a role's process and its parent: one JSON object per line, both ways.

A role writes to stdout: ``{"event": "listening", ..}`` or ``{"event": "joined", ..}`` at the start,
events as they occur, ``stats`` at intervals, ``stopped`` at the end. Only a process that was
started with ``--attached`` reads stdin. The first line is its checked configuration. Later lines
are ``stats`` (report now), ``save JOB`` (a server: write the model of this job and answer ``saved``
with the file), ``evaluate FILE`` (an evaluator: play with this model), ``begin`` (a worker of a
synchronous run: all workers have joined), ``updates N`` (a worker with a ration: N updates may be
pushed since its start), ``steps N`` (a worker with a schedule of the learning rate: environment
steps of all workers so far), ``finish`` (a worker: push no more, but stay in the job until its
updates have arrived) or ``stop``. The end of stdin means that the parent is gone; the process then
stops, so a killed parent leaves no orphans.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import platform
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import IO, Any, Protocol

from olaf.processes.sink import Sink, lost_as_json, lost_in_words

Message = dict[str, Any]

ORPHAN_GRACE_S = 10.0
"""Seconds for an orphan to stop by itself before it is killed."""

PARENT_GONE = "parent gone"
"""Reason of a role that stops because its parent has ended."""

STDIN, STDOUT, STDERR = 0, 1, 2

SAVES = 64
"""Most pending requests for a model; a parent sends one after the other."""


@functools.cache
def clock_here() -> str:
    """Identifies this process's monotonic clock: one per machine and boot."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()


@contextlib.contextmanager
def apart() -> Iterator[IO[str]]:
    """A stream to stdout for messages alone; all else that is printed meanwhile goes to stderr.

    That holds for ``print``, for libraries, and for programs that inherit the descriptors. It holds
    again when Python ends: what the user's code has left to do then may print, too.
    """
    out = sys.stdout
    try:
        is_ours = out.fileno() == STDOUT
    except (OSError, ValueError, AttributeError):  # a notebook's or a test's stream
        is_ours = False
    if not is_ours:
        with contextlib.redirect_stdout(sys.stderr):
            yield out
        return
    out.flush()
    kept = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    # What is printed is shown at once, and not when 8 KiB have come together.
    buffering = out.line_buffering
    out.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        with os.fdopen(os.dup(kept), "w", encoding="utf-8") as messages:
            yield messages
    finally:
        with contextlib.suppress(OSError, ValueError):
            out.flush()
        out.reconfigure(line_buffering=buffering)  # type: ignore[union-attr]
        os.dup2(kept, STDOUT)
        os.close(kept)
        atexit.register(_end_apart)  # before all that was registered meanwhile


def _end_apart() -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        os.dup2(STDERR, STDOUT)


def orders_apart() -> IO[str]:
    """A stream with the lines of stdin. All else that reads stdin from now on finds its end."""
    orders = os.fdopen(os.dup(STDIN), encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, STDIN)
    os.close(nothing)
    return orders


class Filter(Protocol):
    """What leaves lines out of a log: `olaf._olaf.LogFilter`."""

    def take(self, event: str) -> int | None:
        """None: leave the line out; a number: print it, after so many that were left out."""

    def end(self) -> list[tuple[str, int]]:
        """The kinds of lines that were left out since they were told of, and how many."""

    @staticmethod
    def level(event: str) -> str:
        """debug, info, warning or error."""


PROGRESS = ("update", "turn")
"""Events of a worker's turns, with a push or without."""


class Reporter:
    """Prints the messages of a role: JSON lines for programs, sentences for people."""

    def __init__(
        self,
        *,
        as_json: bool,
        out: IO[str] | None = None,
        human: Callable[[Message], str],
        filtered: Filter | None = None,
        every_s: float = 0.0,
    ) -> None:
        """Print to ``out`` (None: stdout). ``filtered``: leave lines out; without it, print all.

        every_s: where lines are left out, shortest interval between reports of a worker's progress.
        """
        self._as_json = as_json
        self._sink = Sink(out or sys.stdout, lost_as_json if as_json else lost_in_words)
        self._human = human
        self._filter = filtered
        self._every_s = every_s
        self._progress_at_s = float("-inf")

    def say(self, event: str, **fields: Any) -> None:
        """Report one event. Where the reader is gone or slow, lines are lost; see `Sink`."""
        if self._filter is None:
            self._print({"event": event, **fields})
            return
        if event in PROGRESS:
            now = time.monotonic()
            if now < self._progress_at_s + self._every_s:
                return
            self._progress_at_s = now
        suppressed = self._filter.take(event)
        if suppressed is None:
            return
        left_out = [(event, suppressed)] if suppressed else []
        if event == "stopped":
            left_out += self._filter.end()
        for of, lines in left_out:
            self._print({"event": "suppressed", "of": of, "lines": lines})
        self._print({"event": event, **fields})

    def _print(self, message: Message) -> None:
        if self._filter is not None and self._as_json:
            level = self._filter.level(message["event"])
            message = {**message, "time_unix_s": time.time(), "level": level}
        line = json.dumps(message) if self._as_json else self._human(message)
        if line:
            self._sink.write(line)
        if message["event"] == "stopped":
            self._sink.drain()


class Control:
    """Tells a role whether to go on, from signals and from stdin of an attached role.

    A signal handler may run anywhere, so the handler only sets a flag and writes to a pipe.
    """

    def __init__(self) -> None:
        self.stopping = False
        self.finishing = False
        self.beginning = False
        self.why = ""
        self.concluded = ""
        """Why a run has done enough, if its caller says so; see `conclude`."""
        self.updates_allowed = 0
        """For a worker with a ration: updates that it may push in all."""
        self.steps_of_run = 0
        """For a worker with a schedule: environment steps of all workers so far."""
        self._stats_wanted = False
        self._saves_wanted: deque[int] = deque(maxlen=SAVES)
        self._files_wanted: deque[str] = deque(maxlen=SAVES)
        self._parent: _Parent | None = None
        """The parent's process, for a role that owns its own."""
        self._wake_out, self._wake_in = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(self._wake_out, False)

    def catch_signals(self) -> Control:
        """Stop cleanly on SIGTERM and SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._caught)
        return self

    def watch(self, stream: IO[str], *, owns_process: bool = True) -> None:
        """Obey the lines of ``stream`` from now on, and stop at its end.

        owns_process: the process belongs to this role alone. If the role does not stop in time
        after its parent is gone, the process is ended, with its process group.
        """
        self._parent = _Parent(_serves) if owns_process else None
        threading.Thread(target=self._obey, args=(stream, owns_process), daemon=True).start()

    def wait(self, timeout_s: float) -> bool:
        """Wait for a request, at most ``timeout_s`` seconds; return whether to stop."""
        wanted = self._stats_wanted or self._saves_wanted or self._files_wanted
        if not self.stopping and not wanted:
            select.select([self._wake_out], [], [], max(timeout_s, 0))
        self._drain()
        return self.stopping

    def stats_wanted(self) -> bool:
        """True if a report was asked for since the last call."""
        wanted, self._stats_wanted = self._stats_wanted, False
        return wanted

    def saves_wanted(self) -> list[int]:
        """The jobs whose models were asked for since the last call."""
        wanted = []
        while self._saves_wanted:
            wanted.append(self._saves_wanted.popleft())
        return wanted

    def files_wanted(self) -> list[str]:
        """The models that are to be evaluated, since the last call."""
        wanted = []
        while self._files_wanted:
            wanted.append(self._files_wanted.popleft())
        return wanted

    def stop(self, why: str) -> None:
        """Ask the role to stop, once; the first reason is kept."""
        if not self.stopping:
            self.why = why
            self.stopping = True
        self._wake()

    def conclude(self, why: str) -> None:
        """End a run in order, as its limits do; the first reason is kept."""
        self.concluded = self.concluded or why
        self._wake()

    def close(self) -> None:
        """The role has ended. If its parent is gone, end the programs that the role has started.

        A parent that lives does so itself. Call it on every way out.
        """
        if self._parent is not None and self._parent.is_gone():
            end_own_group()

    def _caught(self, number: int, frame: FrameType | None) -> None:
        if self.stopping and number == signal.SIGINT:
            raise KeyboardInterrupt  # the second Ctrl-C: at once
        self.stop(signal.Signals(number).name)

    def _obey(self, stream: IO[str], owns_process: bool) -> None:
        for line in stream:
            word = line.strip()
            if word == "begin":
                self.beginning = True
                self._wake()
            elif word == "finish":
                self.finishing = True
                self._wake()
            elif word == "stop":
                self.stop("asked to")
            elif word == "stats":
                self._stats_wanted = True
                self._wake()
            elif word.startswith("updates ") and word[8:].isdecimal():
                self.updates_allowed = max(self.updates_allowed, int(word[8:]))
                self._wake()
            elif word.startswith("evaluate "):
                self._files_wanted.append(word.removeprefix("evaluate "))
                self._wake()
            elif word.startswith("steps ") and word[6:].isdecimal():
                self.steps_of_run = max(self.steps_of_run, int(word[6:]))
            elif word.startswith("save ") and word[5:].isdecimal():
                self._saves_wanted.append(int(word[5:]))
                self._wake()
        self.stop(PARENT_GONE)
        if owns_process:
            # Nobody reads what the role prints: that must not stop it from closing what it has.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, STDOUT)
            os.dup2(nowhere, STDERR)
            time.sleep(ORPHAN_GRACE_S)
            end_own_group()
            os._exit(1)

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # the pipe is full of wake-ups already
            os.write(self._wake_in, b"!")

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_out, 512):
                pass


_serves: int | None = None


def serve_for(parent: int) -> None:
    """In a process of a fork server: the parent is the one of this pidfd, and not the server."""
    global _serves  # noqa: PLW0603
    _serves = parent


class _Parent:
    """The process that reads what this one says."""

    def __init__(self, life: int | None) -> None:
        """life: its pidfd; None: it is the one that has started this process."""
        self._life, self._pid = life, os.getppid()

    def is_gone(self) -> bool:
        if self._life is None:
            return os.getppid() != self._pid
        # Unlike `select.select`, it takes descriptors above 1,023.
        look = select.poll()
        look.register(self._life, select.POLLIN)
        return bool(look.poll(0))


def end_own_group() -> None:
    """Kill this process and all others of its group, if the group is its own."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)


@contextlib.contextmanager
def no_child_stays() -> Iterator[None]:
    """At the end, kill the programs that were started meanwhile and still run, with theirs.

    For a command whose process group is not its own. It does nothing on a system without
    ``/proc/PID/task/TID/children``.
    """
    before = set(_children_of(os.getpid()))
    try:
        yield
    finally:
        for pid in _children_of(os.getpid()):
            if pid not in before:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)


def _children_of(pid: int) -> list[int]:
    """The processes below a process, the lowest first."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                for word in (task / "children").read_text(encoding="ascii").split():
                    found += [*_children_of(int(word)), int(word)]
    return found
