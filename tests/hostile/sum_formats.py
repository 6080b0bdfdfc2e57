"""Datagrams of the protocols that sum, as a stranger writes them: nothing here uses the library."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

ANY = 0xFFFF_FFFF
LEFT = 2
"""The reason "left" of a leave."""
LONGEST_CONTROL = 200
"""Bytes: control messages and answers are shorter, and packets with a sum of these tests longer."""


@dataclass(frozen=True)
class Name:
    """Whom a datagram says it is of."""

    job: int = 1
    session: int = 7_777
    rank: int = 0
    workers: int = 2
    generation: int = 0
    """Also called term, or life of a job."""


@dataclass(frozen=True)
class Datagram:
    """Bytes, and the class of service that they need."""

    data: bytes
    tos: int = 0


class Format(ABC):
    """How one protocol writes what a stranger needs."""

    name: ClassVar[str]
    engines: ClassVar[tuple[str, ...]]
    """The first one is the one that workers send to."""

    @abstractmethod
    def join(self, who: Name, nonce: int = 0) -> Datagram: ...

    @abstractmethod
    def nonce_of(self, answer: bytes) -> int:
        """The number that the answer to a join asks for; 0: none."""

    @abstractmethod
    def generation_of(self, answer: bytes) -> int:
        """The generation that a welcome names; 0: it is no welcome."""

    def life_of(self, answer: bytes) -> int:
        """What a leave names; 0: it is no welcome."""
        return self.generation_of(answer)

    @abstractmethod
    def leave(self, who: Name) -> Datagram: ...

    @abstractmethod
    def others(self, who: Name) -> list[Datagram]:
        """Pieces, questions and commands, in a worker's name."""

    @abstractmethod
    def huge(self, who: Name) -> list[tuple[Datagram, str, str]]:
        """Datagrams of a member with numbers as large as the fields, with the engine that refuses
        them and its reason."""


class Reduce(Format):
    name = "reduce"
    engines = ("reduce",)

    @staticmethod
    def _head(kind: int, who: Name, *, operation: int = 0, block: int = 0) -> bytearray:
        names = (who.job, who.generation, who.rank, who.session, operation, block)
        return bytearray(b"OLFR" + struct.pack(">BBHIIIIII", 4, kind, 0, *names) + bytes(32))

    datagram_bytes: ClassVar[int] = 1472
    """What the path takes, as joins say."""

    def join(self, who: Name, nonce: int = 0) -> Datagram:
        head = self._head(5, who, block=nonce)
        struct.pack_into(">IIIII", head, 32, who.workers, 1, 0, 1024, self.datagram_bytes)
        return Datagram(bytes(head))

    def nonce_of(self, answer: bytes) -> int:
        return int(struct.unpack_from(">I", answer, 28)[0]) if answer[5] == 6 else 0

    def generation_of(self, answer: bytes) -> int:
        is_in = answer[5] == 6 and answer[62] == 1
        return int(struct.unpack_from(">I", answer, 12)[0]) if is_in else 0

    def leave(self, who: Name) -> Datagram:
        return Datagram(bytes(self._head(7, who)))

    def piece(
        self,
        who: Name,
        *,
        operation: int = 0,
        block: int = 0,
        first: int = 0,
        lanes: int = 1,
        whole: int = 1,
    ) -> Datagram:
        head = self._head(1, who, operation=operation, block=block)
        struct.pack_into(">QIII", head, 32, whole, first, 1, 0)
        struct.pack_into(">HHHBB", head, 56, lanes, 0, 0, 1, 1)
        return Datagram(bytes(head) + bytes(4 * lanes))

    def others(self, who: Name) -> list[Datagram]:
        ask = self._head(3, who)
        struct.pack_into(">Q", ask, 32, (1 << 64) - 1)
        return [Datagram(bytes(ask)), self.piece(who), self.leave(who)]

    def huge(self, who: Name) -> list[tuple[Datagram, str, str]]:
        return [
            (self.piece(who, lanes=256, whole=(1 << 64) - 1), "reduce", "bad_field"),
            (self.piece(who, lanes=256, whole=1 << 39, block=1 << 30), "reduce", "too_early"),
            (self.piece(who, block=ANY, first=ANY), "reduce", "bad_field"),
            # No operation comes after it.
            (self.piece(who, operation=ANY), "reduce", "bad_field"),
            (Datagram(self.join(who).data[:32] + b"\xff" * 4 + bytes(28)), "reduce", "bad_field"),
        ]


class Trio(Format):
    name = "trio"
    engines = ("trio",)

    @staticmethod
    def _message(
        kind: int, who: Name, words: tuple[int, ...], *, block: int, count: int = 0
    ) -> Datagram:
        head = (who.job, block, kind << 4, who.rank, count, 0, len(words))
        return Datagram(struct.pack(">BIBBBHH", *head) + struct.pack(f">{len(words)}I", *words))

    def join(self, who: Name, nonce: int = 0) -> Datagram:
        proof = (nonce,) if nonce else ()
        words = (who.session, who.workers, 300, 0, 64, 1, *proof)
        return self._message(2, who, words, block=0, count=1)

    def nonce_of(self, answer: bytes) -> int:
        is_asking = answer[5] >> 4 == 3 and len(answer) == 44
        return int(struct.unpack_from(">I", answer, 40)[0]) if is_asking else 0

    def generation_of(self, answer: bytes) -> int:
        # A block names a generation of 16 bits, and the term is in other messages.
        is_in = answer[5] >> 4 == 3 and struct.unpack_from(">I", answer, 16)[0] == 1
        return int(struct.unpack_from(">H", answer, 8)[0]) if is_in else 0

    def life_of(self, answer: bytes) -> int:
        return int(struct.unpack_from(">I", answer, 1)[0]) if self.generation_of(answer) else 0

    def leave(self, who: Name) -> Datagram:
        return self._message(7, who, (who.session,), block=who.generation, count=LEFT)

    def piece(self, who: Name, *, block: int = 0, gradients: int = 1) -> Datagram:
        head = (who.job, block, 0, who.rank, 1, who.generation & 0xFFFF, gradients)
        return Datagram(struct.pack(">BIBBBHH", *head) + bytes(4 * gradients))

    def others(self, who: Name) -> list[Datagram]:
        words = (who.session, who.generation, ANY, ANY, 0, 0, 0)
        return [self._message(4, who, words, block=0), self.piece(who), self.leave(who)]

    def huge(self, who: Name) -> list[tuple[Datagram, str, str]]:
        far = self.piece(who, block=ANY)
        join = self.join(who).data
        return [
            (far, "trio", "too_far_ahead"),
            (self.piece(who, block=1 << 20), "trio", "too_far_ahead"),
            (self.piece(who, gradients=4_095), "trio", "too_many_gradients"),
            # More workers, gradients and blocks than a byte or 12 bits can name.
            (Datagram(join[:16] + b"\xff" * 4 + join[20:]), "trio", "bad_field"),
            (Datagram(join[:20] + b"\xff" * 4 + join[24:]), "trio", "bad_field"),
            (Datagram(join[:28] + b"\xff" * 4 + join[32:]), "trio", "bad_field"),
        ]


class Iswitch(Format):
    name = "iswitch"
    engines = ("iswitch",)
    CONTROL, DATA = 0b10_1011 << 2, 0b10_0011 << 2

    def _control(self, action: int, who: Name, rest: bytes, code: int = 0) -> Datagram:
        head = bytes((action, who.generation & 0xFF, code, 0))
        return Datagram(head + rest, self.CONTROL)

    def join(self, who: Name, nonce: int = 0) -> Datagram:
        numbers = (who.job, who.session, who.rank, who.workers, 1, 366, ANY, 0)
        proof = struct.pack(">I", nonce) if nonce else b""
        return self._control(1, who, struct.pack(">8I", *numbers) + proof, code=3)

    def nonce_of(self, answer: bytes) -> int:
        return int(struct.unpack_from(">I", answer, 48)[0]) if len(answer) == 52 else 0

    def generation_of(self, answer: bytes) -> int:
        # 0 is a generation, too: callers take the number that is above it by 256.
        is_in = answer[0] == 8 and answer[2:4] == b"\x01\x01"
        return 256 + answer[1] if is_in else 0

    def leave(self, who: Name) -> Datagram:
        return self._control(2, who, struct.pack(">II", who.job, who.session))

    def piece(self, who: Name, *, index: int = 0, floats: int = 1) -> Datagram:
        seg = (who.generation & 0xFF) << 56 | index
        return Datagram(struct.pack(">Q", seg) + bytes(4 * floats), self.DATA)

    def others(self, who: Name) -> list[Datagram]:
        wanted = struct.pack(">IQQ", 0, 0, (1 << 64) - 1)
        verbs = [self._control(verb, who, wanted) for verb in (5, 6)]
        return [*verbs, self._control(3, who, b""), self.piece(who), self.leave(who)]

    def huge(self, who: Name) -> list[tuple[Datagram, str, str]]:
        join = self.join(who).data
        return [
            (self.piece(who, index=(1 << 44) - 1), "iswitch", "too_early"),
            (self.piece(who, floats=2_000), "iswitch", "bad_field"),
            (Datagram(join[:16] + b"\xff" * 4 + join[20:], self.CONTROL), "iswitch", "bad_field"),
            (Datagram(join[:20] + b"\xff" * 4 + join[24:], self.CONTROL), "iswitch", "bad_field"),
        ]


class Atp(Format):
    name = "atp"
    engines = ("atp", "atp_server")

    @staticmethod
    def _control(kind: int, who: Name, length: int) -> bytearray:
        message = bytearray(length)
        struct.pack_into(">BBBBH", message, 8, kind, 4, 0, 0x80, who.job)
        return message

    def join(self, who: Name, nonce: int = 0) -> Datagram:
        join = self._control(1, who, 75)
        numbers = (nonce, who.session, who.rank, who.workers, 0, 0, 62)
        struct.pack_into(">IIIIHHH", join, 14, *numbers)
        struct.pack_into(">IdBHI", join, 48, 1, 1e8, 1, 64, ANY)
        return Datagram(bytes(join))

    def nonce_of(self, answer: bytes) -> int:
        return int(struct.unpack_from(">I", answer, 14)[0]) if answer[8] == 2 else 0

    def generation_of(self, answer: bytes) -> int:
        is_in = answer[8] == 2 and answer[11] == 0x80 and answer[34] == 1
        return int(struct.unpack_from(">H", answer, 36)[0]) if is_in else 0

    def leave(self, who: Name) -> Datagram:
        leave = self._control(3, who, 25)
        struct.pack_into(">IHB", leave, 18, who.session, who.generation & 0xFFFF, LEFT)
        return Datagram(bytes(leave))

    def piece(self, who: Name, *, sequence: int = 0, length: int = 62) -> Datagram:
        head = (1 << who.rank, 1, who.workers, 1, 0, 0, who.job, sequence & 0xFFFF, 0)
        key = (who.generation & 0xFFFF) << 48 | sequence >> 16
        body = b"\x11" * 4 * 62
        data = struct.pack(">IIBBBBHHH", *head) + body + struct.pack(">QI", key, length)
        return Datagram(data)

    def others(self, who: Name) -> list[Datagram]:
        return [self.piece(who), self.leave(who)]

    def huge(self, who: Name) -> list[tuple[Datagram, str, str]]:
        join = self.join(who).data
        return [
            (self.piece(who, sequence=1 << 38, length=ANY), "atp_server", "too_early"),
            (self.piece(who, sequence=1 << 20, length=ANY), "atp_server", "too_early"),
            (Datagram(join[:26] + b"\xff" * 4 + join[30:]), "atp", "bad_field"),
            (Datagram(join[:36] + b"\xff" * 4 + join[40:]), "atp", "bad_field"),
        ]


FORMATS: dict[str, Format] = {one.name: one for one in (Reduce(), Iswitch(), Trio(), Atp())}
