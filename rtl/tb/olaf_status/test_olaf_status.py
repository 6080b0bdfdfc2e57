"""`olaf_status` against `QueueStatus::passing` (olaf-wire): answers, other frames, pauses."""

from __future__ import annotations

import os
import random
import struct

import cocotb
from bench import simulate
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer

BEAT = 64
UPDATE, ACKNOWLEDGEMENT, MODEL = 1, 2, 3
FIELDS = struct.Struct(">HHHBxI")
AT = 72


def test_status() -> None:
    simulate("olaf_status", "test_olaf_status", {"USER": 5}, cycles=400)


Status = tuple[int, int, int, int, int]
"""Active clusters, slots, used, switches, round."""


def passing(above: Status, own: Status) -> Status:
    """The rule of the switch, with fractions instead of products."""
    crowding = above[0] / max(above[1], 1), own[0] / max(own[1], 1)
    told = above if above[3] > 0 and crowding[0] > crowding[1] else own
    return (*told[:3], min(above[3] + 1, 255), max(above[4], own[4]))


def some_status(chance: random.Random) -> Status:
    small = chance.random() < 0.7
    top = 9 if small else 65536
    numbers = (chance.randrange(top), chance.randrange(top), chance.randrange(top))
    return (*numbers, chance.choice([0, 1, 2, 255]), chance.choice([0, 7, 2**32 - 1, 700]))


def frame(chance: random.Random) -> bytes:
    """An answer, or something that differs from one in a field, or anything."""
    body = bytearray(chance.randbytes(chance.choice([1, 24, 63, 64, 65, 112, 113, 128, 192, 300])))
    if len(body) >= 24:
        magic = b"OLAF" if chance.random() < 0.95 else b"OLAG"
        version = 3 if chance.random() < 0.95 else 4
        kind = chance.choice([ACKNOWLEDGEMENT, MODEL, ACKNOWLEDGEMENT, MODEL, UPDATE, 9])
        flags = chance.choice([0, 0, 0, 0, 1, 256])
        body[:8] = magic + bytes([version, kind]) + flags.to_bytes(2, "big")
    if len(body) >= AT + FIELDS.size:
        body[AT : AT + FIELDS.size] = FIELDS.pack(*some_status(chance))
    return bytes(body)


def is_answer(body: bytes) -> bool:
    return (
        len(body) >= 112
        and body[:5] == b"OLAF\x03"
        and body[5] in (ACKNOWLEDGEMENT, MODEL)
        and body[6:8] == b"\0\0"
    )


def expected(body: bytes, own: Status) -> bytes:
    if not is_answer(body):
        return body
    told = passing(FIELDS.unpack_from(body, AT), own)
    return body[:AT] + FIELDS.pack(*told) + body[AT + FIELDS.size :]


@cocotb.test()
async def answers_carry_the_status_and_the_rest_is_untouched(dut) -> None:
    chance = random.Random(2)
    frames = [frame(chance) for _ in range(int(os.environ["BENCH_CYCLES"]))]
    beats = [
        (body[at : at + BEAT], at + BEAT >= len(body), number)
        for number, body in enumerate(frames)
        for at in range(0, len(body), BEAT)
    ]
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start(start_high=False))
    dut.rst.value, dut.s_axis_tvalid.value, dut.m_axis_tready.value = 1, 0, 0
    await RisingEdge(dut.clk)
    await Timer(1, unit="ps")
    dut.rst.value = 0

    owns: dict[int, Status] = {}
    received: list[bytes] = []
    partial = b""
    offered, stamps, latency = 0, 0, []
    entered: dict[int, int] = {}
    left_beats = cycle = 0
    while len(received) < len(frames):
        # In the last third neither side pauses.
        steady = offered > 2 * len(beats) // 3
        valid = offered < len(beats) and (steady or chance.random() < 0.7)
        ready = steady or chance.random() < 0.6
        own = some_status(chance)
        names = ("active_clusters", "slots", "used")
        for name, number in zip(names, own[:3], strict=True):
            getattr(dut, name).value = number
        dut.round_us.value = own[4]
        dut.s_axis_tvalid.value, dut.m_axis_tready.value = valid, ready
        if valid:
            piece, last, number = beats[offered]
            dut.s_axis_tdata.value = int.from_bytes(piece, "little")
            dut.s_axis_tkeep.value = (1 << len(piece)) - 1
            dut.s_axis_tlast.value, dut.s_axis_tuser.value = last, number % 32
        await Timer(1, unit="ns")
        if valid and dut.s_axis_tready.value == 1:
            # The status of the instant in which the second beat comes in.
            if offered and beats[offered - 1][2] == number and number not in owns:
                owns[number] = own
            entered[offered] = cycle
            offered += 1
        if ready and dut.m_axis_tvalid.value == 1:
            size = dut.m_axis_tkeep.value.to_unsigned().bit_length()
            partial += dut.m_axis_tdata.value.to_unsigned().to_bytes(BEAT, "little")[:size]
            assert dut.m_axis_tuser.value.to_unsigned() == len(received) % 32
            ends = dut.m_axis_tlast.value == 1
            assert (dut.stamped.value == 1) == (ends and is_answer(frames[len(received)]))
            stamps += dut.stamped.value == 1
            if steady:
                latency.append(cycle - entered[left_beats])
            left_beats += 1
            if ends:
                number = len(received)
                assert partial == expected(frames[number], owns.get(number, (0,) * 5))
                received.append(partial)
                partial = b""
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
        cycle += 1
    assert stamps == sum(is_answer(body) for body in frames) > 50
    assert latency[-1] == 3, "a beat leaves three cycles after it came"
