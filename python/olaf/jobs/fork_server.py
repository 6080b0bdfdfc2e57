"""A process that has imported what the roles of a run need, and forks them.

`olaf.jobs.forking` starts it and speaks with it in JSON, over a socket that keeps the borders of
messages and carries descriptors. A fork takes milliseconds; the imports of a new Python take most
of a second.

Only this process forks, and it has one thread: a fork of a process with threads inherits their
locks as they are. It runs none of the user's code. The forked process is as one that was started
anew: pipes, process group, arguments, folder and environment of its own, and Python's usual end.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import resource
import runpy
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TextIO

MESSAGE_BYTES = 1 << 22
"""Longest message; the kernel's buffer (``net.core.wmem_max``) sets a lower limit."""

MOST_DESCRIPTORS = 32
"""Most descriptors of one message."""

NAME_BYTES = 15
"""Longest name of a process in Linux."""


@dataclass(frozen=True)
class Task:
    """What a forked process is to run: ``python -m MODULE ARGUMENTS``."""

    module: str
    arguments: Sequence[str]


def receive(channel: socket.socket) -> tuple[Any, list[int]]:
    """The next message and its descriptors. Raises ``EOFError`` if the other side is gone."""
    data, descriptors, _, _ = socket.recv_fds(channel, MESSAGE_BYTES, MOST_DESCRIPTORS)
    if not data:
        raise EOFError
    return json.loads(data), descriptors


def send(channel: socket.socket, message: Any, descriptors: Sequence[int] = ()) -> None:
    """Send a message with descriptors. Raises ``OSError``, also if the message is too long."""
    socket.send_fds(channel, [json.dumps(message).encode()], descriptors)


class Server:
    """Answers until the other side is gone."""

    def __init__(self, channel: socket.socket, parent: int) -> None:
        """parent: a pidfd of the process that has started this one."""
        self._channel, self._parent = channel, parent
        self._is_frozen = False
        self._counted_s = 0.0
        """CPU seconds of this process that were told."""

    def run(self) -> Task | None:
        """Serve; return None at the end, and in a forked process what it is to run."""
        while True:
            try:
                message, descriptors = receive(self._channel)
                match message["ask"]:
                    case "prepare":
                        self._prepare(message)
                    case "start":
                        if task := self._start(message, descriptors):
                            return task
                    case "reap":
                        send(self._channel, self._reap(message["pid"]))
            except (EOFError, OSError):  # the other side is gone
                return None

    def _prepare(self, message: Mapping[str, Any]) -> None:
        for module in message["modules"]:
            _import(module)
        if environment := message.get("environment"):
            _import_environment(environment)

    def _start(self, message: Mapping[str, Any], descriptors: list[int]) -> Task | None:
        """Fork. Answers in this process; returns the task in the forked one."""
        if (threads := len(os.listdir("/proc/self/task"))) != 1:
            self._refuse(descriptors, f"{threads} threads")
            return None
        if not self._is_frozen:
            # Garbage collection in a child would touch, and so copy, the pages that all share.
            gc.collect()
            gc.freeze()
            self._is_frozen = True
        try:
            pid = os.fork()
        except OSError as error:
            self._refuse(descriptors, str(error))
            return None
        if pid == 0:
            self._channel.close()
            try:
                _settle(message, descriptors, self._parent)
            except BaseException:  # such as a folder that is gone: no error of the channel
                os.write(2, traceback.format_exc().encode(errors="replace"))
                os._exit(1)
            return Task(message["module"], message["arguments"])
        with contextlib.suppress(OSError):  # the child does the same; one of both is first
            os.setpgid(pid, pid)
        try:
            life = os.pidfd_open(pid)
        except OSError as error:  # no descriptor is left: nobody could watch the child
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self._refuse(descriptors, str(error))
            return None
        _close(descriptors)
        try:
            send(self._channel, {"pid": pid}, [life])
        finally:
            os.close(life)
        return None

    def _refuse(self, descriptors: Sequence[int], why: str) -> None:
        _close(descriptors)
        send(self._channel, {"refused": why})

    def _reap(self, pid: int) -> Mapping[str, Any]:
        """Exit code and CPU seconds of a process that has exited; no code while it has not.

        What this process has used since the last answer is counted with it: its imports.
        """
        found, status, used = os.wait4(pid, os.WNOHANG)
        if not found:
            return {"code": None, "cpu_s": 0.0}
        own = resource.getrusage(resource.RUSAGE_SELF)
        own_s, before_s = own.ru_utime + own.ru_stime, self._counted_s
        self._counted_s = own_s
        cpu_s = used.ru_utime + used.ru_stime + own_s - before_s
        return {"code": os.waitstatus_to_exitcode(status), "cpu_s": cpu_s}


def _settle(message: Mapping[str, Any], descriptors: Sequence[int], parent: int) -> None:
    """In the forked process: become what a program that was started anew would be."""
    os.setpgid(0, 0)
    pipes, kept = descriptors[:3], descriptors[3:]
    for number, pipe in enumerate(pipes):
        os.dup2(pipe, number)
    _close(pipes)
    for descriptor in kept:
        os.set_inheritable(descriptor, True)
    began_in, folder = sys.path[0], message["folder"]
    os.chdir(folder)
    if began_in == message["began_in"]:
        sys.path[0] = folder
    importlib.invalidate_caches()
    os.environ.clear()
    os.environ.update(message["environment"])
    for name, mode, buffering in (("stdin", "r", -1), ("stdout", "w", -1), ("stderr", "w", 1)):
        setattr(sys, name, _reopened(getattr(sys, name), mode, buffering))
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()  # as Python's own random does by itself in a fork
    with contextlib.suppress(OSError):  # what ps and top show
        name = f"olaf {message['name']}"[:NAME_BYTES]
        Path("/proc/self/comm").write_text(name, encoding="utf-8")
    from olaf.processes import lines

    lines.serve_for(parent)


def _reopened(stream: TextIO, mode: str, buffering: int) -> IO[Any]:
    """A stream on the same descriptor, which is another file now."""
    number, encoding, errors = stream.fileno(), stream.encoding, stream.errors
    return open(number, mode, buffering, encoding=encoding, errors=errors, closefd=False)


def _import(module: str) -> None:
    """Import a module. The forked process imports what fails here, and says why it fails."""
    with contextlib.suppress(Exception):
        importlib.import_module(module)


def _import_environment(name: str) -> None:
    """Import the module of one of gymnasium's own environments. Others are the user's code."""
    with contextlib.suppress(Exception):
        import gymnasium

        entry = gymnasium.registry[name].entry_point
        module = entry.partition(":")[0] if isinstance(entry, str) else ""
        if module.startswith("gymnasium."):
            _import(module)


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def main(argv: Sequence[str]) -> None:
    """Serve; in a forked process, run its task to its end."""
    channel = socket.socket(fileno=int(argv[0]))
    channel.set_inheritable(False)
    task = Server(channel, os.pidfd_open(os.getppid())).run()
    if task is None:
        os._exit(0)
    sys.argv = [task.module, *task.arguments]
    os._exit(_ended(task))


def _ended(task: Task) -> int:
    """Run a task to its end as Python does; return the exit code.

    What follows in Python is left out, as it is in the children of multiprocessing: to take apart
    what the server has imported would copy the pages that all share (1.3 s of CPU with torch).
    """
    code = 0
    try:
        runpy.run_module(task.module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, int):
            code = end.code & 0xFF
        elif end.code is not None:
            print(end.code, file=sys.stderr)
            code = 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads that are no daemons
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    return code


if __name__ == "__main__":
    main(sys.argv[1:])
