"""Datagrams as a stranger or a faulty worker would write them: nothing here uses the library.

`python tests/hostile/forging.py HOST:PORT ATTACK` runs one attack by hand.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

VERSION = 3
UPDATE, ACKNOWLEDGEMENT, MODEL, JOIN, WELCOME, FETCH, NOTICE = 1, 2, 3, 4, 5, 7, 8
WRONG_MODEL_SIZE = 2
COMMON = ">BBHIIII"
WORKER_AT = 16
"""Where a datagram names its worker."""
ANY = 0xFFFF_FFFF
ANSWER_ACKNOWLEDGES, ANSWER_MODEL_VERSION, ANSWER_EPOCH, ANSWER_HEADER = 24, 36, 48, 112
WELCOME_CODE, WELCOME_EPOCH, WELCOME_ECHO, WELCOME_NONCE = 24, 40, 48, 116


@dataclass
class Attacker:
    """A socket with a worker's name."""

    target: tuple[str, int]
    job: int = 1
    cluster: int = 0
    worker: int = 666
    session: int = 77
    sent_bytes: int = 0
    received_bytes: int = 0
    socket: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)

    def close(self) -> None:
        self.socket.close()

    def send(self, datagram: bytes) -> None:
        try:
            self.socket.sendto(datagram, self.target)
            self.sent_bytes += len(datagram)
        except BlockingIOError:
            time.sleep(0.0005)

    def receive(self, kind: int | None = None, patience_s: float = 5.0) -> bytes | None:
        """The next datagram of that kind, or nothing."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            try:
                datagram = self.socket.recv(65_535)
            except BlockingIOError:
                time.sleep(0.001)
                continue
            self.received_bytes += len(datagram)
            if kind is None or datagram[5] == kind:
                return datagram
        return None

    def common(self, kind: int, **other: int) -> bytes:
        own = {"job": self.job, "cluster": self.cluster, "worker": self.worker}
        name = {**own, "session": self.session, **other}
        return b"OLAF" + struct.pack(
            *(COMMON, VERSION, kind, 0),
            *(name["job"], name["cluster"], name["worker"], name["session"]),
        )

    def join(
        self,
        parameters: int,
        segment_lanes: int = 2208,
        *,
        have_version: int = 0,
        hops: int = 0,
        sent_at: int | None = None,
        nonce: int = 0,
        **other: int,
    ) -> bytes:
        at = time.time_ns() if sent_at is None else sent_at
        numbers = (have_version, parameters, segment_lanes, 0, at, 0, hops, 0, 0, nonce)
        return self.common(JOIN, **other) + struct.pack(">IIIIQqB3xIII", *numbers)

    def update(
        self,
        lanes: bytes,
        *,
        sequence: int = 0,
        segment: int = 0,
        segments: int = 1,
        version: int = 1,
        contributors: int = 1,
        weight: float = 1.0,
        reward: float = 0.0,
        hops: int = 0,
        **other: int,
    ) -> bytes:
        now = time.time_ns()
        head = (sequence, sequence, segment, segments, now, now, version, version, contributors)
        rest = (len(lanes) // 4, weight, reward, hops, sequence)
        return self.common(UPDATE, **other) + struct.pack(">IIIIQQIIIIddB3xI", *head, *rest) + lanes

    def offer(
        self, lanes: bytes, segment: int, segments: int, parameters: int, version: int = 0
    ) -> bytes:
        head = struct.pack(">IIIIII", 0, segment, segments, version, parameters, len(lanes) // 4)
        return self.common(MODEL) + head + bytes(ANSWER_HEADER - 48) + lanes

    def fetch(self, version: int = 0, mask: int = (1 << 64) - 1) -> bytes:
        return self.common(FETCH) + struct.pack(">IIQI", version, 0, mask, 0)

    def enters(self, parameters: int, segment_lanes: int = 2208, **other: int) -> bytes:
        """Joins until its address is proved, and returns the last welcome."""
        nonce = 0
        for _ in range(20):
            self.send(self.join(parameters, segment_lanes, nonce=nonce, **other))
            if welcome := self.receive(WELCOME, 0.5):
                asked: int = struct.unpack_from(">I", welcome, WELCOME_NONCE)[0]
                if not asked:
                    return welcome
                nonce = asked
        raise AssertionError("no welcome came")


def lanes(value: float, count: int) -> bytes:
    return struct.pack("<f", value) * count


def changed(datagram: bytes, at: int, layout: str, value: int) -> bytes:
    """The same datagram with another number."""
    forged = bytearray(datagram)
    struct.pack_into(layout, forged, at, value)
    return bytes(forged)


def flood_of_joins(attacker: Attacker, count: int = 1024) -> None:
    for job in range(count):
        attacker.send(attacker.join(10, job=10_000 + job))


def flood_of_clusters(attacker: Attacker, count: int = 30_000) -> None:
    attacker.enters(10)
    for cluster in range(count):
        attacker.send(attacker.join(10, cluster=1_000 + cluster))


def flood_of_offers(attacker: Attacker, count: int = 60_000) -> None:
    parameters = 1 << 28
    attacker.send(attacker.join(parameters, 256, job=50))
    attacker.job = 50
    segments = parameters // 256
    for number in range(count):
        # Another page of memory each time.
        segment = number * 17 % segments
        attacker.send(attacker.offer(lanes(0.0, 256), segment, segments, parameters))


ATTACKS: dict[str, Callable[[Attacker], None]] = {
    "joins": flood_of_joins,
    "clusters": flood_of_clusters,
    "offers": flood_of_offers,
}

if __name__ == "__main__":
    address, name = sys.argv[1:]
    to, _, port = address.rpartition(":")
    ATTACKS[name](Attacker((to, int(port))))
