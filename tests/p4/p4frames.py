"""Ethernet frames with whole checksums, and the vectors of Olaf's messages."""

from __future__ import annotations

import ipaddress
import json
import random
import struct
import zlib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from p4check import Checked, check, read

ROOT = Path(__file__).parents[2]
P4 = ROOT / "p4"
WORKER, SERVER = "10.0.0.1", "10.0.9.9"
TOPS = ("olaf_v1model.p4", "olaf_vitis_in.p4", "olaf_vitis_out.p4")


@cache
def program(top: str) -> Checked:
    return check(read(P4 / top))


def messages() -> list[dict[str, Any]]:
    """The golden vectors of the native protocol, with their bytes under ``data``."""
    path = ROOT / "vectors" / "wire" / "native" / "messages.json"
    return [
        {**message, "data": bytes.fromhex(message["hex"])}
        for message in json.loads(path.read_text())
    ]


def message(kind: str) -> dict[str, Any]:
    return next(message for message in messages() if message["kind"] == kind)


def ip(text: str) -> int:
    return int(ipaddress.ip_address(text))


def ones(data: bytes) -> int:
    """The Internet checksum, in full."""
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return total ^ 0xFFFF


@dataclass(frozen=True)
class Frame:
    """A UDP datagram over IPv4, as it is on the wire."""

    payload: bytes
    source: str = "10.0.0.1"
    destination: str = "10.0.9.9"
    ports: tuple[int, int] = (40000, 5555)
    macs: tuple[int, int] = (0x0200_0000_0001, 0x0200_0000_0009)
    with_checksum: bool = True
    udp_length: int | None = None
    traffic_class: int = 0x20
    identification: int = 7
    fragment: int = 0
    time_to_live: int = 63
    options: bytes = b""

    def emit(self) -> bytes:
        length = 8 + len(self.payload) if self.udp_length is None else self.udp_length
        addresses = struct.pack("!II", ip(self.source), ip(self.destination))
        udp = struct.pack("!HHH", *self.ports, length)
        pseudo = addresses + struct.pack("!BBH", 0, 17, length)
        checksum = (ones(pseudo + udp + b"\0\0" + self.payload) or 0xFFFF) * self.with_checksum
        words = 5 + len(self.options) // 4
        head = struct.pack(
            "!BBHHHBB",
            *(0x40 | words, self.traffic_class, words * 4 + length, self.identification),
            *(self.fragment, self.time_to_live, 17),
        )
        sum_ = ones(head + b"\0\0" + addresses + self.options)
        ethernet = self.macs[1].to_bytes(6, "big") + self.macs[0].to_bytes(6, "big") + b"\x08\x00"
        packet = head + struct.pack("!H", sum_) + addresses + self.options
        return ethernet + packet + udp + struct.pack("!H", checksum) + self.payload

    @property
    def flow(self) -> int:
        """The CRC-32 of the five-tuple."""
        addresses = struct.pack("!II", ip(self.source), ip(self.destination))
        return zlib.crc32(addresses + b"\x11" + struct.pack("!HH", *self.ports))

    def to(self, mac: int, destination: str, port: int, payload: bytes) -> Frame:
        """The same datagram with another receiver and other bytes."""
        return replace(
            self,
            payload=payload,
            destination=destination,
            ports=(self.ports[0], port),
            macs=(self.macs[0], mac),
        )


def down(payload: bytes, **fields: object) -> Frame:
    """A datagram of the server to the worker."""
    frame = Frame(payload, source=SERVER, destination=WORKER, ports=(5555, 40000))
    return replace(frame, **fields)  # type: ignore[arg-type]


def received(frame: bytes) -> tuple[bytes, int]:
    """What a receiver takes from a frame: the UDP payload and the class of service.

    Checks what a system checks: the lengths, the checksums, and that nothing follows.
    """
    assert frame[12:14] == b"\x08\x00"
    words, traffic_class, length, _, fragment, hops, protocol = struct.unpack(
        "!BBHHHBB", frame[14:24]
    )
    assert (words, fragment & 0x3FFF, protocol) == (0x45, 0, 17)
    assert hops > 0
    assert ones(frame[14:34]) == 0, "the sum over a right header, its checksum included"
    assert length == len(frame) - 14
    udp_length, checksum = struct.unpack("!HH", frame[38:42])
    assert udp_length == length - 20
    pseudo = frame[26:34] + struct.pack("!BBH", 0, 17, udp_length)
    assert checksum == 0 or ones(pseudo + frame[34:]) == 0
    return frame[42:], traffic_class


@dataclass(frozen=True)
class Status:
    """A queue's status: ours, or that of an answer."""

    active_clusters: int
    slots: int
    used: int
    round_us: int
    switches: int = 0

    def into(self, answer: bytes) -> bytes:
        """The answer with this status, at the offsets of olaf-wire."""
        words = struct.pack("!HHHB", self.active_clusters, self.slots, self.used, self.switches)
        return answer[:72] + words + answer[79:80] + struct.pack("!I", self.round_us) + answer[84:]

    @classmethod
    def of(cls, answer: bytes) -> Status:
        active, slots, used, switches, _, round_us = struct.unpack("!HHHBBI", answer[72:84])
        return cls(active, slots, used, round_us, switches)

    def passing(self, own: Status) -> Status:
        """What an answer with this status tells behind a queue of that status; see olaf-wire."""
        above = self.active_clusters / max(self.slots, 1)
        here = own.active_clusters / max(own.slots, 1)
        told = self if self.switches and above > here else own
        return replace(
            told,
            used=min(told.used, 0xFFFF),
            switches=min(self.switches + 1, 255),
            round_us=max(self.round_us, own.round_us),
        )


def mutants(data: bytes, count: int, chance: random.Random) -> list[bytes]:
    """The message with changed bytes, cut, lengthened; most changes hit the header."""
    made = []
    for _ in range(count):
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 2))):
            at = chance.randrange(min(len(data), 112))
            # The eighth bytes of numbers decide, so small changes come often.
            changed[at] = chance.choice((0, 1, 3, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        ends = chance.choice((len(data), len(data), len(data), chance.randrange(len(data) + 1)))
        made.append(bytes(changed[:ends]) + bytes(chance.choice((0, 0, 0, 4))))
    return made


def put(data: bytes, at: int, layout: str, *values: float) -> bytes:
    field = struct.pack(f"!{layout}", *values)
    return data[:at] + field + data[at + len(field) :]


def with_lanes(data: bytes, at: int, header: int, lanes: int) -> bytes:
    """The message with that many lanes; ``at`` is where the header says their number."""
    return put(data, at, "I", lanes)[:header] + bytes(4 * lanes)


def edges() -> list[tuple[str, bytes]]:
    """Messages that olaf-wire just accepts or just refuses, each with its sender."""
    up, model = message("update")["data"], message("model")["data"]
    up_edges = [put(up, 32, "II", segment, 3) for segment in (0, 2, 3)]
    up_edges += [put(up, 40, "QQ", oldest, 1 << 63) for oldest in (1 << 63, (1 << 63) + 1)]
    up_edges += [put(up, 56, "II", oldest, 7) for oldest in (7, 8)]
    up_edges += [put(up, 64, "I", contributors) for contributors in (0, 1)]
    weights = (1, 0x7FEF_FFFF_FFFF_FFFF, 0x7FF0_0000_0000_0000, 0, 1 << 63, (1 << 63) + 1)
    up_edges += [put(up, 72, "Q", bits) for bits in weights]
    up_edges += [with_lanes(up, 68, 96, lanes) for lanes in (0, 1, 16348, 16349)]
    down_edges = [put(model, 28, "II", segment, 3) for segment in (2, 3)]
    down_edges += [put(model, 40, "I", parameters) for parameters in (1, 2, 3)]
    down_edges += [put(model, 96, "QQ", delivered, 4) for delivered in (3, 4, 5)]
    large = put(model, 40, "I", 1 << 20)
    down_edges += [with_lanes(large, 44, 112, lanes) for lanes in (0, 1, 16348)]
    return [(WORKER, data) for data in up_edges] + [(SERVER, data) for data in down_edges]
