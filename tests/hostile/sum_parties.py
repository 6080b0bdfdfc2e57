"""Honest workers that sum, and a stranger beside them."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from parties import Party
from sum_formats import Datagram, Format, Name
from waiting import until

import olaf

SIZE = 8_000
STEPS = 3


class Training:
    """Workers of a job in threads: each computes for a while, and all sum. Each sum is checked."""

    def __init__(
        self,
        addresses: Sequence[str],
        protocol: str,
        *,
        job: int = 1,
        computes_s: float = 0.002,
        **options: Any,
    ) -> None:
        """One worker for each address. `options`: as `olaf.connect_sum` has them."""
        self.rounds = 0
        """Sums that worker 0 has, all of them right."""
        self.workers: list[dict[str, Any]] = [{} for _ in addresses]
        """The statistics of each worker, from its first sum on."""
        self.said: BaseException | None = None
        self._computes_s = computes_s
        self._began = [0 for _ in addresses]
        self._last: int | None = None
        self._lock = threading.Lock()
        common = {"job": job, "workers": len(addresses), "protocol": protocol, **options}
        self._threads = [
            threading.Thread(target=self._run, args=(rank, address, common), daemon=True)
            for rank, address in enumerate(addresses)
        ]
        for thread in self._threads:
            thread.start()
        until(lambda: all(self.workers) or self.said, "the first sum of each")
        assert self.said is None, self.said

    def stop(self) -> int:
        """Ends the job after a round that all finish. Returns the rounds, which were all right."""
        with self._lock:
            self._last = max(self._began)
        for thread in self._threads:
            thread.join(60.0)
            assert not thread.is_alive(), f"a worker waits; round {self.rounds}"
        assert self.said is None, self.said
        return self.rounds

    def goes_on(self, rounds: int = 20) -> None:
        """Waits until that many more sums are right."""
        end = self.rounds + rounds
        until(lambda: self.rounds >= end or self.said, f"round {end} after {self.rounds}")
        assert self.said is None, self.said

    def _begins(self, rank: int) -> bool:
        with self._lock:
            if self._last is not None and self._began[rank] >= self._last:
                return False
            self._began[rank] += 1
            return True

    def _run(self, rank: int, address: str, common: dict[str, Any]) -> None:
        try:
            with olaf.connect_sum(address, rank=rank, **common) as job:
                while self._begins(rank):
                    self._round(rank, job)
        except BaseException as error:
            self.said = self.said or error

    def _round(self, rank: int, job: olaf.SumConnection) -> None:
        step = self._began[rank] % STEPS + 1
        array = np.full(SIZE, step * (rank + 1) / 2, np.float32)
        time.sleep(self._computes_s)
        job.all_reduce(array)
        ranks = len(self.workers)
        wanted = step * ranks * (ranks + 1) / 4
        assert np.allclose(array, wanted, rtol=1e-6), f"a wrong sum: {array.min()} .. {array.max()}"
        if not self.workers[rank]:
            self.workers[rank] = json.loads(job._client.stats())
        if rank == 0:
            self.rounds += 1


class Stranger:
    """A socket of somebody who writes what he likes."""

    def __init__(self, target: tuple[str, int], host: str = "127.0.0.1") -> None:
        self.target = target
        self.sent_bytes = self.sent = 0
        self.heard: list[bytes] = []
        """Datagrams that came to its address."""
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind((host, 0))
        self.socket.setblocking(False)
        self._tos = self._nonce = 0

    def close(self) -> None:
        self.socket.close()

    def say(self, *all_of: Datagram) -> None:
        for one in all_of:
            if one.tos != self._tos:
                self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, one.tos)
                self._tos = one.tos
            self.socket.sendto(one.data, self.target)
            self.sent += 1
            self.sent_bytes += len(one.data)

    def listen(self) -> list[bytes]:
        """All that has come so far."""
        while True:
            try:
                self.heard.append(self.socket.recv(65_535))
            except BlockingIOError:
                return self.heard

    @property
    def heard_bytes(self) -> int:
        return sum(map(len, self.listen()))

    def asks(self, form: Format, who: Name) -> int:
        """Joins once, with the number that the last answer asked for. Waits for an answer; the
        generation that it lets this party in."""
        known = len(self.listen())
        self.say(form.join(who, self._nonce))
        until(lambda: len(self.listen()) > known, "an answer")
        answers = self.heard[known:]
        asked = (form.nonce_of(answer) for answer in answers)
        self._nonce = next(filter(None, asked), self._nonce)
        return max(map(form.generation_of, answers))

    def enters(self, form: Format, who: Name) -> int:
        """Joins as an honest worker does until it is in; the generation."""
        return until(lambda: self.asks(form, who), "a generation")


def sums(party: Any, form: Format, **config: Any) -> Party:
    """A switch with the engines of the protocol."""
    switch: Party = party("switch", engines=[*form.engines], metrics="127.0.0.1:0", **config)
    return switch


def refused(switch: Party, engine: str) -> dict[str, int]:
    """Datagrams and pieces that an engine refused, by reason."""
    found = switch.stats()[engine]
    counts: dict[str, int] = dict(found["refused"])
    pieces = found.get("pieces", {}).get("refused", {})
    for reason, count in pieces.items():
        counts[reason] = counts.get(reason, 0) + count
    return counts


def awaits_refusals(
    switch: Party, engine: str, sent: int, before: dict[str, int], reason: str | None = None
) -> dict[str, int]:
    """Waits until nearly all of what was sent is refused, for that reason or for any; the kernel
    may have dropped some. Returns the refusals since `before`."""

    def since() -> dict[str, int]:
        now = refused(switch, engine)
        return {why: count - before.get(why, 0) for why, count in now.items()}

    def all_of(found: dict[str, int]) -> int:
        return found.get(reason, 0) if reason else sum(found.values())

    until(lambda: all_of(since()) >= 0.9 * sent, f"{reason or 'refusals'} of {engine}")
    return since()


def awaits_metric(switch: Party, *parts: str) -> None:
    """Waits until a metric that is not zero has these parts in its line of `/metrics`."""

    def is_shown(line: str) -> bool:
        return all(part in line for part in parts) and line.rsplit(maxsplit=1)[-1] != "0.0"

    until(lambda: any(map(is_shown, switch.metrics())), f"{parts} in /metrics")


def seat_of(worker: dict[str, Any], rank: int, workers: int = 2) -> Name:
    """What a worker writes into its datagrams, as its statistics say it."""
    of = worker["flows"][0] if "flows" in worker else worker
    generation = of.get("term") if "term" in of else of.get("generation")
    return Name(worker["job"], worker["session"], rank, workers, int(generation or 0))


def ended(switch: Party, form: Format) -> dict[str, int]:
    """Generations that ended, by reason."""
    found = switch.stats()[form.engines[-1]]
    counts: dict[str, int] = found.get("closed_generations", found.get("closed_terms"))
    return counts
