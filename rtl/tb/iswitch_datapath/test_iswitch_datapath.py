"""Whole Ethernet frames through the way of Figure 6, beside the software switch."""

from __future__ import annotations

import os
import random
from collections import Counter, deque
from dataclasses import dataclass, field, replace

import axil
import cocotb
import datagrams
import pytest
from bench import simulate
from cocotb.triggers import Timer
from datagrams import Address, fate, payload, some_address, spoilt
from iswitch_traffic import (
    CONTROL_CLASS,
    COUNTERS,
    DATA_CLASS,
    EPOCH,
    HALT,
    JOIN,
    SET_H,
    Datagram,
    Golden,
    Traffic,
    check_counters,
    f32,
    floats,
    join,
    needs_engine,
    seg,
)
from streams import Beat, Frame, Sender, Taker, Watcher, beats, begin, run, tick

USER = 24
WAY = (
    *datagrams.FATES,
    *("copied", "copy_too_long", "result_framing", "result_too_long", "result_no_receiver"),
    *("result_kept", "sent", "no_entry"),
)
TAGGED = {CONTROL_CLASS, DATA_CLASS}


@needs_engine
@pytest.mark.parametrize(
    ("ports", "slots", "lanes", "most", "cycles"), [(4, 4, 8, 4, 700), (3, 2, 16, 3, 400)]
)
def test_datapath(ports: int, slots: int, lanes: int, most: int, cycles: int) -> None:
    parameters = {"PORTS": ports, "SLOTS": slots, "LANES": lanes, "BEATS": most}
    parameters |= {"DEPTH": 16, "COPIES": 8, "BLOCK": 0, "USER": USER}
    simulate("iswitch_datapath", "test_iswitch_datapath", parameters, cycles=cycles)


@dataclass
class PortsOfADesign:
    """Puts the next beat of each port's queue on pins that all ports share."""

    dut: object
    ports: int
    width: int
    chance: random.Random
    share: float
    waiting: list[deque[Beat]]
    offers: int = 0

    def send(self, port: int, frame: Frame) -> None:
        self.waiting[port].extend(beats(frame, self.width))

    def put(self) -> None:
        data = keep = last = user = 0
        for port in range(self.ports):
            if self.waiting[port] and self.chance.random() < self.share:
                self.offers |= 1 << port
            if self.offers >> port & 1:
                beat = self.waiting[port][0]
                data |= beat.data << 8 * self.width * port
                keep |= beat.keep << self.width * port
                last |= beat.last << port
                user |= beat.user << USER * port
        dut = self.dut
        dut.s_axis_tvalid.value, dut.s_axis_tdata.value = self.offers, data
        dut.s_axis_tkeep.value, dut.s_axis_tlast.value, dut.s_axis_tuser.value = keep, last, user

    def look(self, cycle: int) -> None:
        del cycle
        taken = self.offers & self.dut.s_axis_tready.value.to_unsigned()
        for port in range(self.ports):
            if taken >> port & 1:
                self.waiting[port].popleft()
        self.offers &= ~taken

    def busy(self) -> bool:
        return any(self.waiting)


@dataclass
class Out(Taker):
    """To Packet Process: what kind a frame is stands beside tuser."""

    kinds: list[tuple[bool, bool]] = field(default_factory=list)

    def look(self, cycle: int) -> None:
        before = len(self.frames)
        kind = self.dut.m_axis_result.value == 1, self.dut.m_axis_control.value == 1
        super().look(cycle)
        if len(self.frames) > before:
            self.kinds.append(kind)

    def of(self, kind: tuple[bool, bool]) -> list[Frame]:
        return [frame for frame, its in zip(self.frames, self.kinds, strict=True) if its == kind]


RESULT, COPY, REGULAR = (True, False), (False, True), (False, False)


class Bench:
    def __init__(self, dut, chance: random.Random) -> None:
        self.dut, self.chance = dut, chance
        self.ports, slots = int(os.environ["BENCH_PORTS"]), int(os.environ["BENCH_SLOTS"])
        self.width, self.most = len(dut.m_axis_tkeep), int(os.environ["BENCH_BEATS"])
        self.golden = Golden(slots, EPOCH)
        self.traffic = Traffic(
            chance, self.ports, slots, self.ports, self.most * self.width // 4 - 2, self.golden
        )
        waiting = [deque() for _ in range(self.ports)]
        self.rx = PortsOfADesign(dut, self.ports, self.width, chance, 1.0, waiting)
        self.host = Sender(dut, "s_host", chance)
        self.out = Out(dut, "m_axis", chance)
        self.own = some_address(chance)
        self.workers: dict[int, Address] = {}
        self.to_send = 0
        # What was sent to whom: all of a port in order, and what has to come out.
        self.sent: list[list[Frame]] = [[] for _ in range(self.ports)]
        self.regular: list[list[Frame]] = [[] for _ in range(self.ports + 1)]
        # Of each beat that the host has sent.
        self.host_ports: list[int] = []
        self.injected: deque[tuple[bytes, int]] = deque()
        self.numbers: Counter[str] = Counter()
        self.copies: list[Frame] = []
        self.results: list[Frame] = []
        self.datagrams = 0
        self.partial = b""
        # Addresses have to be proved: the model gets the Joins of the host alone.
        self.proofs = False

    async def begin(self) -> None:
        inputs = ["s_axis_tvalid", "s_host_tvalid", "m_axis_tready", "s_host_port", *axil.IDLE]
        self.dut.epoch.value, self.dut.proofs.value = EPOCH, self.proofs
        await begin(self.dut, inputs)
        await self.address(0, self.own)

    async def address(self, number: int, entry: Address | None) -> None:
        three = (entry.mac, entry.ip, entry.port) if entry else None
        await axil.set_address(self.dut, number, three, 0x2000)

    async def know(self, port: int, entry: Address | None) -> None:
        """Write a worker's address, or take it away."""
        await self.address(1 + port, entry)
        self.workers.pop(port, None)
        if entry:
            self.workers[port] = entry

    # ---- What is sent.

    def feed(self) -> None:
        """Keep two frames on their way at each port; the golden model knows what has arrived."""
        while self.to_send and sum(len(waiting) for waiting in self.rx.waiting) < 8 * self.ports:
            self.to_send -= 1
            self.some_frame()

    def some_frame(self) -> None:
        chance = self.chance
        if chance.random() < 0.15:
            self.from_host()
        elif chance.random() < 0.2:
            port = chance.randrange(self.ports)
            self.from_port(port, self.some_regular())
        else:
            datagram = self.traffic.datagram()
            port = datagram.ports.bit_length() - 1
            if chance.random() < 0.04:
                # Longer than a copy may be, or than all stores.
                datagram = replace(datagram, body=chance.randbytes(chance.choice([300, 700, 1200])))
            whole = self.frame_of(datagram)
            body = whole.frame()
            if chance.random() < 0.1:
                body = spoilt(chance, whole)
            self.from_port(port, body)

    def frame_of(self, datagram: Datagram) -> datagrams.Datagram:
        tos = CONTROL_CLASS if datagram.control else DATA_CLASS
        tos |= 3 if datagram.marked else self.chance.randrange(3)
        port = datagram.ports.bit_length() - 1
        source = self.workers.get(port) or some_address(self.chance)
        return datagrams.Datagram(source, self.own, tos, datagram.body)

    def some_regular(self) -> bytes:
        chance = self.chance
        if chance.random() < 0.5:
            body = chance.randbytes(chance.choice([14, 60, 64, 100, 300]))
            return body[:12] + b"\x08\x06" + body[14:]
        tos = chance.choice([0, 0x90, 0xFF])
        ends = some_address(chance), some_address(chance)
        return datagrams.Datagram(*ends, tos, chance.randbytes(40)).frame()

    def from_port(self, port: int, body: bytes) -> None:
        frame = Frame(body, self.chance.getrandbits(USER))
        self.rx.send(port, frame)
        if is_tagged(body):
            self.sent[port].append(frame)
        else:
            self.regular[port].append(frame)

    def from_host(self) -> None:
        """An answer to a worker, anything, or an order to the accelerator."""
        chance = self.chance
        user = chance.getrandbits(USER)
        port = chance.randrange(self.ports)
        if chance.random() < 0.5:
            # Whatever its class, it is not for the switch.
            tos = chance.choice([*TAGGED, 0])
            body = datagrams.Datagram(
                self.own, some_address(chance), tos, chance.randbytes(40)
            ).frame()
            self.regular[self.ports].append(Frame(body, user))
        else:
            verb = SET_H if chance.random() < 0.8 else HALT
            generation = self.golden.generation
            message = bytes([verb, generation, 0, 0]) + (1 + chance.randrange(self.ports)).to_bytes(
                4, "big"
            )
            if verb == HALT:
                message = bytes([HALT, generation, 2, 0]) + bytes(12)
            body = datagrams.Datagram(self.own, self.own, CONTROL_CLASS, message).frame()
            self.injected.append((body, port))
        self.host_sends(Frame(body, user), port)

    def order(self, port: int, message: bytes) -> None:
        """A control message to the accelerator, in the name of a port."""
        body = datagrams.Datagram(self.own, self.own, CONTROL_CLASS, message).frame()
        self.injected.append((body, port))
        self.host_sends(Frame(body, 0), port)

    def host_sends(self, frame: Frame, port: int) -> None:
        for beat in beats(frame, self.width):
            self.host.waiting.append(beat)
        self.host_ports.extend([port] * len(beats(frame, self.width)))

    # ---- What arrives at the accelerator, in which order.

    def watch(self) -> None:
        """The order that the choices made; the bytes are those that were sent."""
        way = self.dut
        if way.way_valid.value == 1 and way.way_ready.value == 1:
            keep = way.way_keep.value.to_unsigned()
            piece = way.way_data.value.to_unsigned().to_bytes(self.width, "little")
            self.partial += piece[: keep.bit_length()]
            if way.way_last.value == 1:
                port = way.way_user.value.to_unsigned() & (1 << (self.ports - 1).bit_length()) - 1
                self.arrives(self.partial, port, way.way_queue.value == 1)
                self.partial = b""
        self.feed()

    def arrives(self, body: bytes, port: int, from_host: bool) -> None:
        if from_host:
            assert (body, port) == self.injected.popleft()
        else:
            frame = self.sent[port].pop(0)
            assert body == frame.body
            if body[15] & 0xFC == CONTROL_CLASS:
                fits = len(beats(frame, self.width)) <= int(os.environ["BENCH_COPIES"])
                self.numbers["copied" if fits else "copy_too_long"] += 1
                if fits:
                    self.copies.append(frame)
        found = fate(body, int(os.environ["BENCH_DEPTH"]) * self.width)
        self.numbers[found] += 1
        if found != "passed":
            return
        self.datagrams += 1
        control = body[15] & 0xFC == CONTROL_CLASS
        done = len(self.golden.sent)
        datagram = Datagram(payload(body), 1 << port, control, body[15] & 3 == 3)
        if self.proofs and control and not from_host and datagram.body[:1] == bytes([JOIN]):
            return
        self.golden.take(datagram, self.most * self.width)
        for out in self.golden.sent[done:]:
            if not out.control:
                self.expect(out)

    def expect(self, out: Datagram) -> None:
        self.numbers["result_kept"] += 1
        tos = DATA_CLASS | (3 if out.marked else 2)
        for port in range(self.ports):
            if out.ports >> port & 1:
                to = self.workers.get(port)
                self.numbers["sent" if to else "no_entry"] += 1
                if to:
                    body = datagrams.Datagram(self.own, to, tos, out.body).frame()
                    self.results.append(Frame(body, 1 << 16 + port | len(body)))

    # ---- All together.

    async def run(self, count: int, valid: float, ready: float) -> None:
        self.to_send = count
        self.rx.share = self.host.share = valid
        self.out.share = ready
        await run(
            self.dut,
            [self.rx, self.host, HostPort(self), self.out, Watcher(self.watch)],
            most=40 * count + 2_000,
            until=lambda: not self.to_send,
            quiet=150,
        )

    def check(self) -> None:
        for ours, theirs in zip(self.out.of(RESULT), self.results, strict=True):
            size = payload_end(theirs.body)
            assert ours.user == theirs.user
            # All but the floats, which may be NaNs of any bits in software.
            assert ours.body[:50] == theirs.body[:50]
            assert ours.body[size:] == theirs.body[size:]
            assert f32(ours.body[50:size]) == f32(theirs.body[50:size])
        assert self.out.of(COPY) == self.copies
        regular = self.out.of(REGULAR)
        assert Counter(regular) == Counter(frame for port in self.regular for frame in port)
        for frames in self.regular:
            remaining = iter(regular)
            assert all(frame in remaining for frame in frames), "in order"
        assert not any(self.sent)
        assert not self.injected


@dataclass
class HostPort:
    """The port in whose name the host's frame is."""

    bench: Bench

    def put(self) -> None:
        left = len(self.bench.host.waiting)
        if left:
            self.bench.dut.s_host_port.value = self.bench.host_ports[-left]

    def look(self, cycle: int) -> None:
        pass

    def busy(self) -> bool:
        return False


def payload_end(body: bytes) -> int:
    return 34 + int.from_bytes(body[38:40], "big")


def is_tagged(body: bytes) -> bool:
    return (
        len(body) >= 24
        and body[12:15] == b"\x08\x00\x45"
        and body[15] & 0xFC in TAGGED
        and (body[20] & 0x3F, body[21], body[23]) == (0, 0, 17)
    )


@cocotb.test()
async def frames_come_out_as_the_software_sends_them(dut) -> None:
    chance = random.Random(33)
    bench = Bench(dut, chance)
    await bench.begin()
    count = int(os.environ["BENCH_CYCLES"])
    for port in range(bench.ports):
        await bench.know(port, some_address(chance))
    await bench.run(count // 4, 1.0, 1.0)
    # The address of one worker is not known any more, another one has moved.
    await bench.know(0, None)
    await bench.know(1, some_address(chance))
    await bench.run(count // 4, 0.5, 1.0)
    await bench.run(count // 4, 1.0, 0.4)
    await bench.know(0, some_address(chance))
    await bench.run(count // 4, 0.8, 0.8)
    bench.check()
    way = await axil.counters(dut, WAY, 0x1000)
    assert way == {name: bench.numbers[name] for name in WAY}
    numbers = await axil.counters(dut, COUNTERS)
    check_counters(numbers, bench.golden.report(), bench.datagrams)
    if count >= 700:
        never = {"framing", "fragment", "result_framing", "result_too_long", "result_no_receiver"}
        missing = {name for name in WAY if way[name] == 0} - never
        assert not missing, f"the traffic had none of {missing}"
        assert numbers["results"] > 50
    # The blocks name each other.
    assert [(await axil.read(dut, base + 8))[1] for base in (0, 0x1000, 0x2000)] == [
        0x1000,
        0x2000,
        0,
    ]
    assert (await axil.read(dut, 0x3000))[0] == axil.DECERR


@cocotb.test()
async def results_and_other_frames_pass_while_the_accelerator_is_full(dut) -> None:
    """Packet Process stops for long; nothing is lost, and nothing waits for ever."""
    chance = random.Random(37)
    bench = Bench(dut, chance)
    await bench.begin()
    for port in range(bench.ports):
        await bench.know(port, some_address(chance))
    bench.out.share = 0.0
    bench.to_send = 120
    bench.feed()
    for cycle in range(600):
        for part in (bench.rx, bench.host, HostPort(bench), bench.out):
            part.put()
        await Timer(1, unit="ns")
        for part in (bench.rx, bench.host, bench.out, Watcher(bench.watch)):
            part.look(cycle)
        await tick(dut)
    assert bench.to_send, "the ports have to wait"
    await bench.run(bench.to_send, 1.0, 1.0)
    bench.check()


@cocotb.test()
async def where_addresses_have_to_be_proved_the_joins_of_the_host_count(dut) -> None:
    """The control plane sends the Join again whose number is that of the address."""
    chance = random.Random(41)
    bench = Bench(dut, chance)
    bench.proofs = True
    await bench.begin()
    everyone = range(bench.ports)
    for port in everyone:
        await bench.know(port, some_address(chance))
    joins = [join(7, 50 + port, bench.ports, number=9 + port) for port in everyone]
    for port in everyone:
        for message in (joins[port][:36], joins[port]):
            bench.from_port(port, bench.frame_of(Datagram(message, 1 << port, True, False)).frame())
    await bench.run(0, 1.0, 1.0)
    numbers = await axil.counters(dut, COUNTERS)
    assert (numbers["join"], numbers["began"]) == (2 * bench.ports, 0)
    for port in everyone:
        bench.order(port, joins[port])
    await bench.run(0, 1.0, 1.0)
    for port in everyone:
        packet = Datagram(seg(EPOCH, 0) + floats(chance, 6), 1 << port, False, False)
        bench.from_port(port, bench.frame_of(packet).frame())
    await bench.run(0, 1.0, 1.0)
    bench.check()
    numbers = await axil.counters(dut, COUNTERS)
    names = ("join", "malformed", "began", "results")
    assert [numbers[name] for name in names] == [3 * bench.ports, 0, 1, bench.ports]
