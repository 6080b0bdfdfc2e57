"""Where a role's lines go: a disk that is full and a reader that has stopped never stop the role.

A line is written at once where the stream takes it. Otherwise a thread of its own waits for the
stream, and the lines wait in memory up to `ROOM_BYTES`. Lines that are lost are counted, and one
line says so when the stream works again.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import stat
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import IO

from olaf.values.numbers import counted

ROOM_BYTES = 1 << 20
"""Lines that wait for a slow reader: some thousand. More are lost, and counted."""

PIECE_BYTES = select.PIPE_BUF
"""A pipe that is ready takes so much without blocking."""

STALLED = "the reader of this log did not read"

Lost = Callable[[int, str], str]
"""The line that tells of lost lines: (how many, why)."""


def lost_in_words(lines: int, why: str) -> str:
    """A sentence about lost lines, for people."""
    return f"{counted(lines, 'line')} of this log lost: {why}"


def lost_as_json(lines: int, why: str) -> str:
    """The same for programs."""
    return json.dumps({"event": "log_lost", "lines": lines, "why": why})


class Sink:
    """Writes lines to a stream that may be full, gone or slow."""

    def __init__(self, stream: IO[str], lost: Lost = lost_in_words) -> None:
        """``lost`` makes the line that tells how many lines were lost, and why."""
        self._stream = stream
        self._lost_line = lost
        self._lost = 0
        self._why = ""
        self._is_torn = False
        """The stream has the beginning of a line and not its end."""
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def write(self, line: str) -> None:
        """Write a line, or let it wait, or lose it. The stream cannot make the caller wait."""
        try:
            fd = self._stream.fileno()
        except (AttributeError, OSError, ValueError):
            self._write_to_object(line)
            return
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()  # what others have printed comes first
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        with self._changed:
            if not self._waiting and self._takes(fd, len(data)):
                self._put(fd, data)
            elif self._waiting_bytes + len(data) > ROOM_BYTES:
                self._lost += 1
                self._why = STALLED
            else:
                self._waiting.append(data)
                self._waiting_bytes += len(data)
                self._wait_for(fd)

    def drain(self, patience_s: float = 1.0) -> None:
        """Give lines that wait so much time to leave. The others are lost."""
        until = time.monotonic() + patience_s
        with self._changed:
            while self._waiting and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)

    def _write_to_object(self, line: str) -> None:
        """The stream of a notebook or of a test, which has no descriptor."""
        lost = self._lost_line(self._lost, self._why) + "\n" if self._lost else ""
        try:
            self._stream.write(f"{lost}{line}\n")
            self._stream.flush()
        except (OSError, ValueError) as error:
            self._lost += 1
            self._why = getattr(error, "strerror", None) or str(error)
        else:
            self._lost = 0

    @staticmethod
    def _takes(fd: int, length_bytes: int) -> bool:
        """Returns true if a write of that length does not block."""
        look = select.poll()  # unlike `select.select`, it takes descriptors above 1,023
        look.register(fd, select.POLLOUT)
        if not look.poll(0):
            return False
        return length_bytes <= PIECE_BYTES or stat.S_ISREG(os.fstat(fd).st_mode)

    def _put(self, fd: int, data: bytes) -> None:
        """Write a line, and before it what was lost. A disk that is full may take a part of it."""
        with self._changed:
            lost, why = self._lost, self._why
        before = b"\n" if self._is_torn else b""
        if lost:
            before += self._lost_line(lost, why).encode() + b"\n"
        is_told = not before or self._try(fd, before)
        is_written = is_told and self._try(fd, data)
        with self._changed:
            self._lost += (0 if is_written else 1) - (lost if is_told else 0)

    def _try(self, fd: int, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            try:
                written = os.write(fd, view)
            except OSError as error:
                self._why = error.strerror or str(error)
                return False
            view = view[written:]
            self._is_torn = bool(view)
        return True

    def _wait_for(self, fd: int) -> None:
        """Let a thread write what waits. The end of the process does not wait for it."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._pass_on, args=(fd,), daemon=True)
            self._thread.start()

    def _pass_on(self, fd: int) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._thread = None
                    self._changed.notify_all()
                    return
                data = self._waiting[0]
            self._put(fd, data)  # this may block
            with self._changed:
                self._waiting.popleft()
                self._waiting_bytes -= len(data)
