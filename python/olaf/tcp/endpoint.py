"""An asyncio server in its own thread, with the interface of a role: see `olaf.jobs.roles`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

START_S = 10.0
STOP_S = 5.0
EVENTS = 1000
"""Most events that are kept until they are fetched."""

T = TypeVar("T")


class TcpEndpoint(ABC):
    """Listens, and serves each connection in a task; ``_lock`` guards the counters."""

    def __init__(self, listen: str, *, buffer_bytes: int | None, most: int) -> None:
        """Bind the socket. Raises OSError if the address is not available.

        most: largest number of connections; more are closed at once.
        buffer_bytes: receive buffer of each connection; None uses the system's default.
        """
        host, _, port = listen.rpartition(":")
        host = host.strip("[]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if buffer_bytes is not None:  # before listen(): accepted connections inherit it
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        self._socket.bind((host, int(port)))
        self._socket.listen(most)
        self._socket.setblocking(False)
        self._lock = threading.Lock()
        self._events: deque[str] = deque(maxlen=EVENTS)
        self._connections: set[asyncio.Task[None]] = set()
        self._most = most
        self.too_many = 0
        self._loop = asyncio.new_event_loop()
        self._ended: asyncio.Event | None = None
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def address(self) -> str:
        """The address that it listens on."""
        host, port, *_ = self._socket.getsockname()
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def start(self) -> None:
        """Serve, in a thread of its own."""
        self._thread.start()
        if not self._up.wait(START_S):
            raise OSError(f"{self.address}: did not begin to serve within {START_S:g} s")

    def events(self) -> list[str]:
        """The events since the last call, as JSON."""
        with self._lock:
            events, self._events = list(self._events), deque(maxlen=EVENTS)
        return events

    def stats(self) -> str:
        """Counters so far, as JSON."""
        with self._lock:
            return json.dumps(self.statistics())

    def stop(self) -> None:
        """Close every connection, and end."""
        if self._ended is not None:
            self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(STOP_S)
        self._socket.close()

    def tell(self, event: str, **fields: Any) -> None:
        """Remember an event; called with the lock held."""
        self._events.append(json.dumps({"event": event, **fields}))

    @abstractmethod
    def statistics(self) -> dict[str, Any]:
        """The counters; called with the lock held."""

    @abstractmethod
    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection from its first byte to its last. Exceptions become events."""

    def background(self) -> list[Coroutine[Any, Any, None]]:
        """Work beside the connections."""
        return []

    @property
    def limit(self) -> int:
        """Bytes of a connection that may wait to be read, see `asyncio.StreamReader`."""
        return 1 << 16

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._main())
        self._loop.close()

    async def _main(self) -> None:
        self._ended = asyncio.Event()
        server = await asyncio.start_server(self._accepted, sock=self._socket, limit=self.limit)
        beside = [asyncio.create_task(work) for work in self.background()]
        self._up.set()
        await self._ended.wait()
        server.close()
        for task in [*beside, *self._connections]:
            task.cancel()
        await asyncio.gather(*beside, *self._connections, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "asyncio calls this in a task of its own"
        if len(self._connections) >= self._most:
            with self._lock:
                self.too_many += 1
            writer.close()
            return
        self._connections.add(task)
        sock: socket.socket | None = writer.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await self.serve(reader, writer)
        except (OSError, EOFError, asyncio.CancelledError):
            pass  # the other side is gone, or this side ends
        finally:
            self._connections.discard(task)
            writer.close()


async def within(timeout_s: float, what: Coroutine[Any, Any, T]) -> T:
    """Await at most ``timeout_s`` seconds. Raises TimeoutError, which is an OSError."""
    async with asyncio.timeout(timeout_s):
        return await what
