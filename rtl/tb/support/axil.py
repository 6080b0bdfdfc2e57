"""Reads and writes words over AXI4-Lite, one at a time."""

from __future__ import annotations

from cocotb.triggers import Timer
from streams import tick

OKAY, SLVERR, DECERR = 0, 2, 3
INPUTS = ("awaddr", "awvalid", "wdata", "wstrb", "wvalid", "bready", "araddr", "arvalid", "rready")
IDLE = [f"s_axil_{name}" for name in INPUTS]


async def read(dut, address: int) -> tuple[int, int]:
    """The answer, and the word."""
    dut.s_axil_araddr.value, dut.s_axil_arvalid.value, dut.s_axil_rready.value = address, 1, 1
    await _until(dut, dut.s_axil_arready)
    dut.s_axil_arvalid.value = 0
    await _until(dut, dut.s_axil_rvalid, keep=True)
    found = int(dut.s_axil_rresp.value), dut.s_axil_rdata.value.to_unsigned()
    await tick(dut)
    dut.s_axil_rready.value = 0
    return found


async def write(dut, address: int, word: int, strobes: int = 15) -> int:
    """The answer."""
    dut.s_axil_awaddr.value, dut.s_axil_awvalid.value = address, 1
    dut.s_axil_wdata.value, dut.s_axil_wstrb.value, dut.s_axil_wvalid.value = word, strobes, 1
    dut.s_axil_bready.value = 1
    await _until(dut, dut.s_axil_awready)
    dut.s_axil_awvalid.value, dut.s_axil_wvalid.value = 0, 0
    await _until(dut, dut.s_axil_bvalid, keep=True)
    found = int(dut.s_axil_bresp.value)
    await tick(dut)
    dut.s_axil_bready.value = 0
    return found


async def _until(dut, pin, *, keep: bool = False) -> None:
    """To the end of the cycle in which `pin` is high; with `keep` to its middle."""
    for _ in range(20):
        await Timer(1, unit="ns")
        high = pin.value == 1
        if high and keep:
            return
        await tick(dut)
        if high:
            return
    raise AssertionError(f"{pin._name} stays low")


async def counters(dut, names: tuple[str, ...], base: int = 0) -> dict[str, int]:
    """All counters of a block (`axil_block`)."""
    assert await read(dut, base + 0x0C) == (OKAY, len(names))
    numbers = {}
    for place, name in enumerate(names):
        low, high = [(await read(dut, base + 0x10 + 8 * place + half))[1] for half in (0, 4)]
        numbers[name] = low | high << 32
    return numbers


async def set_address(
    dut, number: int, entry: tuple[bytes, bytes, int] | None, base: int = 0
) -> None:
    """An entry of `udp_receivers` (0: the switch itself): MAC, IPv4 address, UDP port; or none."""
    mac, ip, port = entry or (bytes(6), bytes(4), 0)
    words = [mac[:2], mac[2:], ip, (bool(entry) << 16 | port).to_bytes(4, "big")]
    for at, word in enumerate(words):
        address = base + 0x10 + 16 * number + 4 * at
        assert await write(dut, address, int.from_bytes(word, "big")) == OKAY
