"""The flight recorder: each worker keeps its last operations, for those who look why a job hangs.

With ``OLAF_FLIGHT=FOLDER`` each worker writes them to a file of the folder: when it joins, when an
operation fails, when it leaves, and when somebody asks. ``olaf flight FOLDER`` asks, and shows the
operations of all workers side by side.

A worker that writes because an operation failed asks all others: so one folder has the operations
of one moment. To ask is to touch the file ``asked`` of the folder: the folder may be on a disk that
several machines share.
"""

from __future__ import annotations

import atexit
import itertools
import json
import logging
import os
import re
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from olaf.files import writing
from olaf.processes import forking
from olaf.sums.checking import Place, is_known

VARIABLE = "OLAF_FLIGHT"
"""The folder to write to."""
SIZE_VARIABLE = "OLAF_FLIGHT_SIZE"
DEFAULT_SIZE = 256
LARGEST_SIZE = 100_000

FORMAT = "olaf flight 1"
ASKED = "asked"
"""A file of the folder: who touches it asks all workers to write."""
SUFFIX = ".flight.json"

EVERY_S = 0.05
"""How often a worker looks whether somebody asks. Only with a folder."""

OPEN: Final = "open"
DONE: Final = "done"
ENDED: Final = "ended"
NOT_BEGUN: Final = "not_begun"

TYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "i64": "int64"}
"""Types by the core's names."""


class Future(Protocol):
    """The result of an asynchronous operation."""

    def is_over(self) -> bool:
        """The operation has ended, whether or not the program knows."""


class Call(NamedTuple):
    """What the program called."""

    number: int
    op: str
    lanes: str
    size: int
    root: int
    place: Place | None


class Entry:
    """An operation of this worker. Most have only the first two values of their own."""

    state: str = OPEN
    ended_ns: int = 0
    error: str | None = None
    culprit: int | None = None
    future: weakref.ref[Future] | None = None
    """Of an operation whose end the program has not asked for."""

    def __init__(self, call: tuple[int, str, str, int, int, Place | None]) -> None:
        # A plain tuple: each operation makes one, and a NamedTuple takes three times as long.
        self.call = call
        self.begun_ns = time.time_ns()

    def watch(self, future: Future) -> None:
        """The operation is asynchronous: the program asks this for its end."""
        self.future = weakref.ref(future)

    def told(self) -> dict[str, Any]:
        """As JSON."""
        call = Call(*self.call)
        is_broadcast = call.op == "broadcast"
        file, line = call.place if call.place and is_known(call.place) else (None, None)
        told = {
            "number": call.number,
            "kind": "broadcast" if is_broadcast else "all_reduce",
            "op": None if is_broadcast else call.op,
            "type": TYPES.get(call.lanes, call.lanes),
            "size": call.size,
            "root": call.root if is_broadcast else None,
            "file": file,
            "line": line,
            "begun_ns": self.begun_ns,
            "ended_ns": self.ended_ns or None,
            "state": self._state(),
        }
        if self.error is not None:
            told["culprit"] = self.culprit
            told["error"] = self.error
        return told

    def _state(self) -> str:
        if self.state != OPEN or self.future is None:
            return self.state
        # The program has not asked for the end yet, or never will.
        future = self.future()
        return OPEN if future is not None and not future.is_over() else ENDED


class Recorder:
    """The last operations of a connection.

    An operation has a number: the first one has 1. The numbers of all workers fit each other, also
    after a failure: what has begun at one worker when an operation fails fails at all workers, at
    some when they begin it.
    """

    def __init__(self, where: Callable[[], tuple[int, int] | None], **about: Any) -> None:
        """where: rank and workers. about: what the file says of the job."""
        size, self._folder = _size(), _folder()
        self._where = where
        self._about = about
        self._ring: deque[Entry] = deque(maxlen=size)
        self._number = self._total = 0
        self._joined_ns = time.time_ns()
        self._file: Path | None = None
        self._writing = threading.Lock()
        forking.register(self)
        if self._folder is not None:
            self._file = self._folder / self._name()
            self.write("joined")
            _watch(self, self._folder)

    def __forked__(self) -> None:
        """In a child that was forked: the operations are those of its parent."""
        self._file, self._writing = None, threading.Lock()

    def begin(self, op: str, lanes: str, size: int, root: int, place: Place | None) -> Entry:
        """An operation begins; the caller says how it ended."""
        self._number += 1
        self._total += 1
        entry = Entry((self._number, op, lanes, size, root, place))
        self._ring.append(entry)
        return entry

    def end(self, entry: Entry, error: BaseException | None = None) -> None:
        """It has ended. A ValueError or a TypeError without a reason: it never began.

        Its number is then free again. A call that the protocol does not have is an operation.
        """
        entry.ended_ns = time.time_ns()
        if error is None:
            entry.state = DONE
            return
        # Not the error itself: it keeps the caller's arrays.
        entry.error, entry.culprit = str(error), getattr(error, "culprit", None)
        if isinstance(error, ValueError | TypeError) and not hasattr(error, "reason"):
            entry.state = NOT_BEGUN
            if self._number == Call(*entry.call).number:
                self._number -= 1
        else:
            entry.state = _reason(error)
        if self._file is not None:
            # In this order: a file that is older than the question has not answered it.
            ask(self._file.parent)
            self.write("failed")

    def operations(self) -> list[dict[str, Any]]:
        """The last operations, the oldest first."""
        return [entry.told() for entry in self._ring.copy()]

    def close(self) -> None:
        """The worker leaves: nothing is written later."""
        self.write("left")
        self._file = None

    def write(self, why: str) -> None:
        """Write the file, if there is a folder. A disk that fails is logged, and no error."""
        with self._writing:
            if self._file is not None:
                self._write(self._file, why)

    def _write(self, file: Path, why: str) -> None:
        operations = self.operations()
        rank, workers = self._where() or (None, None)
        told = {
            "format": FORMAT,
            **self._about,
            "rank": rank,
            "workers": workers,
            "host": socket.gethostname(),
            "process": os.getpid(),
            "joined_ns": self._joined_ns,
            "written_ns": time.time_ns(),
            "why": why,
            "forgotten": self._total - len(operations),
            "operations": operations,
        }
        try:
            writing.write_text(file, json.dumps(told))
        except OSError as error:
            _log.warning("the flight recorder cannot write: %s", error)

    def _name(self) -> str:
        rank, _ = self._where() or (0, 0)
        host = re.sub(r"[^A-Za-z0-9-]", "_", socket.gethostname())
        job = self._about.get("job", 0)
        return f"job{job}-rank{rank}-{host}-{os.getpid()}-{next(_counter)}{SUFFIX}"


def ask(folder: Path) -> None:
    """Ask all workers that write to the folder. Nothing happens where it cannot be written to."""
    try:
        (folder / ASKED).touch()
    except OSError as error:
        _log.warning("the flight recorder cannot ask the other workers: %s", error)


def _folder() -> Path | None:
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    folder = Path(named)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{VARIABLE} = {named!r}: {error.strerror}; name a folder") from None
    return folder


def _size() -> int:
    given = os.environ.get(SIZE_VARIABLE, str(DEFAULT_SIZE))
    if not given.isdecimal() or int(given) > LARGEST_SIZE:
        raise ValueError(
            f"{SIZE_VARIABLE} = {given!r}: must be a number of operations, 0 to {LARGEST_SIZE}"
        )
    return int(given)


def _reason(error: BaseException) -> str:
    reason = getattr(error, "reason", None)
    if isinstance(reason, str):
        return reason
    return "timed_out" if isinstance(error, TimeoutError) else "interrupted"


class _Watcher:
    """A thread that writes the files of this process when somebody asks."""

    def __init__(self, folder: Path) -> None:
        self._asked = folder / ASKED
        self._seen = self._when()
        self.recorders: weakref.WeakSet[Recorder] = weakref.WeakSet()
        threading.Thread(target=self._run, name="olaf-flight", daemon=True).start()

    def write(self, why: str) -> None:
        """Write the file of each connection."""
        with _lock:
            recorders = list(self.recorders)
        for recorder in recorders:
            recorder.write(why)

    def _when(self) -> int:
        try:
            return self._asked.stat().st_mtime_ns
        except OSError:
            return 0

    def _run(self) -> None:
        while True:
            time.sleep(EVERY_S)
            if (now := self._when()) != self._seen:
                self._seen = now
                self.write("asked")


def _watch(recorder: Recorder, folder: Path) -> None:
    with _lock:
        watcher = _watchers.get((os.getpid(), folder))
        if watcher is None:
            watcher = _watchers[os.getpid(), folder] = _Watcher(folder)
        watcher.recorders.add(recorder)


@atexit.register
def _at_exit() -> None:
    """Of connections that their program has not closed."""
    for (process, _), watcher in list(_watchers.items()):
        if process == os.getpid():
            watcher.write("left")


_log = logging.getLogger("olaf")
_counter = itertools.count()
_lock = threading.Lock()
_watchers: dict[tuple[int, Path], _Watcher] = {}
