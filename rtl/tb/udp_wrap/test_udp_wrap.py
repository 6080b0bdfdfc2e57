"""`udp_wrap` against a plain model: a whole Ethernet frame for each receiver of each payload."""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass

import cocotb
import pytest
from bench import simulate
from datagrams import Address, Datagram, checksum, some_address
from streams import Beat, Frame, Sender, Taker, Watcher, beats, begin, run

FATES = ("framing", "too_long", "no_receiver", "kept")


@pytest.mark.parametrize(
    ("data", "ports", "most", "depth"), [(256, 4, 6, 16), (512, 3, 4, 4), (1024, 8, 2, 8)]
)
def test_udp_wrap(data: int, ports: int, most: int, depth: int) -> None:
    parameters = {"DATA": data, "PORTS": ports, "BEATS": most, "DEPTH": depth, "FRAMES": 4}
    simulate("udp_wrap", "test_udp_wrap", parameters, cycles=400)


def word(address: Address) -> int:
    """The bits of a table's entry."""
    return int.from_bytes(address.mac + address.ip + address.port.to_bytes(2, "big"), "big")


@dataclass
class Table:
    """Answers the module's questions for a receiver's entry, within the cycle."""

    dut: object
    entries: dict[int, Address]
    # Questions for a receiver that has none.
    without: int = 0

    def put(self) -> None:
        asked = self.dut.lookup.value
        # Unknown while no payload has come.
        found = self.entries.get(asked.to_unsigned()) if asked.is_resolvable else None
        self.dut.entry_valid.value = found is not None
        # An entry that is not valid may have any bits.
        self.dut.entry.value = word(found) if found else (1 << 96) - 1

    def look(self, cycle: int) -> None:
        del cycle
        self.without += self.dut.no_entry.value == 1

    def busy(self) -> bool:
        return False


class Bench:
    def __init__(self, dut, chance: random.Random) -> None:
        self.dut, self.chance = dut, chance
        self.width, self.ports = len(dut.s_axis_tkeep), int(os.environ["BENCH_PORTS"])
        self.most = int(os.environ["BENCH_BEATS"])
        self.sender, self.taker = Sender(dut, "s_axis", chance), Taker(dut, "m_axis", chance)
        self.own = some_address(chance)
        everyone = {port: some_address(chance) for port in range(self.ports)}
        self.table = Table(dut, {p: a for p, a in everyone.items() if chance.random() < 0.8})
        dut.sender.value = word(self.own)
        self.sent = 0
        self.fates: list[str] = []
        self.expected_fates: list[str] = []
        self.expected: list[Frame] = []
        self.expected_without = 0

    def watch(self) -> None:
        bits = self.dut.fate.value.to_unsigned()
        assert bits.bit_count() <= 1, "a payload has one fate"
        if bits:
            self.fates.append(FATES[bits.bit_length() - 1])
        self.sent += self.dut.sent.value == 1

    def offer(self, payload: bytes, tos: int, receivers: int, mistake: str = "") -> None:
        frame = Frame(payload, tos << self.ports | receivers)
        made = beats(frame, self.width)
        if mistake == "hole" and made[-1].keep > 1:
            last = made[-1]
            made[-1] = Beat(last.data, last.keep ^ 1, last.last, last.user)
        elif mistake == "empty end" and payload:
            # The beat before is no longer the last one, so it has to be whole.
            last = made.pop()
            made += [
                Beat(last.data, (1 << self.width) - 1, False, last.user),
                Beat(0, 0, True, last.user),
            ]
        else:
            mistake = ""
        # What is not kept is not zero.
        noise = self.chance.getrandbits(8 * self.width)
        for beat in made:
            gap = sum(255 << 8 * at for at in range(self.width) if not beat.keep >> at & 1)
            self.sender.waiting.append(
                Beat(beat.data & ~gap | noise & gap, beat.keep, beat.last, beat.user)
            )
        if mistake or len(made) > self.most or not receivers:
            self.expected_fates.append(
                "framing" if mistake else "too_long" if len(made) > self.most else "no_receiver"
            )
            return
        self.expected_fates.append("kept")
        for port in range(self.ports):
            if receivers >> port & 1:
                if to := self.table.entries.get(port):
                    body = Datagram(self.own, to, tos, payload).frame()
                    self.expected.append(Frame(body, 1 << 16 + port | len(body)))
                else:
                    self.expected_without += 1

    async def run(self) -> None:
        parts = [self.table, self.sender, self.taker, Watcher(self.watch)]
        await run(self.dut, parts, most=100_000)
        assert self.fates == self.expected_fates
        assert self.taker.frames == self.expected
        assert (self.sent, self.table.without) == (len(self.expected), self.expected_without)


@cocotb.test()
async def each_receiver_gets_a_whole_frame(dut) -> None:
    chance = random.Random(29)
    await begin(dut, ["s_axis_tvalid", "m_axis_tready", "entry_valid", "entry", "sender"])
    seen: Counter[str] = Counter()
    for valid, ready in ((1.0, 1.0), (0.3, 1.0), (1.0, 0.5), (0.7, 0.7)):
        bench = Bench(dut, chance)
        bench.sender.share, bench.taker.share = valid, ready
        longest = bench.most * bench.width
        for _ in range(int(os.environ["BENCH_CYCLES"]) // 4):
            sizes = [0, 1, 17, 18, 19, 22, 23, 54, 55, longest - 1, longest, longest + 1]
            size = chance.choice([*sizes, chance.randrange(longest + 1), chance.randrange(400)])
            receivers = chance.getrandbits(bench.ports) if chance.random() < 0.95 else 0
            mistake = chance.choice(["hole", "empty end"]) if chance.random() < 0.1 else ""
            bench.offer(chance.randbytes(size), chance.getrandbits(8), receivers, mistake)
        await bench.run()
        seen.update(bench.fates)
        assert bench.table.without or len(bench.table.entries) == bench.ports
    assert set(seen) == set(FATES), "the traffic had payloads of each fate"


@cocotb.test()
async def a_beat_leaves_in_every_cycle(dut) -> None:
    """Once the first datagram has begun, there is no pause: not between receivers or payloads."""
    chance = random.Random(5)
    await begin(dut, ["s_axis_tvalid", "m_axis_tready", "entry_valid", "entry", "sender"])
    everyone = (1 << int(os.environ["BENCH_PORTS"])) - 1
    for size in (0, 18, 32, 60, 64):
        bench = Bench(dut, chance)
        bench.table.entries = {port: some_address(chance) for port in range(bench.ports)}
        for _ in range(20):
            bench.offer(chance.randbytes(size), 0x8E, everyone)
        await bench.run()
        left = bench.taker.left_in
        assert left == list(range(left[0], left[0] + len(left)))
        beats_in = max(1, -(-size // bench.width))
        # The last beat in, two steps for the header, the read, the output.
        assert left[0] - bench.sender.taken_in[beats_in - 1] == 5


@cocotb.test()
async def the_checksum_is_right_for_every_carry(dut) -> None:
    """Addresses at which the sum of the header's words overflows by every amount, and twice."""
    chance = random.Random(7)
    await begin(dut, ["s_axis_tvalid", "m_axis_tready", "entry_valid", "entry", "sender"])
    carries, twice = set(), 0
    # The last one: with ToS 0x80, all but the carry are ones.
    for words in ("", "ffff", "ffffffff", "ffffffffffff", "ffffffffffffffff", "ffff3a41"):
        bench = Bench(dut, chance)
        ones = bytes.fromhex(words)
        bench.own = Address(bytes(6), ones[:4].ljust(4, b"\0"), 0)
        dut.sender.value = word(bench.own)
        other = ones[4:].ljust(4, b"\0")
        bench.table.entries = {0: Address(bytes(6), other, 0)}
        for tos in range(256):
            bench.offer(bytes(18), tos, 1)
        await bench.run()
        for frame in bench.taker.frames:
            assert checksum(frame.body[14:34]) == 0
            total = sum(
                int.from_bytes(frame.body[at : at + 2], "big")
                for at in range(14, 34, 2)
                if at != 24
            )
            carries.add(total >> 16)
            twice += (total & 0xFFFF) + (total >> 16) > 0xFFFF
    assert carries >= {0, 1, 2, 3, 4}
    assert twice, "a carry of a carry"
