"""Any number of AXI4-Streams with tuser, driven together, cycle by cycle."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer


@dataclass(frozen=True)
class Frame:
    """The bytes of a frame, and tuser, which is the same in each of its beats."""

    body: bytes
    user: int = 0


@dataclass(frozen=True)
class Beat:
    data: int
    keep: int
    last: bool
    user: int


def beats(frame: Frame, width: int) -> list[Beat]:
    """The beats of a frame without holes; one beat without a byte for an empty frame."""
    pieces = [frame.body[at : at + width] for at in range(0, len(frame.body), width)] or [b""]
    return [
        Beat(
            int.from_bytes(piece, "little"), (1 << len(piece)) - 1, piece is pieces[-1], frame.user
        )
        for piece in pieces
    ]


@dataclass
class Sender:
    """Offers beats, each until it is taken, in that share of the cycles."""

    dut: object
    prefix: str
    chance: random.Random
    waiting: deque[Beat] = field(default_factory=deque)
    share: float = 1.0
    offers: bool = False
    taken_in: list[int] = field(default_factory=list)

    def pin(self, name: str):
        return getattr(self.dut, f"{self.prefix}_{name}")

    def send(self, frames: Iterable[Frame]) -> None:
        width = len(self.pin("tkeep"))
        for frame in frames:
            self.waiting.extend(beats(frame, width))

    def put(self) -> None:
        self.offers = bool(self.waiting) and (self.offers or self.chance.random() < self.share)
        self.pin("tvalid").value = self.offers
        if self.offers:
            beat = self.waiting[0]
            self.pin("tdata").value, self.pin("tkeep").value = beat.data, beat.keep
            self.pin("tlast").value, self.pin("tuser").value = beat.last, beat.user

    def look(self, cycle: int) -> None:
        if self.offers and self.pin("tready").value == 1:
            self.waiting.popleft()
            self.offers = False
            self.taken_in.append(cycle)

    def busy(self) -> bool:
        return bool(self.waiting)


@dataclass
class Taker:
    """Takes frames in that share of the cycles. A beat that waits must not change."""

    dut: object
    prefix: str
    chance: random.Random
    share: float = 1.0
    takes: bool = False
    frames: list[Frame] = field(default_factory=list)
    left_in: list[int] = field(default_factory=list)
    partial: bytes = b""
    inside: bool = False
    user: int = 0
    waited: Beat | None = None

    def pin(self, name: str):
        return getattr(self.dut, f"{self.prefix}_{name}")

    def put(self) -> None:
        self.takes = self.chance.random() < self.share
        self.pin("tready").value = self.takes

    def look(self, cycle: int) -> None:
        now = None
        if self.pin("tvalid").value == 1:
            data, keep, user = (
                self.pin(name).value.to_unsigned() for name in ("tdata", "tkeep", "tuser")
            )
            now = Beat(data, keep, self.pin("tlast").value == 1, user)
        assert self.waited is None or now == self.waited, "a beat that waits does not change"
        self.waited = None if self.takes else now
        if now is None or not self.takes:
            return
        width = len(self.pin("tkeep"))
        size = now.keep.bit_length()
        assert now.data >> 8 * size == 0, "bytes that are not kept are zeros"
        assert now.keep == (1 << size) - 1, "kept bytes are the first ones"
        assert now.last or size == width, "a beat in the middle is whole"
        assert not self.inside or (size and now.user == self.user), "tuser stays, no beat is empty"
        self.partial += now.data.to_bytes(width, "little")[:size]
        self.user, self.inside = now.user, not now.last
        self.left_in.append(cycle)
        if now.last:
            self.frames.append(Frame(self.partial, now.user))
            self.partial = b""

    def busy(self) -> bool:
        return self.waited is not None or self.inside


class Part(Protocol):
    """What `run` drives."""

    def put(self) -> None: ...
    def look(self, cycle: int) -> None: ...
    def busy(self) -> bool: ...


@dataclass
class Watcher:
    """Only looks, when all pins of a cycle have settled."""

    watch: Callable[[], None]

    def put(self) -> None:
        pass

    def look(self, cycle: int) -> None:
        del cycle
        self.watch()

    def busy(self) -> bool:
        return False


async def begin(dut, idle: Iterable[str] = ()) -> None:
    """Start the clock and reset; `idle` names inputs that are 0 then."""
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start(start_high=False))
    dut.rst.value = 1
    for name in idle:
        getattr(dut, name).value = 0
    for _ in range(2):
        await tick(dut)
    dut.rst.value = 0


def clock(dut):
    """The clock of a module, or of a board's."""
    return dut.clk if hasattr(dut, "clk") else dut.axis_aclk


async def tick(dut) -> None:
    await RisingEdge(clock(dut))
    await Timer(1, unit="ps")


async def run(
    dut,
    parts: Sequence[Part],
    *,
    most: int,
    until: Callable[[], bool] = lambda: True,
    quiet: int = 60,
) -> int:
    """Drive all until nobody was busy for `quiet` cycles and `until` is true; return the cycles.

    Each cycle first lets all parts `put` their pins, then `look` at all pins.
    """
    still = 0
    for cycle in range(most):
        for part in parts:
            part.put()
        await Timer(1, unit="ns")
        for part in parts:
            part.look(cycle)
        await tick(dut)
        still = 0 if any(part.busy() for part in parts) else still + 1
        if still >= quiet and until():
            return cycle + 1 - still
    raise AssertionError(f"beats are left after {most} cycles")
