"""`axil_counters`: what a host reads, with pauses on both sides."""

from __future__ import annotations

import random

import cocotb
import pytest
from bench import simulate
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer

OKAY, SLVERR = 0, 2
ABOUT = (0x4F4C4101, 0x00010002, 0x400)


@pytest.mark.parametrize(("counters", "amount"), [(1, 64), (5, 33)])
def test_counters(counters: int, amount: int) -> None:
    kind, version, following = ABOUT
    parameters = {"COUNTERS": counters, "AMOUNT": amount, "ADDRESS": 8}
    about = {"TYPE": kind, "VERSION": version, "NEXT": following}
    simulate("axil_counters", "test_axil_counters", parameters | about)


class Host:
    """Reads and writes one word at a time."""

    def __init__(self, dut, chance: random.Random) -> None:
        self.dut, self.chance = dut, chance

    async def tick(self) -> None:
        await RisingEdge(self.dut.clk)
        await Timer(1, unit="ps")

    async def read(self, address: int) -> tuple[int, int]:
        """The word and the response."""
        dut = self.dut
        dut.s_axil_araddr.value, dut.s_axil_arvalid.value = address, 1
        while True:
            await Timer(1, unit="ps")
            taken = dut.s_axil_arready.value == 1
            await self.tick()
            if taken:
                break
        dut.s_axil_arvalid.value = 0
        for _ in range(self.chance.randrange(4)):
            dut.s_axil_rready.value = 0
            assert dut.s_axil_rvalid.value == 1, "an answer must wait"
            await self.tick()
        dut.s_axil_rready.value = 1
        assert dut.s_axil_rvalid.value == 1
        word, response = dut.s_axil_rdata.value.to_unsigned(), dut.s_axil_rresp.value.to_unsigned()
        await self.tick()
        dut.s_axil_rready.value = 0
        assert dut.s_axil_rvalid.value == 0, "one answer a question"
        return word, response

    async def write(self, address: int, word: int) -> int:
        """The response. Address and word come in any order."""
        dut = self.dut
        dut.s_axil_awaddr.value, dut.s_axil_wdata.value, dut.s_axil_wstrb.value = address, word, 15
        late = self.chance.choice([dut.s_axil_awvalid, dut.s_axil_wvalid])
        dut.s_axil_awvalid.value = dut.s_axil_wvalid.value = 1
        late.value = 0
        for _ in range(self.chance.randrange(3)):
            await self.tick()
            assert dut.s_axil_bvalid.value == 0
        late.value = 1
        await self.tick()
        dut.s_axil_awvalid.value = dut.s_axil_wvalid.value = 0
        await Timer(1, unit="ps")
        assert dut.s_axil_bvalid.value == 1
        response = dut.s_axil_bresp.value.to_unsigned()
        dut.s_axil_bready.value = 1
        await self.tick()
        dut.s_axil_bready.value = 0
        return response


@cocotb.test()
async def a_host_reads_the_sums(dut) -> None:
    counters, amount = int(dut.COUNTERS.value), int(dut.AMOUNT.value)
    chance = random.Random(5)
    sums: list[list[int]] = [[0] * counters]
    for signal in ("awvalid", "wvalid", "bready", "arvalid", "rready"):
        getattr(dut, f"s_axil_{signal}").value = 0
    dut.rst.value, dut.grow.value = 1, 0
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start(start_high=False))
    await RisingEdge(dut.clk)
    await Timer(1, unit="ps")
    dut.rst.value = 0

    async def grow() -> None:
        while True:
            amounts = [chance.getrandbits(amount) * chance.randrange(2) for _ in range(counters)]
            dut.grow.value = sum(n << amount * i for i, n in enumerate(amounts))
            await RisingEdge(dut.clk)
            sums.append([(s + n) % 2**64 for s, n in zip(sums[-1], amounts, strict=True)])
            await Timer(1, unit="ps")

    cocotb.start_soon(grow())
    host = Host(dut, chance)
    kind, version, following = ABOUT
    for address, word in ((0, kind), (4, version), (8, following), (12, counters)):
        assert await host.read(address) == (word, OKAY)
    for _ in range(200):
        counter = chance.randrange(counters)
        before = len(sums) - 1
        low, response = await host.read(16 + 8 * counter)
        after = len(sums) - 1
        assert response == OKAY
        for _ in range(chance.randrange(3)):
            await host.tick()
        high, response = await host.read(20 + 8 * counter)
        assert response == OKAY
        value = high << 32 | low
        assert value in [row[counter] for row in sums[before:after]], "halves of one instant"
        if chance.random() < 0.2:
            assert await host.write(16, 0) == SLVERR
    for address in (16 + 8 * counters, 20 + 8 * counters, 252, 1, 18):
        assert await host.read(address) == (0, SLVERR)
