"""A real `olaf schedule serve`, and what the tests of it share."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

from commands import olaf

SPEC: dict[str, Any] = {
    "topology": {"word": "fat-tree:4"},
    "capacity": "port:1",
    "placement": {"policy": "first_fit"},
    "trees": {"policy": "first"},
    "seed": 0,
    "most_queued": 50,
    "most_ended": 50,
}
"""16 hosts; policies that remember nothing, so that a restart decides as its original would."""

START_S = 60.0


class Service:
    """A context manager: a process that serves, until it is stopped or killed."""

    def __init__(self, store: Path, *more: str, files: int | None = None) -> None:
        """files: the most files that its process may open; None: as many as this one."""
        command = [sys.executable, "-m", "olaf", "schedule", "serve", "--store", str(store)]
        if files is not None:
            command = ["/bin/sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command]
        self.process = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0", "--json", *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.url: str = self.line()["url"]

    def line(self) -> dict[str, Any]:
        """The next line that it says; unbuffered, so that select tells the truth."""
        assert self.process.stdout is not None
        deadline, said = time.monotonic() + START_S, b""
        descriptor = self.process.stdout.fileno()
        while not said.endswith(b"\n"):
            ready, _, _ = select.select([descriptor], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(descriptor, 1) if ready else b""
            if not piece:
                self.process.kill()
                assert self.process.stderr is not None
                raise AssertionError(f"no line: {said!r} {self.process.stderr.read()!r}")
            said += piece
        message: dict[str, Any] = json.loads(said)
        return message

    def olaf(self, *words: str) -> subprocess.CompletedProcess[str]:
        """``olaf schedule ..`` against it."""
        return olaf("schedule", *words, "--url", self.url)

    def end(self, how: signal.Signals) -> int:
        """Signal it and wait."""
        self.process.send_signal(how)
        return self.process.wait(START_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()
