"""The results that a worker keeps for others (`olaf.sums.second_switch`)."""

from __future__ import annotations

import json
from collections import deque
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from olaf.sums.meeting import Result

STAMP_BYTES = 4 << 20
"""After that many bytes of results the worker looks which of them all workers hold."""
STAMP_OPERATIONS = 256


class Stats(Protocol):
    """A `SumClient`."""

    def stats(self) -> str:
        """Statistics as JSON."""


class Kept:
    """Results that another worker may lack, the oldest first.

    A worker that holds the result of block ``b`` knows that all workers hold the results of all
    blocks up to ``b - 2 slots``: otherwise the switch had no cell for block ``b``.
    """

    def __init__(self) -> None:
        self.results: dict[int, Result] = {}
        self.bytes = 0
        self._stamps: deque[tuple[int, int]] = deque()
        """(blocks that this worker held, newest result then)"""
        self._bytes_since = 0
        self._count_since = 0
        self._free: deque[NDArray[np.int64]] = deque(maxlen=4)

    def buffer(self, size: int) -> NDArray[np.int64]:
        """Memory for that many bytes; that of a result that nobody needs, where it fits."""
        words = -(-size // 8)
        for free in self._free:
            if free.size == words:
                self._free = deque((other for other in self._free if other is not free), maxlen=4)
                return free
        return np.empty(words, np.int64)

    def add(self, index: int, result: Result, client: Stats) -> None:
        """Keep a result; look now and then which ones all workers hold."""
        self.results[index] = result
        self.bytes += result.words.nbytes
        self._bytes_since += result.words.nbytes
        self._count_since += 1
        if self._bytes_since < STAMP_BYTES and self._count_since < STAMP_OPERATIONS:
            return
        self._bytes_since = self._count_since = 0
        told = json.loads(client.stats())
        if told["standing"] != "in":
            return
        holds, slots = int(told["holds"]), int(told["slots"])
        while self._stamps and self._stamps[0][0] + 2 * slots <= holds:
            self._drop_up_to(self._stamps.popleft()[1])
        self._stamps.append((holds, index))

    def clear(self) -> None:
        """Drop everything."""
        self.results, self.bytes = {}, 0
        self._stamps.clear()
        self._free.clear()

    def _drop_up_to(self, newest: int) -> None:
        for index in [index for index in self.results if index <= newest]:
            words = self.results.pop(index).words
            self.bytes -= words.nbytes
            if words.size:
                self._free.append(words)
