"""`udp_strip` against a plain model: every payload, its sender, and the fate of every frame."""

from __future__ import annotations

import os
import random
from collections import Counter, deque

import cocotb
import pytest
from bench import simulate
from datagrams import FATES, Datagram, fate, payload, some_address, some_datagram, spoilt
from streams import Frame, Sender, Taker, Watcher, beats, begin, run

USER = 3


@pytest.mark.parametrize(("data", "depth"), [(256, 16), (512, 8), (1024, 4)])
def test_udp_strip(data: int, depth: int) -> None:
    parameters = {"DATA": data, "USER": USER, "DEPTH": depth}
    simulate("udp_strip", "test_udp_strip", parameters, cycles=600)


class Bench:
    """A sender, a taker, and the fates that were seen."""

    def __init__(self, dut, chance: random.Random) -> None:
        self.dut = dut
        self.width = len(dut.s_axis_tkeep)
        self.longest = int(os.environ["BENCH_DEPTH"]) * self.width
        self.sender = Sender(dut, "s_axis", chance)
        self.taker = Taker(dut, "m_axis", chance)
        self.fates: list[str] = []

    def watch(self) -> None:
        bits = self.dut.fate.value.to_unsigned()
        assert bits.bit_count() <= 1, "a frame has one fate"
        if bits:
            self.fates.append(FATES[bits.bit_length() - 1])

    async def run(self) -> int:
        parts = [self.sender, self.taker, Watcher(self.watch)]
        return await run(self.dut, parts, most=100_000)

    def check(self, frames: list[Frame], wrong: set[int]) -> None:
        """Frames with these numbers have a hole."""
        expected = [
            "framing" if at in wrong else fate(frame.body, self.longest)
            for at, frame in enumerate(frames)
        ]
        assert self.fates == expected
        passed = [frame for frame, its in zip(frames, expected, strict=True) if its == "passed"]
        assert self.taker.frames == [Frame(payload(f.body), about(f)) for f in passed]


def about(frame: Frame) -> int:
    """tuser of its payload."""
    body = frame.body
    return int.from_bytes(body[26:30] + body[34:36] + body[15:16], "big") << USER | frame.user


def with_hole(chance: random.Random, frame: Frame, width: int) -> deque:
    """The beats of a frame, one of which has a mistake in tkeep."""
    made = deque(beats(frame, width))
    at = chance.randrange(len(made))
    beat = made[at]
    # A byte that is kept, and is not the last one of its frame.
    missing = [bit for bit in range(width) if beat.keep >> bit & 1][: None if not beat.last else -1]
    keep = beat.keep ^ 1 << chance.choice(missing) if missing else 0
    made[at] = beat.__class__(beat.data, keep, beat.last, beat.user)
    return made


@cocotb.test()
async def every_frame_has_the_fate_and_the_payload_of_the_model(dut) -> None:
    chance = random.Random(23)
    await begin(dut, ["s_axis_tvalid", "m_axis_tready"])
    seen: Counter[str] = Counter()
    for valid, ready in ((1.0, 1.0), (0.5, 1.0), (1.0, 0.3), (0.7, 0.7)):
        bench = Bench(dut, chance)
        bench.sender.share, bench.taker.share = valid, ready
        frames, wrong = [], set()
        for number in range(int(os.environ["BENCH_CYCLES"]) // 4):
            good = some_datagram(chance, bench.longest + 40)
            body = good.frame() if chance.random() < 0.6 else spoilt(chance, good)
            frames.append(Frame(body, chance.getrandbits(USER)))
            if chance.random() < 0.08:
                wrong.add(number)
                bench.sender.waiting.extend(with_hole(chance, frames[-1], bench.width))
            else:
                bench.sender.send([frames[-1]])
        await bench.run()
        bench.check(frames, wrong)
        seen.update(bench.fates)
    assert set(seen) == set(FATES), "the traffic had frames of each fate"


@cocotb.test()
async def a_beat_comes_in_every_cycle(dut) -> None:
    """Frames of any size back to back, and a sink that is ready: the input never waits."""
    chance = random.Random(5)
    await begin(dut, ["s_axis_tvalid", "m_axis_tready"])
    ends = some_address(chance), some_address(chance)
    for size in (0, 18, 22, 23, 54, 55, 87, 100, 150):
        bench = Bench(dut, chance)
        frames = [Frame(Datagram(*ends, 0x8C, chance.randbytes(size)).frame()) for _ in range(40)]
        bench.sender.send(frames)
        await bench.run()
        bench.check(frames, set())
        came = bench.sender.taken_in
        assert came == list(range(came[0], came[0] + len(came)))
        assert len(came) == 40 * -(-len(frames[0].body) // bench.width)


@cocotb.test()
async def a_frame_beyond_all_lengths_is_not_mistaken_for_a_short_one(dut) -> None:
    """Longer than 2^18 bytes; its count of bytes must not begin anew."""
    chance = random.Random(5)
    await begin(dut, ["s_axis_tvalid", "m_axis_tready"])
    bench = Bench(dut, chance)
    good = Datagram(some_address(chance), some_address(chance), 0x8C, chance.randbytes(30))
    frames = [Frame(good.frame() + bytes((1 << 18) - 60)), Frame(good.frame())]
    bench.sender.send(frames)
    await bench.run()
    bench.check(frames, set())
