"""The rate and the latency of `olaf_queue`.

It takes a beat in every cycle, also where short updates of one cluster follow each other directly.
"""

from __future__ import annotations

import random
from dataclasses import replace

import cocotb
import numpy as np
from bench import simulate
from frames import Frame
from queue_bench import Bench
from queue_reference import Update


def test_rate() -> None:
    simulate("olaf_queue", "test_rate", {"SLOTS": 8, "FRAME": 1500, "BLOCK": 1, "GATE": 1})


def update(chance: random.Random, beats: int, cluster: int, number: int) -> Frame:
    lanes = np.array([chance.uniform(-9, 9) for _ in range(16 * beats - 24)], np.float32)
    weight, reward = chance.uniform(1, 2), chance.uniform(-5, 5)
    made = Update(
        cluster=cluster, worker=number % 5, weight=weight, reward=reward, hops=1, lanes=lanes
    )
    made = replace(made, generated=(number, number + chance.randrange(9)))
    return Frame("update", made.emit(), made)


async def send(bench: Bench, frames: list[Frame], ready: float, chance: random.Random) -> None:
    """Without a pause: the queue must take a beat in every cycle."""
    for frame in frames:
        for beat in frame.beats:
            taken = await bench.step(beat, chance.random() < ready)
            assert taken, f"cycle {bench.cycle}: the queue was not ready"
        bench.offered(frame)


async def drain(bench: Bench) -> None:
    for _ in range(600):
        await bench.step(None, True)
    assert not bench.undecided
    assert not bench.departing
    assert not bench.reference.entries


async def begin(dut, clock: bool, gate: float | None = None) -> Bench:
    bench = Bench(dut, gate)
    await (bench.start() if clock else bench.reset())
    # The store says that it has room a cycle after the reset.
    await bench.step(None, True)
    await bench.step(None, True)
    return bench


# Cycles from the first beat in to the first beat out, without one for each beat.
LATENCY = 10


@cocotb.test()
async def short_updates_of_one_cluster_merge_at_a_beat_a_cycle(dut) -> None:
    chance = random.Random(5)
    for beats in (2, 3, 4, 5, None):
        for ready in (0.0, 0.5, 1.0):
            bench = await begin(dut, clock=(beats, ready) == (2, 0.0))
            sizes = [beats or chance.choice([2, 3, 4, 5]) for _ in range(60)]
            frames = [update(chance, size, 1, at) for at, size in enumerate(sizes)]
            before = bench.cycle
            await send(bench, frames, ready, chance)
            assert bench.cycle - before == sum(sizes)
            await drain(bench)
            if beats and not ready:
                # The first is in the locked head, the second opened an entry.
                assert bench.counts["merged"] > 50


@cocotb.test()
async def updates_of_many_clusters_leave_as_fast_as_they_come(dut) -> None:
    chance = random.Random(6)
    for beats in (2, 3, 23):
        bench = await begin(dut, clock=beats == 2)
        frames = [update(chance, beats, at, at) for at in range(120 // beats)]
        await send(bench, frames, 1.0, chance)
        await drain(bench)
        assert bench.counts["appended"] == len(frames)
        assert not bench.counts["dropped"]


@cocotb.test()
async def a_frame_of_1500_bytes_leaves_at_most_twelve_cycles_after_its_last_beat(dut) -> None:
    bench = await begin(dut, clock=True)
    chance = random.Random(7)
    lanes = np.ones((1500 - 96) // 4, np.float32)
    frame = Frame("update", Update(lanes=lanes).emit(), Update(lanes=lanes))
    assert len(frame.body) == 1500
    begins = bench.cycle
    await send(bench, [frame], 1.0, chance)
    while dut.m_axis_tvalid.value != 1:
        await bench.step(None, True)
    # From the cycle in which the first beat is taken to the one in which the first beat is offered.
    latency = bench.cycle - begins
    assert latency == len(frame.beats) + LATENCY
    await drain(bench)


async def cycles_of_each(bench: Bench, frames: list[Frame]) -> float:
    """Cycles from one decision to the next, the sink stopped."""
    beats = [(beat, frame) for frame in frames for beat in frame.beats]
    decided: list[int] = []
    while len(decided) < len(frames):
        waiting = len(bench.undecided)
        if beats:
            beat, frame = beats[0]
            if await bench.step(beat, False):
                beats.pop(0)
                if beat[2]:
                    bench.offered(frame)
                    waiting += 1
        else:
            await bench.step(None, False)
        decided += [bench.cycle] * (waiting - len(bench.undecided))
    # The first ones open entries and find them unmerged.
    return (decided[-1] - decided[-11]) / 10


@cocotb.test()
async def the_gate_and_numbers_near_the_largest_take_their_time(dut) -> None:
    chance = random.Random(8)
    for beats in (2, 23):
        frames = [update(chance, beats, 1, at) for at in range(20)]
        bench = await begin(dut, clock=beats == 2, gate=100.0)
        gated = await cycles_of_each(bench, frames)
        await drain(bench)
        updates = [frame.update for frame in frames if frame.update]
        large = [replace(each, lanes=each.lanes * np.float32(1e34)) for each in updates]
        bench = await begin(dut, clock=False)
        tried = await cycles_of_each(bench, [Frame("update", each.emit(), each) for each in large])
        await drain(bench)
        assert (gated, tried) == SLOW[beats]


# Cycles of an update by its number of beats, with the gate on, and with a trial before it is added.
SLOW = {2: (23, 41), 23: (28, 82)}
