"""Switches and workers of `reduce` for tests: real processes on this machine's loopback."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from commands import message_of

import olaf
from olaf import SumConnection, _olaf

T = TypeVar("T")

PATIENCE_S = 60.0


@contextmanager
def switch_process(*options: str, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``olaf switch --engines reduce`` and its address."""
    listen = ("--engines", "reduce", "--listen", f"127.0.0.1:{port}")
    argv = [sys.executable, "-m", "olaf", "switch", "--json", "--every", "100ms", *listen, *options]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = str(message_of(process, "listening")["address"])
            # Its later lines have a reader, so that no pipe fills.
            threading.Thread(target=process.communicate, daemon=True).start()
            yield process, address
        finally:
            process.kill()


@contextmanager
def switch_here(listen: str = "127.0.0.1:0", **config: Any) -> Iterator[_olaf.Switch]:
    """A switch in this process. config: keys of ``[switch.reduce]``, and ``receive_loss``."""
    outer = {"receive_loss": config.pop("receive_loss", None)}
    told = {"engines": ["reduce"], "listen": listen, "reduce": config, **outer}
    switch = _olaf.Switch(json.dumps(told))
    switch.start()
    try:
        yield switch
    finally:
        switch.stop()


def together(
    address: str, workers: int, work: Callable[[SumConnection], T], **options: Any
) -> list[T]:
    """What each of the workers returns, by rank; each is a thread with a connection of its own."""
    results: dict[int, T] = {}
    errors: list[BaseException] = []
    meeting = threading.Barrier(workers)

    def one() -> None:
        try:
            with olaf.connect_sum(address, workers=workers, **options) as connection:
                rank = connection.rank
                results[rank] = work(connection)
                # A worker that leaves ends the job for the others.
                meeting.wait(PATIENCE_S)
        except BaseException as error:
            meeting.abort()
            errors.append(error)

    threads = [threading.Thread(target=one, daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "a worker hangs"
    real = [error for error in errors if not isinstance(error, threading.BrokenBarrierError)]
    if errors:
        raise (real or errors)[0]
    return [results[rank] for rank in range(workers)]


class Worker:
    """A worker in a process of its own, which does what it is told (`worker.py`)."""

    def __init__(self, address: str, **options: Any) -> None:
        argv = [sys.executable, str(Path(__file__).with_name("worker.py")), address]
        self.process = subprocess.Popen(
            [*argv, json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, **order: Any) -> None:
        """Give an order; `answer` has what came of it."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """The next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the worker has ended"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def do(self, **order: Any) -> dict[str, Any]:
        """Give an order and wait for the answer."""
        self.tell(**order)
        return self.answer()

    def end(self) -> None:
        """Kill it, if it still runs."""
        self.process.kill()
        self.process.communicate()
