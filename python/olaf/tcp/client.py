"""A worker's connection to the plain TCP parameter server, with the interface of ``_olaf.Client``.

As in a plain implementation, a push blocks the worker's loop until the system has taken all its
bytes. Meanwhile the client reads models that arrive, so that the two directions never wait for each
other. Only the newest model is kept.
"""

from __future__ import annotations

import json
import random
import select
import socket
import time
from collections.abc import Callable

import numpy as np

from olaf.errors.outcome import Exit, RunError
from olaf.tcp import frames
from olaf.tcp.frames import (
    NOTHING_APPLIED,
    Fetch,
    FrameError,
    Join,
    Lanes,
    Model,
    Offer,
    Push,
    Refused,
    Weights,
)

Parts = list[Lanes]

SLICE_S = 0.1
"""Seconds between a blocked worker's checks whether it should stop."""

READ_BYTES = 1 << 16


class TcpClient:
    """One connection to the server, or to the relay before it. Implements ``Connection``."""

    def __init__(
        self,
        address: str,
        *,
        cluster: int,
        worker: int | None = None,
        timeout_s: float = 60.0,
        flush_s: float = 2.0,
        buffer_bytes: int | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Connects only in `join`.

        timeout_s: a connection that moves no byte within this time is closed.
        flush_s: time for a blocked push after ``stop()`` is true.
        buffer_bytes: size of the send buffer; None uses the length of one push.
        """
        self.worker = random.SystemRandom().randrange(2**32 - 2) if worker is None else worker
        self._address, self._cluster = address, cluster
        self._timeout_s, self._flush_s, self._buffer_bytes = timeout_s, flush_s, buffer_bytes
        self._stop = stop
        self._socket: socket.socket | None = None
        self._parameters = 0
        self._incoming = bytearray()
        self._newest: Model | None = None
        self._taken = 0
        """Version of the model that the worker computes on."""
        self._pushed = self._sent = self._asked = self._answers = 0
        self._acknowledged = NOTHING_APPLIED
        self._blocked_s = 0.0
        self._sent_bytes = self._received_bytes = 0
        self._offered = False
        self._broken = False

    @property
    def local_address(self) -> str:
        """Local address, once connected."""
        if self._socket is None:
            return "-"
        host, port, *_ = self._socket.getsockname()
        return f"{host}:{port}"

    def join(self, weights: Parts, timeout_s: float, layout: str | None = None) -> int:
        """Connect, and get the model; return its version. The first worker's weights start the job.

        Raises RunError if no server answers, or the server refuses this worker.
        """
        flat = np.concatenate([part.ravel() for part in weights])
        self._parameters = flat.size
        deadline = time.monotonic() + timeout_s
        self._connect(deadline)
        self._send(frames.write(Join(self.worker, self._cluster, flat.size)), deadline)
        while self._newest is None:
            if self._offered:
                self._offered = False
                self._send(frames.write(Weights(flat)), deadline)
            if not self._hear(deadline - time.monotonic()):
                raise RunError(
                    f"no model from {self._address} within {timeout_s:g} s", Exit.UNREACHABLE
                )
        return self._newest.version

    def push(self, parts: Parts, *, reward: float, weight: float = 1.0) -> int:
        """Send one update, and wait until the system has taken it; return its sequence number.

        When told to stop, it tries for ``flush_s`` more; an update that is still not out counts as
        unsent. Raises RunError if the connection fails or takes nothing for ``timeout_s``.
        """
        sequence = self._pushed
        self._pushed += 1
        if self._broken:
            return sequence
        lanes = np.concatenate([part.ravel() for part in parts])
        if lanes.size != self._parameters:
            raise ValueError(f"an update of {lanes.size} values for {self._parameters} parameters")
        now_ns = time.monotonic_ns()
        push = Push(sequence, self._taken, float(reward), float(weight), now_ns, lanes)
        self._sent += self._send(frames.write(push))
        self._blocked_s += (time.monotonic_ns() - now_ns) / 1e9
        return sequence

    def pull(self, parts: Parts, newer_than: int) -> int | None:
        """Copy the newest arrived model into ``parts``, if it is newer; return its version."""
        self._drain()
        if self._newest is None or self._newest.version <= newer_than:
            return None
        at = 0
        for part in parts:
            part[...] = self._newest.lanes[at : at + part.size].reshape(part.shape)
            at += part.size
        self._taken = self._newest.version
        return self._taken

    def wait(self, newer_than: int, timeout_s: float) -> int | None:
        """Wait until a newer model is here; return its version, or None."""
        deadline = time.monotonic() + timeout_s
        while self._newest is None or self._newest.version <= newer_than:
            if self._broken or not self._hear(deadline - time.monotonic()):
                return None
        return self._newest.version

    def awaits_end(self) -> bool:
        """True until the server has answered the last push."""
        self._drain()
        return not self._broken and self._acknowledged < self._pushed - 1

    def refresh(self) -> None:
        """Ask for the newest model, unless the answer to a push will bring it."""
        if not self._broken and not self.awaits_end():
            self._asked += self._send(frames.write(Fetch()))

    def refreshed(self, timeout_s: float) -> bool:
        """Wait for the answers to all pushes and to `refresh`; TCP keeps their order."""
        deadline = time.monotonic() + timeout_s
        while self._answers < self._sent + self._asked:
            if self._broken or not self._hear(deadline - time.monotonic()):
                return False
        return True

    def holding(self) -> bool:
        """Return False: this transport holds no update back."""
        return False

    def flush(self, timeout_s: float) -> bool:
        """Wait until the server has answered the last push; False at the deadline."""
        deadline = time.monotonic() + timeout_s
        while self._acknowledged < self._sent - 1:
            left_s = deadline - time.monotonic()
            if self._broken or not self._hear(left_s, until_stop=False):
                return False
        return not self._broken

    def stats(self) -> str:
        """Statistics as JSON, with the names of a worker's."""
        return json.dumps(
            {
                "role": "worker",
                "worker": self.worker,
                "cluster": self._cluster,
                "joined": self._newest is not None,
                "updates": self._pushed,
                "contributions": self._pushed,
                "sent": self._sent,
                "replaced_unsent": 0,
                "unsent": self._pushed - self._sent,
                "held": 0,
                "discarded": 0,
                "acknowledged": self._acknowledged + 1,
                "awaited": self._sent - self._acknowledged - 1,
                "blocked_s": self._blocked_s,
                "model_version": self._taken,
                "segments": 1,
                "io": {"sent_bytes": self._sent_bytes, "received_bytes": self._received_bytes},
            }
        )

    def events(self) -> list[str]:
        """Read what has arrived. There are no events: a broken connection ends the worker."""
        self._drain()
        return []

    def leave(self) -> None:
        """Close. Idempotent."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connect(self, deadline: float) -> None:
        host, _, port = self._address.rpartition(":")
        host = host.strip("[]")
        kind = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = sock = socket.socket(kind, socket.SOCK_STREAM)
        own_push = frames.largest(self._parameters)
        # Hold at most one update: updates in a longer buffer grow old.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._buffer_bytes or own_push)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(max(deadline - time.monotonic(), 0.01))
        try:
            sock.connect((host, int(port)))
        except OSError as error:
            raise RunError(
                f"{self._address}: cannot connect ({error}); is the relay or the server running?",
                Exit.UNREACHABLE,
            ) from None
        sock.setblocking(False)

    def _send(self, data: bytes, deadline: float | None = None) -> bool:
        """Hand all bytes to the system; return False if told to stop before they were out."""
        view = memoryview(data)
        moved_at = time.monotonic()
        stop_at: float | None = None
        while view:
            now = time.monotonic()
            if stop_at is None and self._stop():
                stop_at = now + self._flush_s
            if stop_at is not None and now >= stop_at:
                self._broken = True  # half a frame is out: nothing can follow it
                return False
            if now >= (deadline or moved_at + self._timeout_s):
                raise RunError(
                    f"{self._address} took nothing of an update for {self._timeout_s:g} s",
                    Exit.UNREACHABLE,
                )
            assert self._socket is not None, "connected in join()"
            readable, writable, _ = select.select([self._socket], [self._socket], [], SLICE_S)
            if readable:
                self._receive()
            if writable:
                try:
                    count = self._socket.send(view)
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise self._lost(error) from None
                view = view[count:]
                self._sent_bytes += count
                moved_at = time.monotonic()
        return True

    def _drain(self) -> None:
        while self._hear(0.0):
            pass

    def _hear(self, timeout_s: float, *, until_stop: bool = True) -> bool:
        """Read what arrives within the time, or is there already; return whether anything came."""
        if self._socket is None or self._broken:
            return False
        deadline = time.monotonic() + timeout_s
        while True:
            left_s = deadline - time.monotonic()
            wait_s = min(max(left_s, 0.0), SLICE_S)
            readable, _, _ = select.select([self._socket], [], [], wait_s)
            if readable:
                self._receive()
                return True
            if left_s <= 0 or (until_stop and self._stop()):
                return False

    def _receive(self) -> None:
        assert self._socket is not None, "connected in join()"
        try:
            data = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise self._lost(error) from None
        if not data:
            raise self._lost("the other side closed the connection")
        self._received_bytes += len(data)
        self._incoming += data
        try:
            self._understand()
        except FrameError as error:
            raise RunError(f"{self._address} sent {error}", Exit.FAILED) from None

    def _understand(self) -> None:
        """The complete frames; memory holds less than one frame and one read."""
        head = frames.LENGTH.size
        while len(self._incoming) >= head:
            length = frames.check_length(bytes(self._incoming[:head]), self._parameters)
            if len(self._incoming) < head + length:
                return
            frame = frames.parse(self._incoming[head : head + length], self._parameters)
            del self._incoming[: head + length]
            match frame:
                case Offer():
                    self._offered = True
                case Model() as model:
                    self._answers += self._newest is not None  # the first answers the JOIN
                    self._newest = model
                    self._acknowledged = max(self._acknowledged, model.last_sequence)
                case Refused(why):
                    raise RunError(f"{self._address} refused this worker: {why}", Exit.REFUSED)
                case other:
                    raise FrameError(f"a {type(other).__name__}, which only workers send")

    def _lost(self, why: object) -> RunError:
        return RunError(f"lost the connection to {self._address}: {why}", Exit.UNREACHABLE)
