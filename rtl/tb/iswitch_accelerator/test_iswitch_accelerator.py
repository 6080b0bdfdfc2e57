"""`iswitch_accelerator` and the software switch: every datagram, every counter. And its speed."""

from __future__ import annotations

import os
import random

import cocotb
import pytest
from bench import simulate
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer
from iswitch_traffic import (
    COUNTERS,
    EPOCH,
    Datagram,
    Golden,
    Traffic,
    check_counters,
    f32,
    floats,
    join,
    needs_engine,
    seg,
)


@needs_engine
@pytest.mark.parametrize(
    ("ports", "slots", "lanes", "beats", "cycles"),
    [
        *((4, 4, 8, 4, 3000), (2, 1, 8, 2, 1500), (3, 2, 16, 3, 1500)),
        pytest.param(8, 8, 8, 5, 1500, marks=pytest.mark.long),
    ],
)
def test_accelerator(ports: int, slots: int, lanes: int, beats: int, cycles: int) -> None:
    parameters = {"PORTS": ports, "SLOTS": slots, "LANES": lanes, "BEATS": beats}
    simulate("iswitch_accelerator", "test_iswitch_accelerator", parameters, cycles=cycles)


class Bench:
    """Offers datagrams, takes what leaves."""

    def __init__(self, dut, chance: random.Random) -> None:
        self.dut, self.chance = dut, chance
        self.bytes = len(dut.s_axis_tkeep)
        self.ports = len(dut.m_axis_tuser) - 2
        self.cycle = 0
        self.stalls = 0
        self.received: list[Datagram] = []
        self.left_at: list[tuple[int, int]] = []

    async def begin(self) -> None:
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start(start_high=False))
        dut.rst.value, dut.epoch.value, dut.proofs.value = 1, EPOCH, 0
        for name in ("s_axis_tvalid", "m_axis_tready", "s_axil_awvalid", "s_axil_wvalid"):
            getattr(dut, name).value = 0
        for name in ("s_axil_bready", "s_axil_arvalid", "s_axil_rready"):
            getattr(dut, name).value = 0
        await self.tick()
        await self.tick()
        dut.rst.value = 0

    async def tick(self) -> None:
        await RisingEdge(self.dut.clk)
        await Timer(1, unit="ps")
        self.cycle += 1

    def beats(self, datagrams: list[Datagram]) -> list[tuple[bytes, bool, int]]:
        port = (self.ports - 1).bit_length()
        beats = []
        for datagram in datagrams:
            user = datagram.marked << port + 1 | datagram.control << port
            user |= datagram.ports.bit_length() - 1
            body = datagram.body
            for at in range(0, len(body), self.bytes):
                piece = body[at : at + self.bytes]
                beats.append((piece, at + self.bytes >= len(body), user))
        return beats

    async def exchange(
        self, datagrams: list[Datagram], expected: int, valid_share=1.0, ready_share=1.0
    ) -> None:
        """Send all; return when `expected` more have come and nothing else does."""
        dut, chance = self.dut, self.chance
        beats = self.beats(datagrams)
        offered, partial, quiet = 0, b"", 0
        began, first_of_this = self.cycle, 0
        expected += len(self.received)
        waiting = None
        holding = False
        while offered < len(beats) or len(self.received) < expected or quiet < 200:
            assert self.cycle - began < 60 * (len(beats) + 100), "the accelerator stands still"
            done = offered >= len(beats) and len(self.received) >= expected
            quiet = quiet + 1 if done else 0
            valid = offered < len(beats) and (holding or chance.random() < valid_share)
            ready = chance.random() < ready_share
            dut.s_axis_tvalid.value, dut.m_axis_tready.value = valid, ready
            if valid and not holding:
                piece, last, user = beats[offered]
                dut.s_axis_tdata.value = int.from_bytes(piece, "little")
                dut.s_axis_tkeep.value = (1 << len(piece)) - 1
                dut.s_axis_tlast.value, dut.s_axis_tuser.value = last, user
            await Timer(1, unit="ns")
            taken = valid and dut.s_axis_tready.value == 1
            self.stalls += valid and not taken
            offered += taken
            holding = valid and not taken
            now = None
            if dut.m_axis_tvalid.value == 1:
                now = (
                    dut.m_axis_tdata.value.to_unsigned(),
                    dut.m_axis_tkeep.value.to_unsigned(),
                    int(dut.m_axis_tlast.value),
                    dut.m_axis_tuser.value.to_unsigned(),
                )
            assert waiting is None or now == waiting, "a beat that waits must not change"
            waiting = None if ready else now
            if ready and now is not None:
                data, keep, last, user = now
                size = keep.bit_length()
                assert keep == (1 << size) - 1
                if not partial:
                    first_of_this = self.cycle
                partial += data.to_bytes(self.bytes, "little")[:size]
                if last:
                    ports = user & (1 << self.ports) - 1
                    control = bool(user >> self.ports & 1)
                    marked = bool(user >> self.ports + 1)
                    self.received.append(Datagram(partial, ports, control, marked))
                    self.left_at.append((first_of_this, self.cycle))
                    partial = b""
                else:
                    assert size == self.bytes
            await self.tick()
        dut.s_axis_tvalid.value = 0

    async def counters(self) -> dict[str, int]:
        numbers = {}
        for place, name in enumerate(COUNTERS):
            low = await self.read(0x10 + 8 * place)
            numbers[name] = low | await self.read(0x14 + 8 * place) << 32
        assert await self.read(0x0C) == len(COUNTERS)
        return numbers

    async def read(self, address: int) -> int:
        dut = self.dut
        dut.s_axil_araddr.value, dut.s_axil_arvalid.value, dut.s_axil_rready.value = address, 1, 1
        await self.tick()
        dut.s_axil_arvalid.value = 0
        assert dut.s_axil_rvalid.value == 1
        assert dut.s_axil_rresp.value == 0
        word = dut.s_axil_rdata.value.to_unsigned()
        await self.tick()
        return word


def most_floats(dut) -> int:
    beats = int(os.environ["BENCH_BEATS"])
    return beats * len(dut.s_axis_tkeep) // 4 - 2


@cocotb.test()
async def every_datagram_is_that_of_the_software(dut) -> None:
    chance = random.Random(19)
    slots, beats = int(os.environ["BENCH_SLOTS"]), int(os.environ["BENCH_BEATS"])
    bench = Bench(dut, chance)
    golden = Golden(slots, EPOCH)
    # A worker of `vectors` above 1 trains asynchronously (iSwitch §4.1).
    traffic = Traffic(chance, bench.ports, slots, bench.ports, most_floats(dut), golden)
    await bench.begin()
    sent = []
    count = int(os.environ["BENCH_CYCLES"])
    for valid_share, ready_share in ((1.0, 1.0), (0.6, 1.0), (1.0, 0.5), (0.7, 0.7)):
        part = []
        done = len(golden.sent)
        for _ in range(count // 4):
            part.append(traffic.datagram())
            golden.take(part[-1], beats * bench.bytes)
        sent += part
        await bench.exchange(part, len(golden.sent) - done, valid_share, ready_share)
    compare(bench.received, golden.sent)
    numbers = await bench.counters()
    check_counters(numbers, golden.report(), len(sent))
    if count >= 3000:
        missing = [name for name in COUNTERS if numbers[name] == 0]
        assert not missing, f"the traffic had none of {missing}"


def compare(received: list[Datagram], expected: list[Datagram]) -> None:
    for number, (ours, theirs) in enumerate(zip(received, expected, strict=False)):
        assert (ours.ports, ours.control, ours.marked) == (
            theirs.ports,
            theirs.control,
            theirs.marked,
        ), number
        if ours.control:
            assert ours.body == theirs.body, number
        else:
            assert ours.body[:8] == theirs.body[:8], (number, ours.body[:8], theirs.body[:8])
            assert f32(ours.body[8:]) == f32(theirs.body[8:]), number
    assert len(received) == len(expected)


@cocotb.test()
async def one_beat_a_cycle(dut) -> None:
    """Packets of all workers for one sum, back to back: the input never waits."""
    chance = random.Random(3)
    slots = int(os.environ["BENCH_SLOTS"])
    bench = Bench(dut, chance)
    longest = most_floats(dut)
    for per_packet in (bench.bytes // 4, longest):
        await bench.begin()
        bench.received, bench.left_at, bench.stalls = [], [], 0
        golden = Golden(slots, EPOCH)
        everyone = [
            Datagram(join(7, port, bench.ports, packet_floats=longest), 1 << port, True, False)
            for port in range(bench.ports)
        ]
        for datagram in everyone:
            golden.take(datagram, 1 << 16)
        await bench.exchange(everyone, len(everyone))
        work = [
            Datagram(seg(EPOCH, index) + floats(chance, per_packet), 1 << port, False, False)
            for index in range(60)
            for port in range(bench.ports)
        ]
        for datagram in work:
            golden.take(datagram, 1 << 16)
        bench.stalls = 0
        await bench.exchange(work, 60)
        compare(bench.received, golden.sent)
        assert bench.stalls == 0, f"{bench.stalls} of {len(bench.beats(work))} beats waited"
