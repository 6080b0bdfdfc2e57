"""`udp_receivers`: an entry is taken at once; what is written can be read."""

from __future__ import annotations

import random

import axil
import cocotb
from axil import IDLE, OKAY, SLVERR, read, set_address, write
from bench import simulate
from cocotb.triggers import Timer
from datagrams import Address, some_address
from streams import begin

PORTS = 3
ABOUT = {"TYPE": 0x55445072, "VERSION": 1, "NEXT": 0x3000}


def test_udp_receivers() -> None:
    simulate("udp_receivers", "test_udp_receivers", {"PORTS": PORTS} | ABOUT)


def bits(entry: Address) -> int:
    return int.from_bytes(entry.mac + entry.ip + entry.port.to_bytes(2, "big"), "big")


async def looked_up(dut, port: int) -> int | None:
    dut.lookup.value = port
    await Timer(1, unit="ns")
    return dut.entry.value.to_unsigned() if dut.entry_valid.value == 1 else None


@cocotb.test()
async def each_receiver_has_its_own_entry(dut) -> None:
    chance = random.Random(1)
    await begin(dut, [*IDLE, "lookup"])
    known: dict[int, Address] = {}
    for _ in range(60):
        number = chance.randrange(PORTS + 1)
        entry = some_address(chance) if chance.random() < 0.7 else None
        known.pop(number, None)
        if entry:
            known[number] = entry
        await set_address(dut, number, (entry.mac, entry.ip, entry.port) if entry else None)
        assert dut.sender.value.to_unsigned() == (bits(known[0]) if 0 in known else 0)
        for port in range(PORTS):
            there = known.get(1 + port)
            assert await looked_up(dut, port) == (bits(there) if there else None)
        for which in range(PORTS + 1):
            words = [await read(dut, 0x10 + 16 * which + 4 * at) for at in range(4)]
            there = bits(known[which]) if which in known else 0
            valid = (which in known) << 16
            assert words == [
                *((OKAY, there >> shift & 0xFFFFFFFF) for shift in (80, 48, 16)),
                (OKAY, valid | there & 0xFFFF),
            ]


@cocotb.test()
async def no_datagram_gets_a_part_of_an_address(dut) -> None:
    chance = random.Random(2)
    await begin(dut, [*IDLE, "lookup"])
    old, new = some_address(chance), some_address(chance)
    await set_address(dut, 2, (old.mac, old.ip, old.port))
    words = [new.mac[:2], new.mac[2:], new.ip, (1 << 16 | new.port).to_bytes(4, "big")]
    for at, word in enumerate(words):
        assert await looked_up(dut, 1) == bits(old)
        assert await write(dut, 0x30 + 4 * at, int.from_bytes(word, "big")) == OKAY
    assert await looked_up(dut, 1) == bits(new)


@cocotb.test()
async def other_words_are_refused(dut) -> None:
    chance = random.Random(3)
    await begin(dut, [*IDLE, "lookup"])
    entry = some_address(chance)
    await set_address(dut, 1, (entry.mac, entry.ip, entry.port))
    end = 0x20 + 16 * PORTS
    for address in (0, 12, end, end + 12, 0xFFC):
        assert await write(dut, address, 0) == SLVERR
    # A part of a word, an address between two words.
    assert await write(dut, 0x2C, 0, strobes=7) == SLVERR
    assert await write(dut, 0x2D, 0) == SLVERR
    assert await looked_up(dut, 0) == bits(entry)
    assert [await read(dut, 4 * at) for at in range(4)] == [
        (OKAY, word) for word in (*ABOUT.values(), PORTS)
    ]
    assert (await read(dut, end))[0] == (await read(dut, 0x2D))[0] == SLVERR
    dut.rst.value = 1
    await axil.tick(dut)
    dut.rst.value = 0
    assert await looked_up(dut, 0) is None
