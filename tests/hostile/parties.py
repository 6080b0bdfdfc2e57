"""Real processes on this machine's loopback, and honest workers."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from olaf import _olaf

SIZE = 10


class Party:
    """A switch or a server in a process of its own."""

    def __init__(self, kind: str, config: dict[str, Any]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("party.py")), kind, json.dumps(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = self._line()
        host, _, port = self.address.rpartition(":")
        self.place = (host, int(port))

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, f"the process ended with {self._process.wait()}"
        return line

    def _ask(self, what: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        return json.loads(self._line())

    def stats(self) -> dict[str, Any]:
        read: dict[str, Any] = self._ask("stats")
        return read

    def events(self) -> list[dict[str, Any]]:
        read: list[dict[str, Any]] = self._ask("events")
        return read

    def place_of(self, engine: str) -> tuple[str, int]:
        """Where one of its engines listens."""
        host, _, port = self._ask("addresses")[engine].rpartition(":")
        return host, int(port)

    def metrics(self) -> list[str]:
        """The lines of `/metrics`; it needs `metrics` in its configuration."""
        return self._page("metrics").splitlines()

    def status(self) -> dict[str, Any]:
        """`/status.json`; it needs `metrics` in its configuration."""
        read: dict[str, Any] = json.loads(self._page("status.json"))
        return read

    def _page(self, name: str) -> str:
        with urllib.request.urlopen(f"http://{self._ask('metrics')}/{name}", timeout=20) as answer:
            text: str = answer.read().decode()
        return text

    def memory_mib(self) -> float:
        """Memory that is really there."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class Honest:
    """A worker whose every push adds 1 to each parameter."""

    def __init__(
        self,
        address: str,
        worker: int,
        cluster: int = 0,
        job: int = 1,
        size: int = SIZE,
        **config: Any,
    ) -> None:
        """`config`: as `_olaf.Client` has it."""
        text = json.dumps(config)
        self.client = _olaf.Client(address, job=job, cluster=cluster, worker=worker, config=text)
        self.client.join([np.zeros(size, np.float32)], 30.0)
        self.model = np.zeros(size, np.float32)
        self.version = 0
        self.client.pull([self.model], 0)

    def push(self) -> bool:
        """Push once and wait for a newer model; whether one came."""
        seen = self.version
        self.client.push([np.ones_like(self.model)], reward=0.0)
        if self.client.wait(seen, 5.0) is None:
            return False
        self.version = self.client.pull([self.model], seen) or seen
        return True

    def refused(self) -> dict[str, int]:
        """Datagrams that this worker refused, by reason."""
        found: dict[str, int] = json.loads(self.client.stats())["refused"]
        return found

    def progress(self, pushes: int) -> float:
        """By how much that number of pushes moved the model."""
        self.push()
        # If the answer to an earlier push were still on its way, each push would be of the model
        # before the newest one, and count as stale.
        for _ in range(3):
            if self.client.wait(self.version, 0.1) is not None:
                self.version = self.client.pull([self.model], self.version) or self.version
        before = float(self.model[0])
        for _ in range(pushes):
            self.push()
        return float(self.model[0]) - before


class Training:
    """Honest workers at work in threads: each takes the model, computes for a while, and pushes."""

    def __init__(self, workers: list[Honest], computes_s: float) -> None:
        self._computes_s = computes_s
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(one,)) for one in workers]

    def __enter__(self) -> Training:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _work(self, worker: Honest) -> None:
        due = time.monotonic()
        while not self._over.is_set():
            worker.version = worker.client.pull([worker.model], worker.version) or worker.version
            due = max(due + self._computes_s, time.monotonic())
            self._over.wait(due - time.monotonic())
            worker.client.push([np.ones(SIZE, np.float32)], reward=0.0)
            worker.client.wait(worker.version, self._computes_s / 2)
