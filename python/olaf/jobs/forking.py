"""Children that are forked from a process with everything imported: `olaf.jobs.fork_server`.

With a fork server, the start of a role takes milliseconds in place of half a second of imports.
`opened` starts one; `olaf.jobs.supervisor.Supervisor` asks it for each child, and starts the child
anew if it says no: on a system without pidfds (macOS), for programs that are not ours, and where
the environment of the child could have changed what was imported.

differs from a child that was started anew: its parent is the fork server. The server keeps it as a
zombie until the supervisor asks for its exit code, so that nobody else gets its number before.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from olaf.errors.outcome import Exit
from olaf.jobs.fork_server import receive, send
from olaf.jobs.processes import close_pipes, end_group_of
from olaf.rl import process_environment

ANSWER_S = 60.0
"""Seconds for the server's answer; a cold disk may need many for the imports."""

LEARNING = (
    "olaf._olaf",
    "olaf.cli.main",
    "olaf.cli.roles",
    "olaf.jobs.playing",
    "olaf.jobs.rehearsing",
    "olaf.jobs.roles",
    "olaf.rl.making",
    "olaf.rl.ppo_numpy",
    "olaf.rl.seeding",
    "olaf.rl.worker_loop",
)
"""What every worker imports. Never a module that is run as ``__main__``."""

OF_TORCH = ("torch", "olaf.rl.ppo_torch")
"""What a worker with ``learner = torch`` imports as well."""

READ_AT_IMPORT = ("PYTHON", "LD_", "OMP_", "OPENBLAS_", "MKL_", "KMP_", "GOMP_", "MALLOC_", "NPY_")
"""Variables that Python, numpy and the linker read once begin with these. A child for which they
differ is started anew."""


class Forked:
    """A process that the fork server has forked. Implements `olaf.jobs.processes.Process`."""

    def __init__(self, server: ForkServer, pid: int, life: int, pipes: Sequence[int]) -> None:
        """life: its pidfd. pipes: this side of its stdin, stdout and stderr."""
        self._server = server
        self.pid = pid
        self.life: int | None = life
        self.stdin: IO[bytes] | None = os.fdopen(pipes[0], "wb")
        self.stdout: IO[bytes] | None = os.fdopen(pipes[1], "rb")
        self.stderr: IO[bytes] | None = os.fdopen(pipes[2], "rb")

    def has_exited(self) -> bool:
        """See `Process.has_exited`."""
        return self._ends_within(0)

    def kill(self) -> None:
        """See `Process.kill`."""
        if self.life is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.life, signal.SIGKILL)

    def end_group(self) -> None:
        """See `Process.end_group`."""
        # If the server is gone, a dead child is no zombie: its number may be somebody else's.
        if self._server.lives or not self.has_exited():
            end_group_of(self.pid)

    def reap(self, timeout_s: float | None = None) -> tuple[int, float]:
        """See `Process.reap`. The exit code is `Exit.FAILED` if the server is gone."""
        if not self._ends_within(timeout_s):
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout_s or 0)
        answer, _ = self._server.ask({"ask": "reap", "pid": self.pid})
        if answer is None or answer["code"] is None:
            return int(Exit.FAILED), 0.0
        return int(answer["code"]), float(answer["cpu_s"])

    def let_go(self) -> None:
        """See `Process.let_go`."""
        if self.life is not None:
            os.close(self.life)
            self.life = None
        close_pipes(self)

    def _ends_within(self, timeout_s: float | None) -> bool:
        if self.life is None:
            return True
        poll = select.poll()
        poll.register(self.life, select.POLLIN)
        return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))


class ForkServer:
    """The server's process. Safe to use from several threads."""

    def __init__(self) -> None:
        """Start it; it imports at once. Raises ``OSError``."""
        self._lock = threading.Lock()
        self._environment = {**os.environ, **process_environment()}
        self._folder = os.getcwd()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "olaf.jobs.fork_server", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=self._environment,
                process_group=0,
                pass_fds=[theirs.fileno()],
            )
        self._channel = ours
        self._channel.settimeout(ANSWER_S)
        self.lives = True
        """False once it has failed to answer; it is then asked no more."""
        self._prepared: set[tuple[str, ...]] = set()
        self._prepare(LEARNING)

    def prepare(self, learner: str, environment: str) -> None:
        """Import what this learner and this environment need, before the next start."""
        self._prepare(OF_TORCH if learner == "torch" else (), environment)

    def start(
        self,
        name: str,
        argv: Sequence[str],
        environment: Mapping[str, str],
        descriptors: Sequence[int] = (),
    ) -> Forked | None:
        """Fork a process for ``python -m olaf..``; None if it has to be started anew.

        descriptors: open files that it inherits, under other numbers.
        """
        if not self.lives or not _is_ours(argv) or self._changes_imports(environment):
            return None
        folder = os.getcwd()
        theirs: list[int] = []
        ours: list[int] = []
        for is_input in (True, False, False):
            out, into = os.pipe()
            theirs.append(out if is_input else into)
            ours.append(into if is_input else out)
        message = {
            "ask": "start",
            "name": name,
            "module": argv[2],
            "arguments": list(argv[3:]),
            "environment": dict(environment),
            "folder": folder,
            "began_in": self._folder,
        }
        answer, given = self.ask(message, [*theirs, *descriptors])
        for end in theirs:
            os.close(end)
        if answer is None or "pid" not in answer:
            for end in (*ours, *given):
                os.close(end)
            return None
        return Forked(self, int(answer["pid"]), given[0], ours)

    def ask(
        self, message: Mapping[str, Any], descriptors: Sequence[int] = ()
    ) -> tuple[dict[str, Any] | None, list[int]]:
        """The server's answer and its descriptors; None if it has none."""
        with self._lock:
            if self.lives:
                try:
                    send(self._channel, message, descriptors)
                    return receive(self._channel)
                except (OSError, EOFError, ValueError) as error:
                    # A process whose environment is too long for a message is started anew.
                    if getattr(error, "errno", None) != errno.EMSGSIZE:
                        self.lives = False
                        self._process.kill()
            return None, []

    def close(self) -> None:
        """End it. Its children live on; a supervisor has ended them before."""
        self.lives = False
        self._channel.close()
        self._process.kill()
        self._process.wait()

    def let_go_in_fork(self) -> None:
        """In a forked copy of this process: this is not the server's parent."""
        self.lives = False
        self._channel.close()

    def _prepare(self, modules: tuple[str, ...], environment: str = "") -> None:
        key = (*modules, environment)
        if key in self._prepared:
            return
        self._prepared.add(key)
        with self._lock, contextlib.suppress(OSError):
            send(self._channel, {"ask": "prepare", "modules": modules, "environment": environment})

    def _changes_imports(self, environment: Mapping[str, str]) -> bool:
        ours = self._environment
        changed = {n for n in {*ours, *environment} if ours.get(n) != environment.get(n)}
        return any(name.startswith(READ_AT_IMPORT) for name in changed)


def _is_ours(argv: Sequence[str]) -> bool:
    """True for a module of Olaf's, run by this Python."""
    is_module = len(argv) > 2 and argv[0] == sys.executable and argv[1] == "-m"
    return is_module and argv[2].partition(".")[0] == "olaf"


_LOCK = threading.Lock()
_server: ForkServer | None = None
_users = 0


@contextlib.contextmanager
def opened() -> Iterator[None]:
    """Have a fork server meanwhile, if this system can. One serves the whole process."""
    global _server, _users  # noqa: PLW0603
    with _LOCK:
        if _users == 0 and can_fork():
            with contextlib.suppress(OSError):
                _server = ForkServer()
        _users += 1
    try:
        yield
    finally:
        with _LOCK:
            _users -= 1
            if _users == 0 and _server is not None:
                _server.close()
                _server = None


def current() -> ForkServer | None:
    """The fork server, if there is one."""
    return _server


def prepare(learner: str, environment: str) -> None:
    """See `ForkServer.prepare`; nothing without a server."""
    if _server is not None:
        _server.prepare(learner, environment)


def can_fork() -> bool:
    """True on Linux 5.3 and newer. On macOS a fork is unsafe once libraries have used threads."""
    return sys.platform == "linux" and hasattr(os, "pidfd_open") and bool(sys.executable)


def _let_go() -> None:
    global _server, _users
    if _server is not None:
        _server.let_go_in_fork()
    _server, _users = None, 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
