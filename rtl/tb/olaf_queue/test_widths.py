"""The rate and the latency of `olaf_queue` with beats of another width than 512 bit.

Narrower beats come and leave in every cycle. Of wider ones the core takes 512 bit a cycle.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import cocotb
import numpy as np
import pytest
from bench import simulate
from frames import Frame
from queue_bench import Bench
from queue_reference import Update
from test_rate import begin, drain, update

WIDTH = int(os.environ.get("BENCH_DATA", "256")) // 8
CORE = 64
# Cycles from the first beat in to the first beat out, without one for each beat. Of wide beats the
# core takes two cycles each.
LATENCY = {128: 12, 256: 12, 1024: 25}


# 256 takes the same way as 128: two narrow beats, or four, are a wide one.
@pytest.mark.parametrize("data", [pytest.param(128, marks=pytest.mark.long), 256, 1024])
def test_width(data: int) -> None:
    parameters = {"SLOTS": 8, "FRAME": 1500, "BLOCK": 1, "GATE": 0, "DATA": data}
    simulate("olaf_queue", "test_widths", parameters)


async def offer(bench: Bench, frames: list[Frame], ready: float, chance: random.Random) -> int:
    """Without a pause; the cycles until the last beat was taken."""
    before = bench.cycle
    for frame in frames:
        for beat in frame.beats:
            while not await bench.step(beat, chance.random() < ready):
                assert WIDTH > CORE, f"cycle {bench.cycle}: the queue was not ready"
        bench.offered(frame)
    return bench.cycle - before


def updates(chance: random.Random, sizes: list[int], clusters: int) -> list[Frame]:
    """`sizes`: beats of 512 bit."""
    made = [update(chance, size, at % clusters, at) for at, size in enumerate(sizes)]
    return [replace(frame, width=WIDTH) for frame in made]


@cocotb.test()
async def short_updates_of_one_cluster_merge_at_full_rate(dut) -> None:
    chance = random.Random(5)
    for ready in (0.0, 1.0):
        bench = await begin(dut, clock=not ready)
        sizes = [chance.choice([2, 3, 4, 5]) for _ in range(60)]
        frames = updates(chance, sizes, 1)
        cycles = await offer(bench, frames, ready, chance)
        await drain(bench)
        assert not bench.counts["dropped"]
        if WIDTH < CORE:
            assert cycles == sum(len(frame.beats) for frame in frames)
        else:
            assert cycles <= sum(sizes)


@cocotb.test()
async def updates_of_many_clusters_leave_as_fast_as_they_come(dut) -> None:
    chance = random.Random(6)
    for size in (2, 23):
        bench = await begin(dut, clock=size == 2)
        frames = updates(chance, [size] * (120 // size), 120)
        await offer(bench, frames, 1.0, chance)
        await drain(bench)
        assert bench.counts["appended"] == len(frames)
        assert not bench.counts["dropped"]
        took = bench.left_in[-1] - bench.left_in[0] + 1
        if WIDTH < CORE:
            assert took == len(bench.left_in) == sum(len(frame.beats) for frame in frames)
        else:
            assert took <= size * len(frames)


@cocotb.test()
async def the_latency_of_1500_bytes(dut) -> None:
    bench = await begin(dut, clock=True)
    lanes = np.ones((1500 - 96) // 4, np.float32)
    frame = Frame("update", Update(lanes=lanes).emit(), Update(lanes=lanes), width=WIDTH)
    assert len(frame.body) == 1500
    begins = bench.cycle
    await offer(bench, [frame], 1.0, random.Random(7))
    while dut.m_axis_tvalid.value != 1:
        await bench.step(None, True)
    # From the cycle in which the first beat is taken to the one in which the first beat is offered.
    assert bench.cycle - begins == len(frame.beats) + LATENCY[8 * WIDTH]
    await drain(bench)
