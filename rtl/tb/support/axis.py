"""Sends beats through a module with one AXI4-Stream in and one out, cycle by cycle."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer


@dataclass(frozen=True)
class Beat:
    """The bytes as a number, the first one lowest; a bit for each kept byte; ends its frame."""

    data: int
    keep: int
    last: bool


@dataclass
class Passage:
    """The beats that left, and in which cycles beats came and left."""

    left: list[Beat] = field(default_factory=list)
    came_in: list[int] = field(default_factory=list)
    left_in: list[int] = field(default_factory=list)


async def begin(dut) -> None:
    """Start the clock, and reset."""
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start(start_high=False))
    dut.rst.value, dut.s_axis_tvalid.value, dut.m_axis_tready.value = 1, 0, 0
    await RisingEdge(dut.clk)
    await Timer(1, unit="ps")
    dut.rst.value = 0


async def send(
    dut, beats: list[Beat], expected: int, chance: random.Random, *, valid: float, ready: float
) -> Passage:
    """Offer the beats and take `expected` ones; each side is willing in that share of the cycles.

    An offered beat stays, on both sides. Nothing more may come for ten cycles.
    """
    passage = Passage()
    waiting: Beat | None = None
    offers = False
    after = 0
    for cycle in range(100 + 20 * int((len(beats) + expected) / min(valid, ready))):
        at = len(passage.came_in)
        offers = at < len(beats) and (offers or chance.random() < valid)
        takes = chance.random() < ready
        dut.s_axis_tvalid.value, dut.m_axis_tready.value = offers, takes
        if offers:
            dut.s_axis_tdata.value, dut.s_axis_tkeep.value = beats[at].data, beats[at].keep
            dut.s_axis_tlast.value = beats[at].last
        await Timer(1, unit="ns")
        if offers and dut.s_axis_tready.value == 1:
            passage.came_in.append(cycle)
            offers = False
        there = None
        if dut.m_axis_tvalid.value == 1:
            keep = dut.m_axis_tkeep.value.to_unsigned()
            there = Beat(dut.m_axis_tdata.value.to_unsigned(), keep, dut.m_axis_tlast.value == 1)
        assert waiting is None or there == waiting, "an offered beat stays"
        waiting = None if takes else there
        if takes and there:
            passage.left.append(there)
            passage.left_in.append(cycle)
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
        after += len(passage.came_in) == len(beats) and len(passage.left) >= expected
        if after == 10:
            return passage
    raise AssertionError(f"{len(passage.left)} of {expected} beats left")


def some_frames(chance: random.Random, width: int, count: int) -> list[list[Beat]]:
    """Frames in beats of `width` bytes; a third of them have a mistake."""
    return [some_frame(chance, width) for _ in range(count)]


def some_frame(chance: random.Random, width: int) -> list[Beat]:
    size = chance.choice([1, width - 1, width, width + 1, 3 * width, chance.randint(1, 20 * width)])
    left = max(size, 1)
    keeps = []
    while left > 0:
        keeps.append((1 << min(left, width)) - 1)
        left -= width
    if chance.random() < 0.3:
        at = chance.randrange(len(keeps))
        hole = keeps[at] ^ 1 << chance.randrange(width)
        keeps[at] = chance.choice([0, 0, hole, chance.getrandbits(width)])
    if chance.random() < 0.1:
        keeps.append(0)
    ends = [at == len(keeps) - 1 for at in range(len(keeps))]
    return [
        Beat(chance.getrandbits(8 * width), keep, last)
        for keep, last in zip(keeps, ends, strict=True)
    ]


def is_malformed(frame: list[Beat], width: int) -> bool:
    """A byte in the middle is not kept, or no byte of the last beat is."""
    *before, last = frame
    whole = (1 << width) - 1
    dense = last.keep in {(1 << size) - 1 for size in range(1, width + 1)}
    return not dense or any(beat.keep != whole for beat in before)


def frames_of(beats: list[Beat]) -> list[list[Beat]]:
    """Cut behind each last beat."""
    frames: list[list[Beat]] = [[]]
    for beat in beats:
        frames[-1].append(beat)
        if beat.last:
            frames.append([])
    assert frames.pop() == []
    return frames
