"""`olaf_u55c`: updates go through the queue, all else around it; no beat changes while it waits."""

from __future__ import annotations

import json
import random

import cocotb
from bench import RTL, simulate
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge, Timer

BEAT = 64
UPDATE, ANSWER = 1, 2
CLASS, STATUS_AT, STATUS_BITS = 280, 16, 88
STATUS = ((1 << STATUS_BITS) - 1) << STATUS_AT
ACTIVE, ROUND, SLOTS = 9, 70_000, 8


def test_u55c() -> None:
    simulate("olaf_u55c", "test_olaf_u55c", {"SLOTS": SLOTS, "FRAME": 256, "BLOCK": 0})


def update(number: int) -> bytes:
    """That of the vectors, in a cluster of its own, so that nothing merges."""
    path = RTL.parent / "vectors" / "wire" / "native" / "messages.json"
    [data] = [row["hex"] for row in json.loads(path.read_text()) if row["kind"] == "update"]
    body = bytes.fromhex(data)
    return body[:12] + number.to_bytes(4, "big") + body[16:]


def traffic(chance: random.Random, count: int) -> list[tuple[bytes, int]]:
    """Frames with their user signals; one of ten is an update."""
    made = []
    for number in range(count):
        rest = chance.getrandbits(CLASS)
        if number % 10 == 3:
            made.append((update(number), UPDATE << CLASS | rest))
        else:
            kind = chance.choice([0, ANSWER, 7])
            made.append((chance.randbytes(chance.randint(1, 300)), kind << CLASS | rest))
    return made


def beats(frames: list[tuple[bytes, int]]) -> list[tuple[bytes, int, bool]]:
    return [
        (body[at : at + BEAT], user, at + BEAT >= len(body))
        for body, user in frames
        for at in range(0, len(body), BEAT)
    ]


@cocotb.test()
async def updates_go_through_the_queue_and_all_else_around_it(dut) -> None:
    chance = random.Random(6)
    sent = traffic(chance, 400)
    todo = beats(sent)
    cocotb.start_soon(Clock(dut.axis_aclk, 4, unit="ns").start(start_high=False))
    dut.axis_aresetn.value, dut.s_axis_tvalid.value, dut.m_axis_tready.value = 0, 0, 0
    dut.session.value, dut.gate.value, dut.gate_threshold.value = 77, 0, 0
    dut.active_clusters.value, dut.round_us.value = ACTIVE, ROUND
    for name in ("awvalid", "wvalid", "bready", "arvalid", "rready"):
        getattr(dut, f"s_axil_{name}").value = 0
    await RisingEdge(dut.axis_aclk)
    await Timer(1, unit="ps")
    dut.axis_aresetn.value = 1

    received: list[tuple[bytes, int]] = []
    partial, at, offered, waiting, idle = b"", 0, False, None, 0
    used_seen = set()
    while idle < 200:
        offered = offered or (at < len(todo) and chance.random() < 0.8)
        if offered:
            body, user, last = todo[at]
            dut.s_axis_tdata.value = int.from_bytes(body, "little")
            dut.s_axis_tkeep.value = (1 << len(body)) - 1
            dut.s_axis_tuser.value, dut.s_axis_tlast.value = user, last
        dut.s_axis_tvalid.value = offered
        dut.m_axis_tready.value = chance.random() < 0.7
        # Changed while a beat waits: what is offered must not change with it.
        dut.active_clusters.value = ACTIVE + chance.randrange(2)
        await ReadOnly()
        out = None
        if dut.m_axis_tvalid.value == 1:
            signals = (dut.m_axis_tdata, dut.m_axis_tkeep, dut.m_axis_tuser, dut.m_axis_tlast)
            out = tuple(int(signal.value) for signal in signals)
        assert waiting is None or out == waiting, "an offered beat changed"
        taken = out is not None and dut.m_axis_tready.value == 1
        waiting = None if taken else out
        if taken and out:
            data, keep, user, last = out
            partial += data.to_bytes(BEAT, "little")[: keep.bit_count()]
            used_seen.add(user >> STATUS_AT + 64 & 0xFF_FFFF)
            if last:
                received.append((partial, user))
                partial = b""
        came = offered and dut.s_axis_tready.value == 1
        idle = 0 if at < len(todo) or taken else idle + 1
        await RisingEdge(dut.axis_aclk)
        await Timer(1, unit="ps")
        if came:
            at, offered = at + 1, False

    around = [(body, user & ~STATUS) for body, user in sent if user >> CLASS != UPDATE]
    assert [row for row in received if row[1] >> CLASS == UPDATE] != []
    passed = [(body, user & ~STATUS) for body, user in received if user >> CLASS != UPDATE]
    assert passed == around
    through = [(body, user & ~STATUS) for body, user in received if user >> CLASS == UPDATE]
    clusters = [int.from_bytes(body[12:16], "big") for body, _ in through]
    assert clusters == [number for number in range(len(sent)) if number % 10 == 3]
    assert {user for _, user in through} == {UPDATE << CLASS}
    for body, _ in through:
        original = update(int.from_bytes(body[12:16], "big"))
        assert body[88] == original[88] + 1, "one switch more was passed"
        assert body[96:] == original[96:]
        assert body[20:24] == (77).to_bytes(4, "big")
    for _, user in received:
        status = (user & STATUS) >> STATUS_AT
        assert status & 0xFFFF_FFFF == ROUND
        assert status >> 32 & 0xFFFF == SLOTS
        assert status >> 48 & 0xFFFF in (ACTIVE, ACTIVE + 1)
    assert {0, 1} <= used_seen
    assert max(used_seen) <= SLOTS
