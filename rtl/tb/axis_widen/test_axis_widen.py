"""`axis_widen`: narrow beats come together, with pauses on both sides, and at full rate."""

from __future__ import annotations

import os
import random

import cocotb
import pytest
from axis import Beat, begin, frames_of, is_malformed, send, some_frames
from bench import simulate


@pytest.mark.parametrize(("narrow", "wide"), [(64, 512), (256, 512), (512, 1024)])
def test_widen(narrow: int, wide: int) -> None:
    simulate("axis_widen", "test_axis_widen", {"NARROW": narrow, "WIDE": wide})


WIDTH = int(os.environ.get("BENCH_NARROW", "64")) // 8
RATIO = int(os.environ.get("BENCH_WIDE", "512")) // 8 // WIDTH


def widened(frame: list[Beat]) -> list[Beat]:
    """What leaves: RATIO beats in one; its first byte is not kept if one of them is wrong."""
    made = []
    for at in range(0, len(frame), RATIO):
        group = frame[at : at + RATIO]
        data = sum(beat.data << 8 * WIDTH * place for place, beat in enumerate(group))
        keep = sum(beat.keep << WIDTH * place for place, beat in enumerate(group))
        if any(
            is_malformed([beat], WIDTH) or (not beat.last and beat.keep + 1 != 1 << WIDTH)
            for beat in group
        ):
            keep &= ~1
        made.append(Beat(data, keep, group[-1].last))
    return made


@cocotb.test()
async def every_wide_beat_is_that_of_its_narrow_ones(dut) -> None:
    chance = random.Random(RATIO)
    await begin(dut)
    for valid, ready in ((1.0, 1.0), (0.4, 1.0), (1.0, 0.2), (0.6, 0.5)):
        frames = some_frames(chance, WIDTH, 40)
        beats = [beat for frame in frames for beat in frame]
        expected = [beat for frame in frames for beat in widened(frame)]
        passage = await send(dut, beats, len(expected), chance, valid=valid, ready=ready)
        assert passage.left == expected
        wrong = [is_malformed(frame, WIDTH) for frame in frames]
        assert [is_malformed(frame, WIDTH * RATIO) for frame in frames_of(passage.left)] == wrong
        assert any(wrong)
        assert not all(wrong)


@cocotb.test()
async def a_narrow_beat_comes_in_every_cycle(dut) -> None:
    chance = random.Random(RATIO)
    await begin(dut)
    frames = some_frames(chance, WIDTH, 40)
    beats = [beat for frame in frames for beat in frame]
    count = sum(len(widened(frame)) for frame in frames)
    passage = await send(dut, beats, count, chance, valid=1.0, ready=1.0)
    assert passage.came_in == list(range(len(beats)))
    # A cycle after the last narrow beat of each.
    ends = [at for at, beat in enumerate(beats) if beat.last or place(beats, at) == RATIO - 1]
    assert passage.left_in == [at + 1 for at in ends]


def place(beats: list[Beat], at: int) -> int:
    """Of a narrow beat in its wide one."""
    frame = next((before + 1 for before in range(at - 1, -1, -1) if beats[before].last), 0)
    return (at - frame) % RATIO
