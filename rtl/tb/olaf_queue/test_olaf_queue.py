"""`olaf_queue` against its reference model: random frames, pauses at both ends, and counters."""

from __future__ import annotations

import os
import random

import cocotb
import pytest
from bench import simulate
from frames import some_frame
from queue_bench import COUNTERS, Bench

THRESHOLD = 2.0


@pytest.mark.parametrize(
    ("slots", "frame", "block", "gate"), [(8, 256, 0, 0), (3, 200, 0, 1), (2, 700, 1, 1)]
)
def test_queue(slots: int, frame: int, block: int, gate: int) -> None:
    parameters = {"SLOTS": slots, "FRAME": frame, "BLOCK": block, "GATE": gate}
    simulate("olaf_queue", "test_olaf_queue", parameters, cycles=2000)


# The narrower the beats are, the fewer answers get through. 128 lies between 64 and 256.
@pytest.mark.parametrize(
    ("data", "frames"),
    [(64, 600), pytest.param(128, 400, marks=pytest.mark.long), (256, 400), (1024, 400)],
)
def test_queue_of_another_width(data: int, frames: int) -> None:
    parameters = {"SLOTS": 3, "FRAME": 200, "BLOCK": 0, "GATE": 1, "DATA": data}
    simulate("olaf_queue", "test_olaf_queue", parameters, cycles=frames)


@cocotb.test()
async def every_frame_is_what_the_twin_says(dut) -> None:
    chance = random.Random(17)
    longest = int(os.environ["BENCH_FRAME"])
    gate = THRESHOLD if int(os.environ["BENCH_GATE"]) else None
    bench = Bench(dut, gate)
    await bench.start()
    frames = int(os.environ["BENCH_CYCLES"])
    mode = (1.0, 1.0, 4, 0.1, 0.1)
    for number in range(frames):
        if number % 60 == 0:
            valid, ready = (
                chance.choice([0.3, 1.0, 1.0]),
                chance.choice([0.03, 0.03, 0.1, 0.3, 1.0]),
            )
            flows = chance.choice([1, 2, 2, 4, 12])
            mode = (
                valid,
                ready,
                flows,
                chance.choice([0, 0, 0.05, 0.5]),
                chance.choice([0, 0.1, 0.4]),
            )
        valid, ready, flows, wild, strange = mode
        frame = some_frame(chance, longest, flows, wild, strange, width=bench.width)
        beats = frame.beats
        deadline = bench.cycle + 20_000
        while beats:
            assert bench.cycle < deadline, "the queue takes nothing"
            offers = chance.random() < valid
            if await bench.step(beats[0] if offers else None, chance.random() < ready):
                beats.pop(0)
        bench.offered(frame)
    for _ in range(3000):
        await bench.step(None, True)
    assert not bench.undecided
    assert not bench.departing
    assert not bench.reference.entries
    bench.counts["no_room"] += len(bench.others)
    told = dict(zip(COUNTERS, await bench.counters(), strict=True))
    assert told == {name: bench.counts[name] for name in told}
    missing = {name for name in told if not bench.counts[name]} - {"no_room"}
    never = set() if gate is not None else {"filtered", "contributors filtered"}
    if frames < 2000:
        # A short run has few merges of numbers that do not fit each other.
        never |= {"overflow", "wrong_size"}
    assert missing <= never, missing
