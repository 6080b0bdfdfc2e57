"""`axis_narrow`: wide beats leave in parts, with pauses on both sides, and at full rate."""

from __future__ import annotations

import os
import random

import cocotb
import pytest
from axis import Beat, begin, frames_of, is_malformed, send, some_frames
from bench import simulate


@pytest.mark.parametrize(("wide", "narrow"), [(512, 64), (512, 256), (1024, 512)])
def test_narrow(wide: int, narrow: int) -> None:
    simulate("axis_narrow", "test_axis_narrow", {"WIDE": wide, "NARROW": narrow})


WIDTH = int(os.environ.get("BENCH_NARROW", "64")) // 8
RATIO = int(os.environ.get("BENCH_WIDE", "512")) // 8 // WIDTH


def narrowed(frame: list[Beat]) -> list[Beat]:
    """What leaves: each beat in RATIO ones, without those behind the last byte of the frame."""
    whole, byte = (1 << 8 * WIDTH) - 1, (1 << WIDTH) - 1
    parts = [
        (beat.data >> 8 * WIDTH * place & whole, beat.keep >> WIDTH * place & byte)
        for beat in frame
        for place in range(RATIO)
    ]
    # One of the last wide beat always leaves.
    while len(parts) > RATIO * (len(frame) - 1) + 1 and not parts[-1][1]:
        parts.pop()
    return [Beat(*part, at == len(parts) - 1) for at, part in enumerate(parts)]


@cocotb.test()
async def every_narrow_beat_is_a_part_of_its_wide_one(dut) -> None:
    chance = random.Random(RATIO)
    await begin(dut)
    for valid, ready in ((1.0, 1.0), (0.2, 1.0), (1.0, 0.4), (0.6, 0.5)):
        frames = some_frames(chance, WIDTH * RATIO, 25)
        beats = [beat for frame in frames for beat in frame]
        expected = [beat for frame in frames for beat in narrowed(frame)]
        passage = await send(dut, beats, len(expected), chance, valid=valid, ready=ready)
        assert passage.left == expected
        wrong = [is_malformed(frame, WIDTH * RATIO) for frame in frames]
        assert [is_malformed(frame, WIDTH) for frame in frames_of(passage.left)] == wrong
        assert any(wrong)
        assert not all(wrong)
        if valid == 1.0 == ready:
            # The first cycle is that in which the first wide beat comes.
            assert passage.left_in == list(range(1, len(expected) + 1))
