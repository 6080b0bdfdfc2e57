"""UDP datagrams in IPv4 in Ethernet frames, and what a frame is: slow and obvious."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, replace

FATES = ("framing", "no_datagram", "fragment", "checksum", "length", "too_long", "passed")


@dataclass(frozen=True)
class Address:
    mac: bytes
    ip: bytes
    port: int


def some_address(chance: random.Random) -> Address:
    return Address(chance.randbytes(6), chance.randbytes(4), chance.getrandbits(16))


def checksum(header: bytes) -> int:
    """Of an IPv4 header (RFC 791): the one that makes the sum of its words all ones."""
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


@dataclass(frozen=True)
class Datagram:
    """A datagram; `padded` fills its frame up to 60 bytes."""

    source: Address
    destination: Address
    tos: int
    payload: bytes
    identification: int = 0
    flags: int = 0x4000
    time_to_live: int = 64
    udp_checksum: int = 0
    padded: bool = True

    def frame(self) -> bytes:
        length = 28 + len(self.payload)
        head = struct.pack(
            ">BBHHHBBH4s4s",
            *(0x45, self.tos, length, self.identification, self.flags, self.time_to_live, 17, 0),
            *(self.source.ip, self.destination.ip),
        )
        head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
        udp = struct.pack(
            ">HHHH",
            *(self.source.port, self.destination.port, length - 20, self.udp_checksum),
        )
        body = self.destination.mac + self.source.mac + b"\x08\x00" + head + udp + self.payload
        return body.ljust(60, b"\0") if self.padded else body


def fate(frame: bytes, longest: int) -> str:
    """What `udp_strip` has to make of a frame without holes; longest: bytes of the store."""
    if not frame:
        return "framing"
    if len(frame) < 42 or frame[12:15] != b"\x08\x00\x45" or frame[23] != 17:
        return "no_datagram"
    if int.from_bytes(frame[20:22], "big") & 0x3FFF:
        return "fragment"
    if checksum(frame[14:34]) != 0:
        return "checksum"
    of_ip, of_udp = struct.unpack(">16xH20xH", frame[:40])
    if of_ip != of_udp + 20 or of_udp < 8 or len(frame) < 14 + of_ip:
        return "length"
    return "too_long" if of_udp - 8 > longest else "passed"


def payload(frame: bytes) -> bytes:
    """Of a frame that passes."""
    return frame[42 : 34 + int.from_bytes(frame[38:40], "big")]


def spoilt(chance: random.Random, good: Datagram) -> bytes:
    """A frame with a mistake, or with something unusual that is none."""
    body = bytearray(good.frame())
    match chance.randrange(9):
        case 0:
            body[chance.choice([12, 13, 14, 23])] ^= 1 << chance.randrange(8)
        case 1:
            return replace(good, flags=chance.choice([0x2000, 1, 0x1FFF, 0x6000])).frame()
        case 2:
            return replace(good, flags=0x8000 | chance.choice([0, 0x4000])).frame()
        case 3:
            body[chance.randrange(14, 34)] ^= 1 << chance.randrange(8)
        case 4:
            # A length of UDP that is not that of IPv4.
            body[38:40] = chance.choice([0, 7, 8, len(body) - 34, 0xFFFF]).to_bytes(2, "big")
        case 5:
            return bytes(body[: chance.randrange(1, len(body) + 1)])
        case 6:
            return bytes(body) + chance.randbytes(chance.choice([1, 4, 30, 100]))
        case 7:
            # Both lengths say more than there is, or less, or are nearly 2^16.
            length = chance.choice([27, 28, len(body) - 15, len(body) - 13, 0xFFF0, 0xFFFF])
            body[16:18] = length.to_bytes(2, "big")
            body[38:40] = (length - 20).to_bytes(2, "big")
            body[24:26] = b"\0\0"
            body[24:26] = checksum(bytes(body[14:34])).to_bytes(2, "big")
        case _:
            return chance.randbytes(chance.choice([1, 13, 41, 42, 64, 200]))
    return bytes(body)


def some_datagram(chance: random.Random, longest: int) -> Datagram:
    sizes = [
        0,
        1,
        17,
        18,
        19,
        21,
        22,
        23,
        32,
        53,
        54,
        55,
        64,
        86,
        87,
        chance.randrange(longest + 1),
    ]
    return Datagram(
        some_address(chance),
        some_address(chance),
        chance.getrandbits(8),
        chance.randbytes(min(chance.choice(sizes), longest)),
        identification=chance.getrandbits(16),
        flags=chance.choice([0, 0x4000]),
        time_to_live=chance.randrange(1, 256),
        udp_checksum=chance.getrandbits(16),
        padded=chance.random() < 0.8,
    )
