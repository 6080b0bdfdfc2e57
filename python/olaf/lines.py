"""How a role's process and whoever started it talk: one JSON object a line each way.

Out, on standard output: ``{"event": "listening", ..}`` or ``{"event": "joined", ..}`` at the
start, events as they come, ``stats`` every so often, ``stopped`` at the end. In, on standard
input, and only for a process that was started with ``--attached``: first its checked
configuration, later ``stats`` (report now), ``save JOB`` (a server: write the model of this job and
say ``saved`` with the file), ``finish`` (a worker: push no more, but stay in the
job until what waits in the network has arrived) or ``stop``. The end of standard input means that
the parent is gone, however it went; the process then stops, so that a killed parent leaves no
orphans.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import IO, Any

Message = dict[str, Any]

ORPHAN_GRACE_S = 10.0
"""What an orphan may take to stop by itself before it is ended where it stands."""

SAVES = 64
"""Questions for a model that may wait; a parent asks one after the other."""


def clock_here() -> str:
    """Which monotonic clock this process reads: one a machine and a start of it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()


class Reporter:
    """Says what a role does: JSON lines for programs, sentences for people."""

    def __init__(
        self, *, as_json: bool, out: IO[str] | None = None, human: Callable[[Message], str]
    ) -> None:
        self._as_json = as_json
        self._out = out or sys.stdout
        self._human = human

    def say(self, event: str, **fields: Any) -> None:
        """Report one event; a reader that is gone is no reason to fail."""
        message = {"event": event, **fields}
        line = json.dumps(message) if self._as_json else self._human(message)
        if not line:
            return
        try:
            self._out.write(line + "\n")
            self._out.flush()
        except (BrokenPipeError, ValueError):
            # Whoever read us has left. Standard input (or a signal) says when to stop.
            self._out = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


class Control:
    """Whether a role should go on: signals, and the lines on standard input of an attached one.

    A signal handler may run anywhere, so that only a flag and a pipe are touched in it.
    """

    def __init__(self) -> None:
        self.stopping = False
        self.finishing = False
        self.why = ""
        self._stats_wanted = False
        self._saves_wanted: deque[int] = deque(maxlen=SAVES)
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

        owns_process: the process is this role's alone, so that a role which does not stop in time
            after its parent is gone takes the process with it.
        """
        threading.Thread(target=self._obey, args=(stream, owns_process), daemon=True).start()

    def wait(self, timeout_s: float) -> bool:
        """Wait until something is asked for, at most so long; whether to stop."""
        if not self.stopping and not self._stats_wanted and not self._saves_wanted:
            select.select([self._wake_out], [], [], max(timeout_s, 0))
        self._drain()
        return self.stopping

    def stats_wanted(self) -> bool:
        """Whether a report was asked for since the last call."""
        wanted, self._stats_wanted = self._stats_wanted, False
        return wanted

    def saves_wanted(self) -> list[int]:
        """The jobs whose models were asked for since the last call."""
        wanted = []
        while self._saves_wanted:
            wanted.append(self._saves_wanted.popleft())
        return wanted

    def stop(self, why: str) -> None:
        """Ask the role to stop, once; the first reason stays."""
        if not self.stopping:
            self.why = why
            self.stopping = True
        self._wake()

    def _caught(self, number: int, frame: FrameType | None) -> None:
        if self.stopping and number == signal.SIGINT:
            raise KeyboardInterrupt  # the second Ctrl-C: at once
        self.stop(signal.Signals(number).name)

    def _obey(self, stream: IO[str], owns_process: bool) -> None:
        for line in stream:
            word = line.strip()
            if word == "finish":
                self.finishing = True
                self._wake()
            elif word == "stop":
                self.stop("asked to")
            elif word == "stats":
                self._stats_wanted = True
                self._wake()
            elif word.startswith("save ") and word[5:].isdecimal():
                self._saves_wanted.append(int(word[5:]))
                self._wake()
        self.stop("parent gone")
        if owns_process:
            time.sleep(ORPHAN_GRACE_S)
            os._exit(1)

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full of wake-ups already
            os.write(self._wake_in, b"!")

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_out, 512):
                pass
