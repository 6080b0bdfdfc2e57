"""Random traffic for the accelerator, and what the software switch of iSwitch does with it.

The software switch is `olaf._olaf.Engine("iswitch")`: the golden model. Its datagrams leave in an
order that follows from the order of arrival alone, so the two are compared datagram by datagram.
"""

from __future__ import annotations

import json
import os
import random
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).resolve().parents[3] / "python"
CONTROL_CLASS, DATA_CLASS, CONGESTED = 0x2B << 2, 0x23 << 2, 3
JOIN, LEAVE, RESET, SET_H, FBCAST, HELP, HALT, ACK = range(1, 9)
ANY = 0xFFFFFFFF
VERSION = 3
DOWNLINK = 1
# The time moves with the datagrams, so that no member draws more than the software allows. No
# worker is silent.
BETWEEN_NS = 100_000_000
SILENCE_MS = 365 * 24 * 3_600_000
EPOCH = 250
FATES = (
    *("taken", "late", "repeated", "held", "occupied", "closed", "too_early", "impossible"),
    *("wrong_size", "mismatch", "malformed", "unknown_generation", "not_a_member"),
    *("join", "leave", "reset", "set_h", "fbcast", "help", "halt", "ack"),
)
COUNTERS = (
    *("packets", *FATES, "summed", "given_up", "results", "results_again", "forced", "began"),
    *("ended", "join_refused", "leave_refused", "h_refused"),
    *("message_of_unknown_generation", "message_of_no_member"),
)

needs_engine = pytest.mark.skipif(
    not list((PACKAGE / "olaf").glob("_olaf*.so")) and not os.environ.get("OLAF_REQUIRE_RTL"),
    reason="the golden model is not built: scripts/env builds it",
)


@dataclass(frozen=True)
class Datagram:
    """Bytes with what tuser says of them; `ports` is the sender, or the receivers, a bit each."""

    body: bytes
    ports: int
    control: bool
    marked: bool


def seg(generation: int, index: int, *, last: bool = False, missing: int = 0) -> bytes:
    return (generation << 56 | int(last) << 55 | missing << 44 | index).to_bytes(8, "big")


def join(job: int, session: int, workers: int, **other: int) -> bytes:
    """With another number than 0, it ends with this proof of the sender's address."""
    about = {"generation": 0, "sender": 0, "rank": ANY, "contributors": 1} | other
    number = other.get("number", 0)
    return struct.pack(
        ">BBBBIIIIIIII",
        *(
            JOIN,
            about["generation"],
            VERSION,
            about["sender"],
            job,
            session,
            about["rank"],
            workers,
        ),
        *(about["contributors"], other.get("packet_floats", 14), other.get("operations", ANY), 7),
    ) + (struct.pack(">I", number) if number else b"")


def packets(verb: int, generation: int, index: int, mask: int) -> bytes:
    return struct.pack(">BBHIQQ", verb, generation, 0, 9, index, mask)


def software(slots: int, epoch: int) -> Any:
    """The golden model."""
    if str(PACKAGE) not in sys.path:
        sys.path.insert(0, str(PACKAGE))
    from olaf._olaf import Engine

    config = {"jobs": 1, "slots": slots, "silence_ms": SILENCE_MS, "tells_numbered": False}
    return Engine("iswitch", json.dumps(config), epoch)


@dataclass
class Golden:
    """The software switch, and what the accelerator has to send for each datagram."""

    slots: int
    epoch: int
    sent: list[Datagram] = field(default_factory=list)
    generation: int = 0
    engine: Any = None
    now_ns: int = 1_000

    def __post_init__(self) -> None:
        self.engine = software(self.slots, self.epoch)

    def take(self, datagram: Datagram, longest: int) -> None:
        """Give it to the software; note what leaves."""
        traffic_class = CONTROL_CLASS if datagram.control else DATA_CLASS
        traffic_class |= CONGESTED if datagram.marked else 0
        peer = datagram.ports.bit_length() - 1
        self.now_ns += BETWEEN_NS
        self.engine.handle_packet(self.now_ns, peer, datagram.body, DOWNLINK, traffic_class)
        if datagram.control and 0 < len(datagram.body) <= longest:
            # The control plane gets the message as it is.
            self.sent.append(datagram)
        while (out := self.engine.poll_transmit(self.now_ns, DOWNLINK)) is not None:
            receivers, body, out_class = out
            if out_class & ~3 == DATA_CLASS:
                ports = sum(1 << peer for peer in receivers)
                marked = out_class & 3 == CONGESTED
                self.sent.append(Datagram(body, ports, control=False, marked=marked))
            elif body[0] == ACK and body[2:4] == bytes([1, JOIN]):
                self.generation = body[1]

    def report(self) -> dict[str, Any]:
        return self.engine.report(self.now_ns)

    def first_incomplete(self) -> int:
        jobs = self.report()["jobs"]
        return jobs[0]["packets"] if jobs else 0

    def members(self) -> list[int]:
        jobs = self.report()["jobs"]
        return [row["address"] for row in jobs[0]["members"]] if jobs else []

    def is_open(self) -> bool:
        jobs = self.report()["jobs"]
        return self.has_begun() and jobs[0]["closed"] is None

    def has_begun(self) -> bool:
        """Whether the job has had a generation: before, only the software lets it give way."""
        jobs = self.report()["jobs"]
        return bool(jobs) and jobs[0]["generation"] is not None


def floats(chance: random.Random, count: int) -> bytes:
    """Numbers of all sizes: ordinary, subnormal, huge, and any bits at all."""
    words = []
    for _ in range(count):
        kind = chance.random()
        if kind < 0.7:
            words.append(struct.unpack("<I", struct.pack("<f", chance.gauss(0, 10)))[0])
        elif kind < 0.85:
            words.append(chance.getrandbits(32) & 0x80FFFFFF)
        else:
            words.append(chance.getrandbits(32))
    return struct.pack(f"<{count}I", *words)


@dataclass
class Traffic:
    """Workers that mostly keep to the protocol, and sometimes do anything."""

    chance: random.Random
    ports: int
    slots: int
    vectors: int
    most_floats: int
    golden: Golden
    next_index: list[int] = field(default_factory=list)
    session: int = 100
    workers: int = 0
    epochs: int = -1
    leaver: int | None = None

    def datagram(self) -> Datagram:
        chance = self.chance
        members = self.golden.members()
        is_open = self.golden.is_open()
        if not members or not is_open or chance.random() < 0.05:
            members = list(range(self.ports))
        port = chance.choice(members)
        if self.leaver is not None:
            # It may not know yet that it has left.
            port, self.leaver = self.leaver, None
            control = chance.random() < 0.5
            body = self.message(port) if control else self.data(port)
        elif not is_open and chance.random() < 0.7:
            body = self.some_join(port)
            control = True
        else:
            control = chance.random() < 0.12
            body = self.message(port) if control else self.data(port)
        if chance.random() < 0.02:
            body = self.spoilt(body)
        return Datagram(body, 1 << port, control, chance.random() < 0.1)

    def spoilt(self, body: bytes) -> bytes:
        chance = self.chance
        if len(body) in (36, 48) and chance.random() < 0.5:
            # 0 is no number that a Join or an Ack may end with.
            return body + bytes([0, 0, 0, chance.choice([0, 0, 1])])
        if chance.random() < 0.5 or len(body) < 2:
            return chance.randbytes(chance.choice([1, 4, 8, 11, 13, 36, 50, 4 * self.most_floats]))
        # Not the number of a vector: the accelerator takes fewer of them.
        kept = (1, 2) if self.golden.has_begun() else (1, 2, 4, 5, 6, 7)
        at = chance.choice([at for at in range(min(len(body), 32)) if at not in kept])
        return body[:at] + bytes([chance.randrange(256)]) + body[at + 1 :]

    def some_join(self, port: int) -> bytes:
        chance = self.chance
        if not self.golden.report()["jobs"]:
            self.workers = chance.randrange(1, self.ports + 1)
        self.session += 1
        other = {"rank": chance.choice([ANY, ANY, port, 1])}
        if chance.random() < 0.1 and self.workers > 1:
            other |= {"sender": 1, "contributors": chance.randrange(1, self.workers + 1)}
        if chance.random() < 0.05:
            other |= {"generation": self.golden.generation, "operations": 3}
        other["number"] = chance.choice([0, 1, 1 << 31, chance.getrandbits(32)])
        other["packet_floats"] = chance.randrange(self.most_floats // 2, self.most_floats + 1)
        job = 7 if chance.random() < 0.97 or not self.golden.has_begun() else 8
        # A life that stays joins with the same session.
        session = self.session if chance.random() < 0.3 else 50 + port
        return join(job, session, self.workers, **other)

    def message(self, port: int) -> bytes:
        chance, generation = self.chance, self.golden.generation
        if chance.random() < 0.05:
            generation = chance.randrange(256)
        first = self.golden.first_incomplete()
        index = max(0, first + chance.randrange(-2 * self.slots, self.slots + 1))
        mask = chance.getrandbits(64) & chance.getrandbits(8)
        kinds = (
            [FBCAST] * 8 + [HELP] * 8 + [SET_H] * 6 + [ACK] * 8 + [LEAVE] * 3 + [RESET, HALT, JOIN]
        )
        match chance.choice(kinds):
            case verb if verb in (FBCAST, HELP):
                return packets(verb, generation, index, mask)
            case verb if verb == SET_H:
                h = chance.choice([*range(self.ports + 2), 2048])
                return struct.pack(">BBHI", SET_H, generation, 0, h)
            case verb if verb == ACK:
                of_join = chance.random() < 0.3
                ack = struct.pack(">BBBBIQ", ACK, generation, 1, JOIN if of_join else ACK, 3, index)
                number = struct.pack(">I", chance.choice([0, 0, 256]))
                return ack + of_join * (bytes(32) + number * chance.randrange(2))
            case verb if verb == LEAVE:
                self.leaver = port
                return struct.pack(">BBHII", LEAVE, generation, 0, 7, 50 + port)
            case verb if verb == RESET:
                return struct.pack(">BBH", RESET, generation, 0)
            case verb if verb == HALT:
                return struct.pack(">BBBBIQ", HALT, generation, 2, 0, port, index)
        return self.some_join(port)

    def data(self, port: int) -> bytes:
        chance, generation = self.chance, self.golden.generation
        if generation != self.epochs:
            self.epochs, self.next_index = generation, [0] * self.ports
        first = self.golden.first_incomplete()
        kind = chance.random()
        if kind < 0.5 and self.next_index[port] < first + self.slots:
            index = self.next_index[port]
            self.next_index[port] += 1
        elif kind < 0.9:
            index = first + chance.randrange(self.slots)
        else:
            index = max(0, first + chance.randrange(-3 * self.slots, 2 * self.slots + 1))
        vector = chance.randrange(self.vectors) if chance.random() < 0.15 else 0
        size = 1 + (index * 7 + generation) % (self.most_floats // 2)
        last = index % 3 == 2
        if chance.random() < 0.004:
            size = 1 + chance.randrange(self.most_floats + 2)
        if chance.random() < 0.004:
            last = not last
        if chance.random() < 0.02:
            generation = chance.randrange(256)
        head = seg(generation, index, last=last, missing=vector)
        return head + floats(chance, size)


def f32(words: bytes) -> list[int]:
    """Lanes of a packet, with one bit pattern for everything that is not a number."""
    lanes = struct.unpack(f"<{len(words) // 4}I", words)
    return [0x7FC00000 if lane & 0x7FFFFFFF > 0x7F800000 else lane for lane in lanes]


def check_counters(numbers: dict[str, int], report: dict, sent: int) -> None:
    """The accelerator's counters are those of the software, and each datagram has one fate."""
    assert numbers["packets"] == sent == sum(numbers[fate] for fate in FATES)
    pieces, refused = report["pieces"], report["refused"]
    waiting = numbers["taken"] - numbers["summed"] - numbers["given_up"]
    ours = {name: numbers[name] for name in pieces if name in numbers} | {"waiting": waiting}
    theirs = {name: pieces[name] for name in ours}
    assert ours == theirs
    names = ("closed", "too_early", "impossible", "wrong_size", "mismatch")
    for name in names:
        assert numbers[name] == pieces["refused"].get(name, 0), name
    for verb in FATES[13:]:
        assert numbers[verb] == report["controls_received"].get(verb, 0), verb
    assert numbers["results"] == report["results"]
    assert numbers["results_again"] == report["results_again"]
    assert numbers["forced"] == report["forced_packets"]
    assert numbers["began"] == report["generations"]
    assert numbers["ended"] == sum(report["closed_generations"].values())
    unknown = numbers["unknown_generation"] + numbers["message_of_unknown_generation"]
    assert unknown == refused.get("unknown_generation", 0)
    stranger = numbers["not_a_member"] + numbers["message_of_no_member"] + numbers["leave_refused"]
    assert stranger == refused.get("not_a_member", 0) + refused.get("unknown_job", 0)
