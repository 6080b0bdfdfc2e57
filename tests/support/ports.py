"""Ports of this machine's loopback."""

import itertools
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

FIRST, LAST = 20_000, 32_767
"""Below the ports that Linux gives to a socket that asks for port 0 (32,768 to 60,999)."""
EACH = 128
"""Ports of each process of tests: processes side by side never try the same ones."""


def _of_this_process() -> Iterator[int]:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    blocks = (LAST - FIRST) // EACH
    first = FIRST + (os.getppid() + worker) % blocks * EACH
    return itertools.cycle(range(first, first + EACH))


_ports = _of_this_process()


def free_port(kind: socket.SocketKind = socket.SOCK_DGRAM) -> int:
    """A port on which nothing listens, for a process that gets its port before it starts.

    A process that may choose its port takes port 0 instead.
    """
    for port in itertools.islice(_ports, EACH):
        with socket.socket(socket.AF_INET, kind) as trial:
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


@contextmanager
def taken_port(kind: socket.SocketKind = socket.SOCK_DGRAM) -> Iterator[int]:
    """A port that is taken, by a socket that never answers."""
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
