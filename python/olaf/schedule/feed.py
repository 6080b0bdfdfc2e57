"""Events for those who listen: the newest are kept, and who asks for later ones waits for them."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Any


class GoneError(Exception):
    """Events that were asked for are kept no longer."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"the oldest event that is kept has number {oldest}")
        self.oldest = oldest


class TooManyError(Exception):
    """As many listen as may."""


class Feed:
    """Told from one thread, listened to from an event loop."""

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
        """Who waits now."""
        return len(self._listeners)

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Listeners wait in this loop."""
        self._loop = loop

    def tell(self, events: list[dict[str, Any]], last: int) -> None:
        """Add events; ``last`` is the number of the last of them."""
        with self._lock:
            first = last - len(events) + 1
            self._events.extend({"seq": first + at, **each} for at, each in enumerate(events))
            self._last = last
        self._wake()

    def close(self) -> None:
        """Let everybody go."""
        self.closing = True
        self._wake()

    async def after(self, seq: int, job: int | None, wait_s: float) -> tuple[list[Any], int]:
        """Events behind ``seq``, of one job if it is named; waits for the first so long.

        Returns them, and the number to ask behind next. Raises GoneError when some were dropped
        already, or when ``seq`` has not come yet (the store is another one); TooManyError.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        news = asyncio.Event()
        if len(self._listeners) >= self._most:
            raise TooManyError(f"{self._most} listen already")
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
            # From the newest backwards: who listens has seen nearly all.
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
