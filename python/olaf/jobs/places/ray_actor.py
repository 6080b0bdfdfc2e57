"""One role of a job in a Ray actor: the remote end of `RayPlace`.

The role is the same code as in a process of `olaf train`; only its lines take another way. Messages
go to a list that the driver reads. Instructions come through a pipe; its end stops the role.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import platform
import secrets
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from olaf.errors.outcome import Exit, failure_of
from olaf.jobs.roles import run_told
from olaf.jobs.supervisor import HERE
from olaf.processes.lines import Control, Reporter

MOST_LINES = 100_000
"""Most lines kept for a driver that has stopped reading, so that memory stays bounded."""

MOST_PRINTED = 1_000
"""Most printed lines among them: the user's code may print faster than the driver reads."""

AT_ONCE = 2_000
"""Most lines in one answer."""


DRIVER_S = 150.0
"""A role ends after this many seconds without a call from the driver. The driver is then gone, or
has replaced this actor without being able to tell it."""


@dataclass(frozen=True)
class Where:
    """The process in which a role runs."""

    pid: int
    address: str
    """Address of the node, as Ray knows it; IPv6 in brackets."""
    name: str
    """Name of the machine."""
    node: str
    """Ray's id of the node in the cluster."""
    life: str
    """Random id of the process: equal ids mean the same process."""


@dataclass(frozen=True)
class Heard:
    """The messages of a role since the driver's last call."""

    lines: list[tuple[str, str]]
    """``("said", JSON)`` or ``("printed", text)``."""
    upto: int
    """Total number of lines so far."""
    code: int | None
    """The exit code, once the role has ended and this answer holds its last lines."""


@dataclass(frozen=True)
class Copy:
    """A file in transit between machines."""

    file: str
    content: bytes
    written_ns: int

    @classmethod
    def of(cls, file: Path) -> Copy | None:
        """A copy of the file, or None if it does not exist."""
        try:
            return cls(str(file), file.read_bytes(), file.stat().st_mtime_ns)
        except OSError:
            return None

    @property
    def digest(self) -> str:
        """SHA-256."""
        return hashlib.sha256(self.content).hexdigest()

    def unfold(self) -> None:
        """Write the file here in one step, unless the local file is as new."""
        file = Path(self.file)
        if file.exists() and file.stat().st_mtime_ns >= self.written_ns:
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        half = file.with_name(file.name + ".copy")
        half.write_bytes(self.content)
        os.utime(half, ns=(self.written_ns, self.written_ns))
        half.replace(file)


class RoleActor:
    """The class of the Ray actor. Its methods run in threads of their own."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._lines: list[tuple[str, str]] = []
        self._first = 0
        """Number of lines that the driver has received and this actor has deleted."""
        self._code: int | None = None
        self._begun = False
        self._life = secrets.token_hex(8)
        self._printed = 0
        """Printed lines among those that are kept."""
        self._left_out = 0
        """Printed lines that were not kept since the last one that was."""
        self._orders: IO[str] | None = None
        self._asked_at = time.monotonic()

    def begin(self, role: str, first_line: str, folder: str, files: Sequence[Copy] = ()) -> Where:
        """Start the role, unless it runs: then the driver had only lost the connection.

        files: the files that the role continues from, unless this machine has newer ones.
        """
        address, node = _node()
        where = Where(os.getpid(), address, platform.node(), node, self._life)
        with self._lock:
            if self._begun:
                return where
            self._begun = True
            self._asked_at = time.monotonic()
        _settle_in(Path(folder))
        for file in files:
            file.unfold()
        far, near = os.pipe()
        self._orders = os.fdopen(near, "w", buffering=1, encoding="utf-8")
        told = json.loads(first_line.replace(HERE, where.address))
        threading.Thread(
            target=self._run, args=(role, told, os.fdopen(far, encoding="utf-8")), daemon=True
        ).start()
        threading.Thread(target=self._watch_driver, daemon=True).start()
        return where

    def hear(self, after: int, wait_s: float) -> Heard:
        """The lines after number ``after``, as soon as there are any; earlier lines are deleted."""
        with self._lock:
            self._asked_at = time.monotonic()
            had = max(after - self._first, 0)
            self._printed -= sum(kind == "printed" for kind, _ in self._lines[:had])
            del self._lines[:had]
            self._first += had
            self._lock.wait_for(lambda: self._lines or self._code is not None, wait_s)
            lines = self._lines[:AT_ONCE]
            whole = len(lines) == len(self._lines)
            return Heard(lines, self._first + len(lines), self._code if whole else None)

    def tell(self, line: str) -> None:
        """Pass a line on to the role."""
        if self._orders is not None:
            with contextlib.suppress(OSError, ValueError):
                self._orders.write(line + "\n")

    def read(self, file: str, unless: str) -> Copy | None:
        """A file that the role wrote; None if it does not exist or its SHA-256 is ``unless``."""
        copy = Copy.of(Path(file))
        return None if copy is None or copy.digest == unless else copy

    # The methods of a stream, so that a Reporter can write to this object.

    def write(self, line: str) -> int:
        """Keep a line for the driver."""
        self._add("said", line.rstrip("\n"))
        return len(line)

    def flush(self) -> None:
        """Do nothing: no line is buffered."""

    def _add(self, kind: str, text: str) -> None:
        with self._lock:
            if len(self._lines) >= MOST_LINES:
                os._exit(int(Exit.UNREACHABLE))
            self._lines.append((kind, text))
            self._printed += kind == "printed"
            self._lock.notify_all()

    def printed(self, text: str) -> None:
        """Keep a line that the role's code has printed, or count it if too many wait."""
        with self._lock:
            if self._printed >= MOST_PRINTED:
                self._left_out += 1
                return
            count, self._left_out = self._left_out, 0
        if count:
            self._add("printed", f"({count:,} lines were left out here)")
        self._add("printed", text)

    def _watch_driver(self) -> None:
        while self._code is None:
            if time.monotonic() - self._asked_at > DRIVER_S:
                print(f"olaf: no call from the driver for {DRIVER_S:g} s", flush=True)
                os._exit(int(Exit.UNREACHABLE))
            time.sleep(DRIVER_S / 30)

    def _run(self, role: str, told: dict[str, Any], orders: IO[str]) -> None:
        control = Control()
        # Ray ends the process of an actor; `_watch_driver` ends it if the driver is gone.
        control.watch(orders, owns_process=False)
        reporter = Reporter(as_json=True, out=cast(IO[str], self), human=lambda message: "")
        began = time.strftime("%Y-%m-%d %H:%M:%S")
        print(f"{began} olaf {role}: began", flush=True)  # in Ray's log of this actor
        code = _outcome(self, role, told, reporter, control)
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} olaf {role}: ended with {code}", flush=True)
        with self._lock:
            self._code = code
            self._lock.notify_all()


class _Printing(io.TextIOBase):
    """Takes what the role's code prints, and passes it on to Ray's log of this actor too."""

    def __init__(self, actor: RoleActor) -> None:
        self._actor, self._log = actor, sys.stdout
        self._rest = ""

    def write(self, text: str) -> int:
        self._log.write(text)
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if line.strip():
                self._actor.printed(line)
        return len(text)

    def flush(self) -> None:
        self._log.flush()


def _outcome(
    actor: RoleActor, role: str, told: dict[str, Any], reporter: Reporter, control: Control
) -> int:
    """Run the role to its end, and print what a process would print to stderr."""
    try:
        with contextlib.redirect_stdout(_Printing(actor)):
            run_told(role, told, reporter, control)
    except SystemExit as end:
        return int(end.code or 0)
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            traceback.print_exc()
        text = str(failure or f"{type(error).__name__}: {error}")
        actor._add("printed", f"olaf: {text}")
        print(f"olaf: {text}", file=sys.stderr, flush=True)
        return int(failure.code if failure else Exit.FAILED)
    return int(Exit.OK)


def _settle_in(folder: Path) -> None:
    """Work in the driver's folder, if this machine has or can have a folder of that name."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.chdir(folder)
        usable = os.access(folder, os.W_OK)
    except OSError:
        usable = False
    if not usable:
        os.chdir(tempfile.mkdtemp(prefix="olaf-"))


def _node() -> tuple[str, str]:
    """Address and id of this node."""
    import importlib

    ray = importlib.import_module("ray")
    address = str(ray.util.get_node_ip_address())
    node = str(ray.get_runtime_context().get_node_id())
    return f"[{address}]" if ":" in address else address, node
