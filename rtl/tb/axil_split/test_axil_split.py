"""`axil_split` before three blocks that answer with their number and their address."""

from __future__ import annotations

import random
from dataclasses import dataclass

import cocotb
from axil import DECERR, IDLE, read, write
from bench import simulate
from cocotb.triggers import RisingEdge, Timer
from streams import begin

BLOCKS = 3


def test_axil_split() -> None:
    simulate("axil_split", "test_axil_split", {"BLOCKS": BLOCKS})


@dataclass
class Block:
    """Takes a request after some cycles, and answers after some more."""

    dut: object
    number: int
    chance: random.Random
    written: tuple[int, int, int] = (0, 0, 0)

    def bit(self, pin: str) -> bool:
        return bool(getattr(self.dut, f"m_axil_{pin}").value.to_unsigned() >> self.number & 1)


@dataclass
class Blocks:
    """Drives the pins that the blocks share."""

    dut: object
    blocks: list[Block]

    async def run(self) -> None:
        dut, chance = self.dut, self.blocks[0].chance
        owes: dict[str, dict[int, int]] = {"r": {}, "b": {}}
        while True:
            ready = [chance.random() < 0.5 for _ in self.blocks]
            pins = sum(is_ready << at for at, is_ready in enumerate(ready))
            dut.m_axil_arready.value = dut.m_axil_awready.value = dut.m_axil_wready.value = pins
            for kind, owed in owes.items():
                answers = [at for at in owed if chance.random() < 0.5 or kind == "r"]
                getattr(dut, f"m_axil_{kind}valid").value = sum(1 << at for at in answers)
                resp = sum(owed[at] % 4 << 2 * at for at in answers)
                getattr(dut, f"m_axil_{kind}resp").value = resp
                if kind == "r":
                    dut.m_axil_rdata.value = sum((at << 12 | owed[at]) << 32 * at for at in answers)
            await Timer(500, unit="ps")
            for block in self.blocks:
                at = block.number
                for kind, asks in (("r", "ar"), ("b", "aw")):
                    pins = getattr(dut, f"m_axil_{kind}valid").value.to_unsigned()
                    if pins >> at & 1 and block.bit(f"{kind}ready"):
                        del owes[kind][at]
                    if ready[at] and block.bit(f"{asks}valid"):
                        address = getattr(dut, f"m_axil_{asks}addr").value.to_unsigned()
                        assert at not in owes[kind], "one question at a time"
                        owes[kind][at] = address
                        if kind == "b":
                            assert block.bit("wvalid")
                            word = dut.m_axil_wdata.value.to_unsigned()
                            strobes = dut.m_axil_wstrb.value.to_unsigned()
                            block.written = address, word, strobes
            await RisingEdge(dut.clk)
            await Timer(1, unit="ps")


@cocotb.test()
async def each_block_gets_what_is_its_own(dut) -> None:
    chance = random.Random(5)
    names = ("arready", "awready", "wready", "rvalid", "bvalid", "rresp", "bresp", "rdata")
    await begin(dut, [*IDLE, *(f"m_axil_{name}" for name in names)])
    blocks = [Block(dut, number, chance) for number in range(BLOCKS)]
    cocotb.start_soon(Blocks(dut, blocks).run())
    for _ in range(200):
        address = chance.randrange(4 << 12)
        block, inner = divmod(address, 1 << 12)
        if chance.random() < 0.5:
            expected = (inner % 4, address) if block < BLOCKS else (DECERR, 0)
            assert await read(dut, address) == expected
        else:
            before = [each.written for each in blocks]
            word, strobes = chance.getrandbits(32), chance.getrandbits(4)
            answer = await write(dut, address, word, strobes)
            assert answer == (inner % 4 if block < BLOCKS else DECERR)
            if block < BLOCKS:
                before[block] = inner, word, strobes
            assert [each.written for each in blocks] == before
