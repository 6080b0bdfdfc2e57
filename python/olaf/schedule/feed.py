"""Events for listeners: the newest are kept, and listeners wait here for later ones."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Any


class GoneError(Exception):
    """The requested events are no longer kept."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"the oldest event that is kept has number {oldest}")
        self.oldest = oldest


class TooManyError(Exception):
    """There are as many listeners as are allowed."""


class Feed:
    """Published from one thread, read from an event loop."""

    def __init__(self, keep: int, most_listeners: int) -> None:
        self._lock = threading.Lock()
        self._events: deque[dict[str, Any]] = deque(maxlen=keep)
        self._last = 0
        self._most = most_listeners
        self._listeners: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closing = False

    @property
    def last(self) -> int:
        """Number of the newest event."""
        with self._lock:
            return self._last

    @property
    def listeners(self) -> int:
        """Number of waiting listeners."""
        return len(self._listeners)

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the loop in which listeners wait."""
        self._loop = loop

    def tell(self, events: list[dict[str, Any]], last: int) -> None:
        """Add events; ``last`` is the number of the last one."""
        with self._lock:
            first = last - len(events) + 1
            self._events.extend({"seq": first + at, **each} for at, each in enumerate(events))
            self._last = last
        self._wake()

    def close(self) -> None:
        """End all waits."""
        self.closing = True
        self._wake()

    async def after(self, seq: int, job: int | None, wait_s: float) -> tuple[list[Any], int]:
        """Events after number ``seq``, of one job if it is named; waits for the first event.

        Returns them, and the number for the next call. Raises GoneError if some are no longer
        kept, or if ``seq`` is in the future (the store is another one); TooManyError.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        news = asyncio.Event()
        if len(self._listeners) >= self._most:
            raise TooManyError(f"{self._most} clients listen already")
        self._listeners.add(news)
        try:
            while True:
                news.clear()
                found, last = self._behind(seq, job)
                left = deadline - loop.time()
                if found or left <= 0 or self.closing:
                    return found, last
                try:
                    await asyncio.wait_for(news.wait(), left)
                except TimeoutError:
                    continue
        finally:
            self._listeners.discard(news)

    def _behind(self, seq: int, job: int | None) -> tuple[list[dict[str, Any]], int]:
        with self._lock:
            oldest = self._last - len(self._events) + 1
            if seq + 1 < oldest or seq > self._last:
                raise GoneError(oldest)
            # From the newest backwards: a listener has usually seen nearly all.
            found: list[dict[str, Any]] = []
            for each in reversed(self._events):
                if each["seq"] <= seq:
                    break
                if job is None or each.get("job") == job:
                    found.append(each)
            found.reverse()
            return found, self._last

    def _wake(self) -> None:
        def all_of_them() -> None:
            for news in self._listeners:
                news.set()

        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(all_of_them)
