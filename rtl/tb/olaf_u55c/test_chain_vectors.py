"""`olaf_u55c` between the P4 blocks: frames of vectors/p4/board.json, which tests/p4 plays, too.

A burst holds the link until all of its updates are in, so that they meet in the queue. How many
slots are used when a frame leaves depends on the pipeline, so `used` is not compared.
"""

from __future__ import annotations

import json
import random

import cocotb
from bench import RTL, simulate
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge, Timer

BEAT = 64
UPDATE = 1
CLASS_AT, USED_AT = 280, 80
USED = 0xFF_FFFF << USED_AT
FILE = json.loads((RTL.parent / "vectors" / "p4" / "board.json").read_text())


def test_chain_vectors() -> None:
    slots = FILE["board"]["slots"]
    simulate("olaf_u55c", "test_chain_vectors", {"SLOTS": slots, "FRAME": 1536, "BLOCK": 0})


def told(user: int) -> int:
    """The signal without what depends on the moment."""
    assert user >> USED_AT & 0xFF_FFFF <= FILE["board"]["slots"]
    return user & ~USED


class Link:
    """Both ends of the board's stream."""

    def __init__(self, dut) -> None:
        self.dut, self.chance = dut, random.Random(4)
        self.received: list[tuple[int, str]] = []
        self.partial = b""

    async def start(self) -> None:
        dut, board = self.dut, FILE["board"]
        cocotb.start_soon(Clock(dut.axis_aclk, 4, unit="ns").start(start_high=False))
        dut.axis_aresetn.value, dut.s_axis_tvalid.value, dut.m_axis_tready.value = 0, 0, 0
        dut.session.value, dut.gate.value, dut.gate_threshold.value = board["session"], 0, 0
        dut.active_clusters.value, dut.round_us.value = board["active_clusters"], board["round_us"]
        for name in ("awvalid", "wvalid", "bready", "arvalid", "rready"):
            getattr(dut, f"s_axil_{name}").value = 0
        await self.cycle(None, False)
        dut.axis_aresetn.value = 1

    async def cycle(self, beat: tuple[bytes, int, bool] | None, ready: bool) -> tuple[bool, bool]:
        """Whether the beat was taken, and whether one is offered."""
        dut = self.dut
        if beat:
            body, user, last = beat
            dut.s_axis_tdata.value = int.from_bytes(body, "little")
            dut.s_axis_tkeep.value = (1 << len(body)) - 1
            dut.s_axis_tuser.value, dut.s_axis_tlast.value = user, last
        dut.s_axis_tvalid.value, dut.m_axis_tready.value = beat is not None, ready
        await ReadOnly()
        taken = beat is not None and dut.s_axis_tready.value == 1
        offered = dut.m_axis_tvalid.value == 1
        if offered and ready:
            data, keep = int(dut.m_axis_tdata.value), int(dut.m_axis_tkeep.value)
            self.partial += data.to_bytes(BEAT, "little")[: keep.bit_count()]
            if dut.m_axis_tlast.value == 1:
                self.received.append((told(int(dut.m_axis_tuser.value)), self.partial.hex()))
                self.partial = b""
        await RisingEdge(dut.axis_aclk)
        await Timer(1, unit="ps")
        return taken, offered

    async def send(self, user: int, body: bytes, ready: float) -> None:
        for at in range(0, len(body), BEAT):
            beat = (body[at : at + BEAT], user, at + BEAT >= len(body))
            waits = 0
            while not (await self.cycle(beat, self.chance.random() < ready))[0]:
                waits += 1
                assert waits < 1000, "a beat is not taken"

    async def rest(self, cycles: int, ready: float) -> None:
        idle = 0
        while idle < cycles:
            _, offered = await self.cycle(None, self.chance.random() < ready)
            idle = 0 if offered and ready else idle + 1


@cocotb.test()
async def the_board_sends_what_the_file_says(dut) -> None:
    link = Link(dut)
    await link.start()
    for burst in FILE["bursts"]:
        rows = [(int(row["user"], 16), bytes.fromhex(row["to_board"])) for row in burst["arrive"]]
        updates = [row for row in rows if row[0] >> CLASS_AT == UPDATE]
        others = [row for row in rows if row[0] >> CLASS_AT != UPDATE]
        assert rows == updates + others
        for user, body in updates:
            await link.send(user, body, ready=0)
            await link.rest(100, ready=0)
        for user, body in others:
            await link.send(user, body, ready=0.7)
        await link.rest(200, ready=0.7)
        expected = [(told(int(row["user"], 16)), row["from_board"]) for row in burst["depart"]]
        for is_update in (True, False):
            came = [row for row in link.received if (row[0] >> CLASS_AT == UPDATE) == is_update]
            wanted = [row for row in expected if (row[0] >> CLASS_AT == UPDATE) == is_update]
            assert came == wanted, burst["what"]
        link.received.clear()
