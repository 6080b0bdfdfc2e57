"""Workers of a job of sums: threads of this process around a switch of this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import olaf
from olaf import SumConnection, _olaf

T = TypeVar("T")

PATIENCE_S = 60.0
ENGINES = {
    "reduce": ["reduce"],
    "iswitch": ["iswitch"],
    "trio": ["trio"],
    "atp": ["atp", "atp_server"],
}
"""Protocol -> engines of its switch."""


@contextmanager
def switch_of(protocol: str = "reduce", **config: Any) -> Iterator[_olaf.Switch]:
    """A switch in this process. config: keys of the protocol's table."""
    told = {"engines": ENGINES[protocol], "listen": "127.0.0.1:0", protocol: config}
    switch = _olaf.Switch(json.dumps(told))
    switch.start()
    try:
        yield switch
    finally:
        switch.stop()


def together(
    work: Callable[[SumConnection], T],
    *,
    workers: int = 2,
    protocol: str = "reduce",
    elastic: bool = False,
) -> list[T]:
    """What each worker returns, by rank. Each is a thread with a connection of its own."""
    results: dict[int, T] = {}
    errors: list[BaseException] = []
    meeting = threading.Barrier(workers)

    def one(address: str) -> None:
        try:
            with olaf.connect_sum(
                address, workers=None if elastic else workers, protocol=protocol
            ) as job:
                rank = job.rank
                results[rank] = work(job)
                meeting.wait(PATIENCE_S)  # a worker that leaves ends the job for the others
        except BaseException as error:
            meeting.abort()
            errors.append(error)

    with switch_of(protocol) as switch:
        threads = [
            threading.Thread(target=one, args=(switch.address,), daemon=True)
            for _ in range(workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a worker hangs"
    real = [error for error in errors if not isinstance(error, threading.BrokenBarrierError)]
    if errors:
        raise (real or errors)[0]
    return [results[rank] for rank in range(workers)]
