"""The narrow link of the TCP baseline: it forwards upwards at the uplink's rate, drops nothing.

The relay knows no frames. Bytes that it does not read stay in the sender's buffers, so TCP itself
slows the worker down. Downwards it forwards as fast as it can, as an Olaf switch does.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from dataclasses import dataclass
from typing import Any

from olaf.tcp.bucket import Bucket
from olaf.tcp.endpoint import TcpEndpoint, within

PACKET_BYTES = 1460
"""Bytes that pass the link at once: workers share it packet by packet."""

BURST_S = 0.02
"""Seconds that an idle link may catch up: a busy machine wakes a process up late."""

CONNECT_S = 5.0
LINGER_S = 2.0
DOWN_BYTES = 1 << 16


@dataclass(frozen=True)
class RelayConfig:
    """Configuration of the relay; JSON-able."""

    listen: str
    upstream: str
    rate_bps: int | None
    """Upward rate in bits per second of TCP payload; None sets no limit."""
    most_connections: int
    timeout_s: float
    idle_s: float
    buffer_bytes: int | None = None
    """Receive buffer of each worker's connection in bytes; None uses the system's default."""


class Relay(TcpEndpoint):
    """See the module."""

    def __init__(self, config: RelayConfig) -> None:
        """Bind the socket. Raises OSError."""
        super().__init__(
            config.listen, buffer_bytes=config.buffer_bytes, most=config.most_connections
        )
        self._config = config
        self._bucket: Bucket | None = None
        self._chunk = DOWN_BYTES
        if config.rate_bps is not None:
            rate = config.rate_bps / 8
            # A fast link forwards larger pieces, a millisecond each, so that the relay keeps up.
            self._chunk = max(PACKET_BYTES, min(int(rate / 1000), DOWN_BYTES))
            self._bucket = Bucket(rate, max(rate * BURST_S, self._chunk))
        self._bytes = {"up": 0, "down": 0}
        self._accepted_count = self._open = 0
        self._held_s = 0.0

    @property
    def limit(self) -> int:
        """Hold at most a packet or two; the rest stays in the sender's buffers."""
        return self._chunk

    def statistics(self) -> dict[str, Any]:
        """Forwarded bytes: the relay knows no updates."""
        return {
            "role": "relay",
            "address": self.address,
            "upstream": self._config.upstream,
            "uplink": {"bits_per_second": self._config.rate_bps},
            "connections": {
                "accepted": self._accepted_count,
                "open": self._open,
                "refused": self.too_many,
            },
            "bytes": dict(self._bytes),
            "held_s": self._held_s,
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One worker's connection, and its own connection to the server."""
        with self._lock:
            self._accepted_count += 1
            self._open += 1
        try:
            host, _, port = self._config.upstream.rpartition(":")
            opening = asyncio.open_connection(host.strip("[]"), int(port))
            above, to_server = await within(CONNECT_S, opening)
            try:
                self._no_delay(to_server)
                await self._forward(reader, writer, above, to_server)
            finally:
                to_server.close()
        finally:
            with self._lock:
                self._open -= 1

    async def _forward(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        above: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        up = asyncio.create_task(self._climb(reader, to_server))
        down = asyncio.create_task(self._descend(above, writer))
        try:
            await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
            if up.done() and up.exception() is None:
                # The worker sends no more; its bytes have passed, and answers may still come.
                with contextlib.suppress(OSError):
                    to_server.write_eof()
                await asyncio.wait({down}, timeout=LINGER_S)
        finally:
            for task in (up, down):
                task.cancel()
            await asyncio.gather(up, down, return_exceptions=True)

    async def _climb(self, reader: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        while chunk := await within(self._config.idle_s, reader.read(self._chunk)):
            if self._bucket is not None:
                wait_s = self._bucket.take(time.monotonic(), len(chunk))
                if wait_s > 0:
                    await asyncio.sleep(wait_s)
                    with self._lock:
                        self._held_s += wait_s
            to_server.write(chunk)
            await within(self._config.timeout_s, to_server.drain())
            with self._lock:
                self._bytes["up"] += len(chunk)

    async def _descend(self, above: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await within(self._config.idle_s, above.read(DOWN_BYTES)):
            writer.write(chunk)
            await within(self._config.timeout_s, writer.drain())
            with self._lock:
                self._bytes["down"] += len(chunk)

    @staticmethod
    def _no_delay(writer: asyncio.StreamWriter) -> None:
        sock: socket.socket | None = writer.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
