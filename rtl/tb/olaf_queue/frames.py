"""Frames for the bench of `olaf_queue`: updates of all kinds, other datagrams, malformed frames."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, replace

import numpy as np
from queue_reference import Update

BEAT = 64
KINDS = ("framing", "too_long", "refused", "other", "update")


@dataclass(frozen=True)
class Frame:
    """A frame, what becomes of it at the entrance, and its beats as (bytes, tkeep)."""

    kind: str
    body: bytes
    update: Update | None = None
    keeps: tuple[int, ...] | None = None
    width: int = BEAT
    """Bytes of a beat."""

    @property
    def beats(self) -> list[tuple[bytes, int, bool]]:
        starts = range(0, len(self.body), self.width)
        pieces = [self.body[at : at + self.width] for at in starts]
        keeps = self.keeps or tuple((1 << len(piece)) - 1 for piece in pieces)
        ends = [at == len(pieces) - 1 for at in range(len(pieces))]
        return list(zip(pieces, keeps, ends, strict=True))


ANSWER = struct.Struct(">4sBBHIIIIIIIIIIIIQQHHHBBIIIIQQ")
assert ANSWER.size == 112
HUGE = np.float32(3e38)
VALUES = [np.float32(v) for v in (0.0, -0.0, 1.5, -2.25, 1e-42, 1e30, -1e30, 1e35)]
WEIGHTS = (1.0, 2.0, 0.5, 3.25, 1e-300, 7e5)
REWARDS = (0.0, -0.0, 1.0, 1.5, 1.25, 2.0, 3.0, 3.5, -3.5, 1e10)


def some_update(chance: random.Random, most_lanes: int, flows: int, wild: float) -> Update:
    """`wild`: how often a number is near or beyond the largest."""
    flow = chance.randrange(flows)
    # Most updates of a flow have as many lanes.
    count = min([4, 9, most_lanes, 8, most_lanes // 2][flow % 5], most_lanes)
    if chance.random() < 0.05:
        count = chance.randint(1, most_lanes)
    lanes = np.array([chance.choice(VALUES) + chance.random() for _ in range(count)], np.float32)
    weight, reward = chance.choice(WEIGHTS) * (1 + chance.random()), chance.choice(REWARDS)
    if chance.random() < wild:
        bad = chance.choice([HUGE, HUGE, -HUGE, np.float32("inf"), np.float32("nan"), 2e38])
        lanes[chance.randrange(count)] = bad
    if chance.random() < wild / 3:
        weight = chance.choice([1e308, 1.7e308, 5e-324, 1e300])
    if chance.random() < wild / 3:
        reward = chance.choice([1.7e308, -1e308, 1e200, float("inf"), float("nan"), 1e-310])
    oldest, version = chance.randrange(2**40), chance.randrange(2**20)
    several = chance.choice([2, 3, 2**31, 2**32 - 1]) if chance.random() < 0.1 else 1
    return Update(
        job=1 + flow % 2,
        cluster=flow // 2,
        segment=chance.choice([0, 0, 0, 1]) if flow % 3 == 0 else 0,
        segments=2,
        worker=chance.randrange(9),
        session=chance.getrandbits(32),
        sequence=chance.getrandbits(32),
        hop_sequence=chance.getrandbits(32),
        flow_sequence=chance.getrandbits(32),
        generated=(oldest, oldest + chance.randrange(2**33)),
        versions=(version, version + chance.randrange(9)),
        contributors=several,
        weight=weight,
        reward=reward,
        hops=chance.choice([0, 1, 7, 255]),
        lanes=lanes,
    )


def refused(chance: random.Random, update: Update) -> bytes:
    """A datagram that olaf-wire refuses."""
    lanes = len(update.lanes)
    body = update.emit()
    return chance.choice(
        [
            body[: chance.randint(6, len(body) - 1)],
            body + bytes(4),
            update.emit(lanes=lanes + 1),
            update.emit(lanes=lanes - 1),
            update.emit(lanes=2**31 + lanes),
            update.emit(flags=chance.choice([1, 256])),
            replace(update, segments=update.segment).emit(),
            replace(update, generated=(8, 7)).emit(),
            replace(update, versions=(2**31, 7)).emit(),
            replace(update, contributors=0).emit(),
            replace(update, weight=chance.choice([0.0, -1.0, float("inf"), float("nan")])).emit(),
            replace(update, lanes=np.zeros(0, np.float32)).emit(),
        ]
    )


@dataclass(frozen=True)
class Answer:
    """An answer as olaf-wire has it, with lanes of any bits."""

    lanes: bytes
    numbers: tuple[int, ...]
    status: tuple[int, ...]
    segment: int
    segments: int
    parameters: int
    ends: tuple[int, int]

    def emit(self, lanes: int | None = None, kind: int | None = None, flags: int = 0) -> bytes:
        count = len(self.lanes) // 4
        address, (acknowledges, version, epoch, delivered) = self.numbers[:4], self.numbers[4:8]
        header = ANSWER.pack(
            *(b"OLAF", 3, (3 if count else 2) if kind is None else kind, flags, *address),
            *(acknowledges, self.segment, self.segments, version, self.parameters),
            *(count if lanes is None else lanes, epoch, delivered, 7, 11),
            *(*self.status, *self.numbers[8:], *self.ends),
        )
        return header + self.lanes


def some_answer(chance: random.Random, longest: int) -> Answer:
    """Its status is that of a switch above that is more crowded than this one, or less, or none."""
    most = min((longest - ANSWER.size) // 4, 40)
    count = chance.choice([0, 0, 0, chance.randint(0, most), most])
    segment, delivered = chance.randrange(2**31), chance.getrandbits(64)
    return Answer(
        lanes=chance.randbytes(4 * count),
        numbers=tuple(chance.getrandbits(32) for _ in range(11)),
        status=(
            *(chance.randrange(20), chance.randrange(20), chance.getrandbits(16)),
            # The byte behind the number of switches is no field.
            *(chance.choice([0, 1, 2, 255]), chance.getrandbits(8)),
            chance.choice([0, 1, 2000, 2**32 - 1]),
        ),
        segment=segment,
        segments=segment + chance.choice([1, 9]),
        parameters=count + chance.choice([0, 1, 2**31]),
        ends=(delivered, chance.getrandbits(64) & ~delivered),
    )


def refused_answer(chance: random.Random, answer: Answer) -> bytes:
    """A datagram that begins as an answer, and that olaf-wire refuses."""
    lanes, body = len(answer.lanes) // 4, answer.emit()
    made = [
        body[: chance.randint(6, len(body) - 1)],
        body + bytes(chance.choice([1, 4, 64])),
        answer.emit(lanes=lanes + 1),
        answer.emit(lanes=2**31 + lanes),
        answer.emit(kind=2 if lanes else 3),
        answer.emit(flags=chance.choice([1, 256])),
        replace(answer, segments=answer.segment).emit(),
        replace(answer, ends=(8, 9)).emit(),
    ]
    if lanes:
        made.append(replace(answer, parameters=lanes - 1).emit())
    return chance.choice(made)


def other(chance: random.Random, longest: int) -> bytes:
    """An answer, another message, or anything that does not begin as an answer of this version."""
    if chance.random() < 0.6:
        return some_answer(chance, longest).emit()
    body = bytearray(chance.randbytes(chance.choice([1, 5, 24, 64, 65, 112, 112, 128, longest])))
    # Such an answer passes untouched.
    kinds = [b"OLAF\x03\x04", b"OLAF\x03\x09", b"OLAF\x02\x02", b"OLAG\x03\x02", bytes(body[:6])]
    begin = chance.choice(kinds)[: len(body)]
    body[: len(begin)] = begin
    return bytes(body)


def some_frame(
    chance: random.Random, longest: int, flows: int, wild: float, strange: float, *, width: int
) -> Frame:
    """`strange`: how often it is no well-formed update. `width`: bytes of a beat."""
    frame = some_kind(chance, longest, flows, wild, strange)
    if frame.kind == "framing":
        return spoilt(chance, frame.body, width)
    return replace(frame, width=width)


def some_kind(
    chance: random.Random, longest: int, flows: int, wild: float, strange: float
) -> Frame:
    update = some_update(chance, (longest - 96) // 4, flows, wild)
    if chance.random() >= strange:
        return Frame("update", update.emit(), update)
    kind = chance.choice(KINDS[:4])
    if kind == "refused":
        answer = some_answer(chance, longest)
        body = chance.choice([refused(chance, update), refused_answer(chance, answer)])
        if len(body) > longest:
            kind = "too_long"
        return Frame(kind, body)
    if kind == "other":
        return Frame("other", other(chance, longest))
    body = chance.choice([update.emit(), other(chance, longest)])
    if kind == "too_long":
        extra = chance.choice([1, 64, 200, 3 * longest])
        return Frame("too_long", body + bytes(longest + extra - len(body)))
    return Frame("framing", body)


def spoilt(chance: random.Random, body: bytes, width: int) -> Frame:
    """A hole: in a beat in the middle or, more often, the last one."""
    keeps = [keep for _, keep, _ in Frame("framing", body, width=width).beats]
    at = chance.choice([chance.randrange(len(keeps)), len(keeps) - 1])
    if at == len(keeps) - 1:
        keeps[at] = chance.choice([0, keeps[at] << 1 & (1 << width) - 1 or 2, 5])
    else:
        # A converter of widths could take a half without bytes for the end of the frame.
        keeps[at] = chance.choice(
            [keeps[at] ^ 1 << chance.randrange(width), keeps[at] >> width // 2]
        )
    return Frame("framing", body, keeps=tuple(keeps), width=width)
