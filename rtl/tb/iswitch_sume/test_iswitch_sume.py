"""`iswitch_sume`: ports of the reference switch's tuser, and those of the accelerator."""

from __future__ import annotations

import json

import cocotb
from bench import RTL, simulate
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge, Timer

BEAT = 32
SOURCE, DESTINATION = 16, 24


def test_sume() -> None:
    simulate("iswitch_sume", "test_iswitch_sume")


def join() -> bytes:
    """A worker's Join, of the vectors."""
    path = RTL.parent / "vectors" / "wire" / "iswitch" / "messages.json"
    rows = json.loads(path.read_text())
    return bytes.fromhex(next(row["hex"] for row in rows if row["kind"] == "join"))


async def tick(dut) -> None:
    await RisingEdge(dut.axis_aclk)
    await Timer(1, unit="ps")


async def send(dut, body: bytes, port: int, control: bool) -> None:
    """A datagram from a network port; the rest of tuser has bits that mean nothing here."""
    dut.s_axis_control.value, dut.s_axis_marked.value = control, 0
    dut.s_axis_tuser.value = 0xABCD << 32 | 1 << SOURCE + 2 * port | len(body)
    for at in range(0, len(body), BEAT):
        piece = body[at : at + BEAT]
        dut.s_axis_tdata.value = int.from_bytes(piece, "little")
        dut.s_axis_tkeep.value = (1 << len(piece)) - 1
        dut.s_axis_tlast.value, dut.s_axis_tvalid.value = at + BEAT >= len(body), 1
        while True:
            await ReadOnly()
            ready = dut.s_axis_tready.value == 1
            await tick(dut)
            if ready:
                break
    dut.s_axis_tvalid.value = 0


async def receive(dut) -> tuple[bytes, int, bool]:
    """A frame, its tuser, and whether it is a control message."""
    body = b""
    for _ in range(200):
        await ReadOnly()
        if dut.m_axis_tvalid.value == 1:
            keep = dut.m_axis_tkeep.value.to_unsigned().bit_count()
            body += dut.m_axis_tdata.value.to_unsigned().to_bytes(BEAT, "little")[:keep]
            if dut.m_axis_tlast.value == 1:
                found = dut.m_axis_tuser.value.to_unsigned(), dut.m_axis_control.value == 1
                await tick(dut)
                return body, *found
        await tick(dut)
    raise AssertionError("no frame comes")


@cocotb.test()
async def a_control_message_leaves_with_the_port_that_it_came_from(dut) -> None:
    cocotb.start_soon(Clock(dut.axis_aclk, 5, unit="ns").start(start_high=False))
    dut.axis_resetn.value, dut.epoch.value, dut.m_axis_tready.value = 0, 0, 1
    dut.s_axis_tvalid.value = 0
    for name in ("awvalid", "wvalid", "bready", "arvalid", "rready"):
        getattr(dut, f"s_axil_{name}").value = 0
    for _ in range(4):
        await tick(dut)
    dut.axis_resetn.value = 1
    for port in (0, 1, 2, 3, 1):
        body = join()
        await send(dut, body, port, control=True)
        assert await receive(dut) == (body, 1 << DESTINATION + 2 * port, True)
