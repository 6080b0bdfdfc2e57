"""Drives `olaf_queue` cycle by cycle, and follows it with the reference model."""

from __future__ import annotations

import os
import struct
from collections import Counter

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer
from frames import Frame
from queue_reference import Reference

SESSION = 0xA1B2C3D4
STATUS = struct.Struct(">HHHBxI")
STATUS_AT = 72
ACTIVE, ROUND_US = 5, 700
FATES = ("appended", "merged", "replaced", "filtered", "dropped", "rejected")
REASONS = ("not_finite", "wrong_size", "overflow")
COUNTERS = (
    *("framing", "too_long", "refused", "passed", "no_room", "stamped"),
    *FATES[:5],
    *REASONS,
    "departed",
    *(f"contributors {fate}" for fate in FATES),
    *("contributors displaced", "contributors departed"),
)


class Bench:
    """Drives the queue cycle by cycle, and follows it with the reference model."""

    def __init__(self, dut, gate: float | None) -> None:
        self.dut = dut
        self.slots = int(os.environ["BENCH_SLOTS"])
        self.width = int(os.environ.get("BENCH_DATA", "512")) // 8
        self.reference = Reference(self.slots, gate, SESSION)
        self.undecided: list[Frame] = []
        self.departing: list[bytes] = []
        self.others: list[bytes] = []
        self.counts: Counter[str] = Counter()
        self.partial = b""
        self.cycle = 0
        self.waiting: tuple | None = None
        # The cycle in which each beat left.
        self.left_in: list[int] = []

    async def start(self) -> None:
        cocotb.start_soon(Clock(self.dut.clk, 4, unit="ns").start(start_high=False))
        await self.reset()

    async def reset(self) -> None:
        dut = self.dut
        for name in (
            "awvalid",
            "wvalid",
            "bready",
            "arvalid",
            "rready",
            "awaddr",
            "wdata",
            "wstrb",
        ):
            getattr(dut, f"s_axil_{name}").value = 0
        dut.s_axil_araddr.value = 0
        dut.rst.value, dut.s_axis_tvalid.value, dut.m_axis_tready.value = 1, 0, 0
        dut.session.value, dut.active_clusters.value, dut.round_us.value = SESSION, ACTIVE, ROUND_US
        dut.gate.value = self.reference.gate is not None
        [bits] = struct.unpack(">Q", struct.pack(">d", self.reference.gate or 0.0))
        dut.gate_threshold.value = bits
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
        dut.rst.value = 0

    async def step(self, beat: tuple[bytes, int, bool] | None, ready: bool) -> bool:
        """A cycle; whether the beat was taken."""
        dut = self.dut
        dut.s_axis_tvalid.value, dut.m_axis_tready.value = beat is not None, ready
        if beat:
            piece, keep, last = beat
            dut.s_axis_tdata.value = int.from_bytes(piece, "little")
            dut.s_axis_tkeep.value, dut.s_axis_tlast.value = keep, last
        await Timer(1, unit="ns")
        taken = beat is not None and dut.s_axis_tready.value == 1
        self.events()
        self.output(ready)
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
        self.cycle += 1
        return taken

    def offered(self, frame: Frame) -> None:
        """The last beat of a frame was taken."""
        if frame.kind == "update":
            self.undecided.append(frame)
        elif frame.kind == "other":
            self.others.append(frame.body)
            self.counts["stamped"] += is_answer(frame.body)
        else:
            self.counts[frame.kind] += 1

    def events(self) -> None:
        """An entry ends, the next is locked, an update is decided about."""
        dut, reference, counts = self.dut, self.reference, self.counts
        if dut.ended.value == 1:
            counts["departed"] += 1
            counts["contributors departed"] += reference.entries[0].update.contributors
            reference.end_departure()
        if dut.begun.value == 1:
            self.departing.append(reference.begin_departure())
        fate = dut.fate.value.to_unsigned()
        if fate:
            update = self.undecided.pop(0).update
            assert update
            said, displaced = reference.arrive(update)
            expected = "rejected" if said in REASONS else said
            names = [name for at, name in enumerate(FATES) if fate >> at & 1]
            assert names == [expected], f"cycle {self.cycle}: {names}, expected {said}"
            counts[said] += 1
            counts[f"contributors {expected}"] += update.contributors
            counts["contributors displaced"] += displaced

    def output(self, ready: bool) -> None:
        dut = self.dut
        valid = dut.m_axis_tvalid.value == 1
        if self.waiting is not None:
            assert valid, "an offered beat stays"
        self.waiting = None
        if not valid:
            return
        data = dut.m_axis_tdata.value
        keep, last = dut.m_axis_tkeep.value.to_unsigned(), dut.m_axis_tlast.value == 1
        if not ready:
            self.waiting = (keep, last)
            return
        self.left_in.append(self.cycle)
        size = keep.bit_length()
        assert keep == (1 << size) - 1
        self.partial += int(str(data)[-8 * size :], 2).to_bytes(size, "little")
        if last:
            self.departed(self.partial)
            self.partial = b""
        else:
            assert size == self.width

    def departed(self, body: bytes) -> None:
        if body[:6] == b"OLAF\x03\x01":
            assert self.departing, "an update that nobody locked"
            assert body == self.departing.pop(0)
            return
        # Frames for which there is no room are missing, in order.
        while True:
            assert self.others, "a frame that never came"
            expected = self.others.pop(0)
            if is_answer(body) and len(expected) == len(body):
                expected = with_status(expected, body, self.slots)
            if expected == body:
                break
            self.counts["no_room"] += 1
        self.counts["passed"] += 1

    async def counters(self) -> list[int]:
        """All counters, over AXI4-Lite."""
        dut = self.dut

        async def read(address: int) -> int:
            dut.s_axil_araddr.value, dut.s_axil_arvalid.value, dut.s_axil_rready.value = (
                address,
                1,
                1,
            )
            while True:
                await Timer(1, unit="ns")
                taken = dut.s_axil_arready.value == 1
                await RisingEdge(dut.clk)
                await Timer(1, unit="ps")
                if taken:
                    break
            dut.s_axil_arvalid.value = 0
            while dut.s_axil_rvalid.value != 1:
                await RisingEdge(dut.clk)
                await Timer(1, unit="ps")
            assert dut.s_axil_rresp.value == 0
            assert dut.s_axil_rdata.value.is_resolvable, hex(address)
            data = dut.s_axil_rdata.value.to_unsigned()
            await RisingEdge(dut.clk)
            await Timer(1, unit="ps")
            return data

        assert await read(0) == int.from_bytes(b"OLAQ", "big")
        total = await read(12)
        return [await read(16 + 8 * at) | await read(20 + 8 * at) << 32 for at in range(total)]


def is_answer(body: bytes) -> bool:
    """It begins as an answer: what passes and does, is one."""
    return body[:6] in (b"OLAF\x03\x02", b"OLAF\x03\x03")


def with_status(expected: bytes, body: bytes, slots: int) -> bytes:
    """The answer with the status that this queue may have written into it."""
    active, size, _, switches, round_us = STATUS.unpack_from(expected, STATUS_AT)
    used = STATUS.unpack_from(body, STATUS_AT)[2]
    told: tuple[int, ...] = ACTIVE, slots, used
    assert used <= slots or switches
    if switches and active * slots > ACTIVE * max(size, 1):
        told = STATUS.unpack_from(expected, STATUS_AT)[:3]
    written = bytearray(expected)
    fields = (*told, min(switches + 1, 255), max(round_us, ROUND_US))
    STATUS.pack_into(written, STATUS_AT, *fields)
    # The byte behind the number of switches is not a field of the status.
    written[79] = expected[79]
    return bytes(written)
