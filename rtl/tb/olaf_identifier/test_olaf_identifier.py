"""`olaf_identifier` gives the verdicts of vectors/wire/native/verdicts.json.

They are those of the switch, and of the P4 program (tests/p4/test_p4_verdicts.py).
"""

from __future__ import annotations

import json
import random
import struct

import cocotb
from bench import RTL, simulate
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge, Timer

BEAT = 64
VECTORS = RTL.parent / "vectors" / "wire" / "native"
UPDATE = struct.Struct(">8xIIIII4xI28xII8s8s")
ANSWER = struct.Struct(">8xIIIIII12xI")

Frame = tuple[str, bytes]
"""The verdict, and the datagram."""


def test_identifier() -> None:
    simulate("olaf_identifier", "test_olaf_identifier")


def frames() -> list[Frame]:
    rows = json.loads((VECTORS / "verdicts.json").read_text())
    return [(row["verdict"], bytes.fromhex(row["hex"]) + bytes(row["zeros"])) for row in rows]


def message(kind: str) -> bytes:
    rows = json.loads((VECTORS / "messages.json").read_text())
    return bytes.fromhex(next(row["hex"] for row in rows if row["kind"] == kind))


def fields(verdict: str, data: bytes) -> dict[str, int]:
    """What the wires have to say of a message."""
    if verdict == "answer":
        names = ("job", "cluster", "worker", "session", "number", "segment", "lanes")
        return dict(zip(names, ANSWER.unpack_from(data), strict=True))
    names = ("job", "cluster", "worker", "session", "number", "segment", "contributors", "lanes")
    *numbers, weight, reward = UPDATE.unpack_from(data)
    floats = {"weight": weight, "reward": reward}
    return {
        **dict(zip(names, numbers, strict=True)),
        **{name: int.from_bytes(value, "big") for name, value in floats.items()},
    }


async def started(dut) -> None:
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start(start_high=False))
    dut.rst.value, dut.passes.value, dut.tlast.value = 1, 0, 0
    await RisingEdge(dut.clk)
    await Timer(1, unit="ps")
    dut.rst.value = 0


def said(dut) -> str:
    """The verdict in this cycle."""
    update, answer = (signal.value == 1 for signal in (dut.update, dut.answer))
    assert not (update and answer)
    return "update" if update else "answer" if answer else "other"


async def verdicts(dut, sent: list[Frame], chance: random.Random, pauses: float) -> None:
    """Send the frames; check each verdict in the cycle behind the frame's last beat."""
    ended: Frame | None = None
    for verdict, data in [*sent, ("other", b"end")]:
        for at in range(0, len(data), BEAT):
            while True:
                pause = chance.random() < pauses
                beat = data[at : at + BEAT]
                junk = chance.randbytes(BEAT - len(beat))
                dut.tdata.value = int.from_bytes(beat + junk, "little")
                dut.tkeep.value = (1 << len(beat)) - 1
                dut.tlast.value = at + BEAT >= len(data)
                dut.passes.value = not pause
                await ReadOnly()
                assert (dut.ended.value == 1) == (ended is not None)
                if ended:
                    assert said(dut) == ended[0], ended[1][:112].hex()
                    if ended[0] != "other":
                        for name, value in fields(*ended).items():
                            assert getattr(dut, name).value.to_unsigned() == value, name
                else:
                    assert said(dut) == "other"
                ended = (verdict, data) if at + BEAT >= len(data) and not pause else None
                await RisingEdge(dut.clk)
                await Timer(1, unit="ps")
                if not pause:
                    break
    dut.passes.value = 0
    await RisingEdge(dut.clk)
    await Timer(1, unit="ps")


@cocotb.test()
async def each_frame_of_the_vectors_has_its_verdict(dut) -> None:
    sent = [row for row in frames() if row[1]]
    assert len(sent) > 400
    chance = random.Random(4)
    await started(dut)
    await verdicts(dut, sent, chance, pauses=0)
    short = [row for row in sent if len(row[1]) < 1000]
    await verdicts(dut, chance.sample(short, len(short)), chance, pauses=0.4)


@cocotb.test()
async def bytes_that_are_not_kept_make_a_frame_neither(dut) -> None:
    """A gap in the middle of a frame, and a last beat whose kept bytes are not the first ones."""
    data = message("update")
    assert len(data) == 108
    full = (1 << 64) - 1
    await started(dut)
    for keeps, verdict in [
        ((full, (1 << 44) - 1), "update"),
        ((full >> 1, (1 << 44) - 1), "other"),
        ((full - (1 << 8), (1 << 44) - 1), "other"),
        ((full, (1 << 45) - 1), "other"),
        ((full, (1 << 45) - 2), "other"),
        ((full, (1 << 44) - 1 - (1 << 20)), "other"),
        ((full, 0), "other"),
        ((full, (1 << 44) - 1), "update"),
    ]:
        for beat, keep in enumerate(keeps):
            dut.tdata.value = int.from_bytes(data[64 * beat :][:64].ljust(64, b"\0"), "little")
            dut.tkeep.value, dut.tlast.value, dut.passes.value = keep, beat == 1, 1
            await RisingEdge(dut.clk)
            await Timer(1, unit="ps")
        assert dut.ended.value == 1
        assert said(dut) == verdict, [hex(keep) for keep in keeps]


@cocotb.test()
async def a_reset_begins_a_new_frame(dut) -> None:
    chance = random.Random(5)
    await started(dut)
    for _ in range(3):
        dut.tdata.value, dut.tkeep.value = 0, (1 << 64) - 1
        dut.passes.value, dut.tlast.value = 1, 0
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
        dut.rst.value, dut.passes.value = 1, 0
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
        dut.rst.value = 0
        await verdicts(dut, [("update", message("update"))], chance, pauses=0)
        dut.passes.value, dut.tlast.value = 1, 1  # the end of the frame behind it
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
