"""`iswitch_input_arbiter`: tagged packets to the accelerator, all others untouched, with pauses."""

from __future__ import annotations

import os
import random
from collections import deque

import cocotb
import pytest
from bench import simulate
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer

DATA, CONTROL = 0x23, 0x2B


@pytest.mark.parametrize(("ports", "lanes"), [(4, 8), (1, 8), (3, 16)])
def test_input_arbiter(ports: int, lanes: int) -> None:
    parameters = {"PORTS": ports, "LANES": lanes, "USER": 8}
    simulate("iswitch_input_arbiter", "test_iswitch_input_arbiter", parameters, cycles=300)


def frame(chance: random.Random) -> bytes:
    """A packet of iSwitch, or one that differs from it in a field, or anything."""
    body = bytearray(chance.randbytes(chance.choice([10, 20, 24, 32, 33, 60, 64, 65, 100, 200])))
    body[12:14] = b"\x08\x00" if chance.random() < 0.9 else b"\x81\x00"
    if len(body) >= 24:
        body[14] = 0x45 if chance.random() < 0.95 else 0x46
        dscp = chance.choice([DATA, DATA, CONTROL, CONTROL, 0, 0x24])
        body[15] = dscp << 2 | chance.randrange(4)
        body[20:22] = b"\x40\x00" if chance.random() < 0.9 else b"\x20\x07"
        body[23] = 17 if chance.random() < 0.9 else 6
    return bytes(body)


def is_tagged(body: bytes) -> bool:
    return (
        len(body) >= 24
        and body[12:15] == b"\x08\x00\x45"
        and body[15] >> 2 in (DATA, CONTROL)
        and (body[20] & 0x3F, body[21], body[23]) == (0, 0, 17)
    )


class Output:
    """Takes frames from an output; checks that a waiting beat does not change."""

    def __init__(self, dut, name: str) -> None:
        self.names = [f"m_{name}_{part}" for part in ("tdata", "tkeep", "tlast", "tuser")]
        self.dut, self.name = dut, name
        self.frames: list[tuple[bytes, int]] = []
        self.partial, self.waiting = b"", None

    def ready(self, ready: bool) -> None:
        getattr(self.dut, f"m_{self.name}_tready").value = ready

    def take(self, ready: bool) -> None:
        now = None
        if getattr(self.dut, f"m_{self.name}_tvalid").value == 1:
            now = tuple(getattr(self.dut, name).value.to_unsigned() for name in self.names[:2])
            now += tuple(int(getattr(self.dut, name).value) for name in self.names[2:])
        assert self.waiting is None or now == self.waiting
        self.waiting = None if ready else now
        if ready and now is not None:
            data, keep, last, user = now
            self.partial += data.to_bytes(64, "little")[: keep.bit_length()]
            if last:
                self.frames.append((self.partial, user))
                self.partial = b""


def offer(dut, size: int, beats: dict[int, tuple[bytes, bool, int]]) -> None:
    """Put the next beat of each queue on the pins."""
    data = keep = last = user = 0
    for q, (piece, ends, number) in beats.items():
        data |= int.from_bytes(piece, "little") << 8 * size * q
        keep |= (1 << len(piece)) - 1 << size * q
        last |= ends << q
        user |= number << 8 * q
    dut.s_axis_tvalid.value = sum(1 << q for q in beats)
    dut.s_axis_tdata.value, dut.s_axis_tkeep.value = data, keep
    dut.s_axis_tlast.value, dut.s_axis_tuser.value = last, user


@cocotb.test()
async def each_frame_goes_where_its_tos_says(dut) -> None:
    chance = random.Random(11)
    ports, lanes = int(os.environ["BENCH_PORTS"]), int(os.environ["BENCH_LANES"])
    size, queues = 4 * lanes, ports + 1
    count = int(os.environ["BENCH_CYCLES"])
    sent = [[frame(chance) for _ in range(count // queues)] for _ in range(queues)]
    beats = [
        deque(
            (body[at : at + size], at + size >= len(body), number % 256)
            for number, body in enumerate(frames)
            for at in range(0, len(body), size)
        )
        for frames in sent
    ]
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start(start_high=False))
    dut.rst.value, dut.s_axis_tvalid.value = 1, 0
    outputs = {name: Output(dut, name) for name in ("axis", "tagged")}
    for output in outputs.values():
        output.ready(ready=False)
    await RisingEdge(dut.clk)
    await Timer(1, unit="ps")
    dut.rst.value = 0

    valid = [False] * queues
    blocked_until = 0
    for cycle in range(100_000):
        if not any(beats) and not any(output.waiting for output in outputs.values()):
            break
        valid = [bool(beats[q]) and (valid[q] or chance.random() < 0.7) for q in range(queues)]
        offer(dut, size, {q: beats[q][0] for q in range(queues) if valid[q]})
        # Now and then the accelerator takes nothing for a long time.
        if chance.random() < 0.005:
            blocked_until = cycle + 60
        ready = {"axis": chance.random() < 0.6, "tagged": cycle >= blocked_until}
        for name, output in outputs.items():
            output.ready(ready[name])
        await Timer(1, unit="ns")
        taken = dut.s_axis_tready.value.to_unsigned()
        for q in range(queues):
            if valid[q] and taken >> q & 1:
                beats[q].popleft()
                valid[q] = False
        for name, output in outputs.items():
            output.take(ready[name])
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
    for _ in range(10):
        for output in outputs.values():
            output.ready(ready=True)
        dut.s_axis_tvalid.value = 0
        await Timer(1, unit="ns")
        for output in outputs.values():
            output.take(ready=True)
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")

    check(sent, outputs)


@cocotb.test()
async def results_pass_while_the_accelerator_takes_nothing(dut) -> None:
    """Otherwise its output would wait for its input, and its input for its output."""
    ports, size = int(os.environ["BENCH_PORTS"]), 4 * int(os.environ["BENCH_LANES"])
    body = bytes(12) + b"\x08\x00\x45\x8c" + bytes(7) + b"\x11" + bytes(size - 24)
    assert is_tagged(body)
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start(start_high=False))
    dut.rst.value, dut.s_axis_tvalid.value = 1, 0
    await RisingEdge(dut.clk)
    await Timer(1, unit="ps")
    dut.rst.value, dut.m_axis_tready.value, dut.m_tagged_tready.value = 0, 1, 0
    one, queues = int.from_bytes(body, "little"), ports + 1
    dut.s_axis_tdata.value = sum(one << 8 * size * q for q in range(queues))
    dut.s_axis_tkeep.value = (1 << size * queues) - 1
    dut.s_axis_tlast.value = dut.s_axis_tvalid.value = (1 << queues) - 1
    left = 0
    for _ in range(50):
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
        left += dut.m_axis_tvalid.value == 1
    assert dut.m_tagged_tvalid.value == 1
    assert left >= 49, "a result each cycle"


def check(sent: list[list[bytes]], outputs: dict[str, Output]) -> None:
    """Each queue's frames arrive in their order, where they belong, with the bytes they had."""
    results = len(sent) - 1
    bits = results.bit_length()
    for q, frames in enumerate(sent):
        tagged = [(body, n) for n, body in enumerate(frames) if q != results and is_tagged(body)]
        came = [
            (body, user >> bits)
            for body, user in outputs["tagged"].frames
            if user & (1 << bits) - 1 == q
        ]
        assert came == [
            (body, n % 256 << 2 | (body[15] & 3 == 3) << 1 | (body[15] >> 2 == CONTROL))
            for body, n in tagged
        ]
        regular = [
            (body, n % 256) for n, body in enumerate(frames) if q == results or not is_tagged(body)
        ]
        remaining = iter(outputs["axis"].frames)
        assert all(one in remaining for one in regular), "in order"
    total = sum(len(frames) for frames in sent)
    assert total == len(outputs["axis"].frames) + len(outputs["tagged"].frames)
    assert len(outputs["tagged"].frames) > total // 10 or results == 1
