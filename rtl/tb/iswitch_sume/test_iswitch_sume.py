"""`iswitch_sume`: tuser of the reference switch, on whole frames that go in and come out."""

from __future__ import annotations

import random

import axil
import cocotb
from bench import simulate
from cocotb.clock import Clock
from datagrams import Address, Datagram, some_address
from iswitch_traffic import CONTROL_CLASS, DATA_CLASS, floats, join, seg
from streams import Frame, Sender, Taker, run, tick

SOURCE, DESTINATION = 16, 24
PORTS = 4
# Of tuser, above the ports: bits that mean nothing here and must stay.
ABOVE = 0xABCDEF << 32


def test_sume() -> None:
    simulate("iswitch_sume", "test_iswitch_sume")


def network(port: int) -> int:
    return 1 << 2 * port


def host(port: int) -> int:
    return 2 << 2 * port


def user(body: bytes, source: int, destination: int = 0) -> int:
    return destination << DESTINATION | source << SOURCE | len(body)


class Control(Taker):
    """Notes which frames are for the control plane."""

    def __init__(self, dut, chance: random.Random) -> None:
        super().__init__(dut, "m_axis", chance)
        self.controls: list[bool] = []

    def look(self, cycle: int) -> None:
        before = len(self.frames)
        super().look(cycle)
        if len(self.frames) > before:
            self.controls.append(self.dut.m_axis_control.value == 1)


class Bench:
    """The switch with four workers, whose addresses it knows."""

    def __init__(self, dut) -> None:
        self.dut, self.chance = dut, random.Random(3)
        self.own = some_address(self.chance)
        self.workers = [some_address(self.chance) for _ in range(PORTS)]
        self.rx = [
            Sender(dut, f"s_axis_{port}", self.chance, share=0.8) for port in range(PORTS + 1)
        ]
        self.out = Control(dut, self.chance)

    async def begin(self) -> None:
        dut = self.dut
        cocotb.start_soon(Clock(dut.axis_aclk, 5, unit="ns").start(start_high=False))
        dut.axis_resetn.value, dut.epoch.value, dut.m_axis_tready.value = 0, 9, 0
        dut.proofs.value = 0
        for sender in self.rx:
            sender.pin("tvalid").value = 0
        for name in axil.IDLE:
            getattr(dut, name).value = 0
        for _ in range(4):
            await tick(dut)
        dut.axis_resetn.value = 1
        for number, address in enumerate([self.own, *self.workers]):
            three = (address.mac, address.ip, address.port)
            await axil.set_address(dut, number, three, 0x2000)

    def frame(self, source: Address, tos: int, payload: bytes) -> bytes:
        return Datagram(source, self.own, tos, payload).frame()

    async def pass_through(self) -> list[tuple[Frame, bool]]:
        """Frames that came out, and whether each is for the control plane."""
        await run(self.dut, [*self.rx, self.out], most=3000)
        found = list(zip(self.out.frames, self.out.controls, strict=True))
        self.out.frames, self.out.controls = [], []
        return found


@cocotb.test()
async def joins_go_to_the_host_and_sums_to_the_workers(dut) -> None:
    bench = Bench(dut)
    await bench.begin()
    expected = []
    for port, worker in enumerate(bench.workers):
        body = bench.frame(worker, CONTROL_CLASS, join(7, port, PORTS))
        bench.rx[port].send([Frame(body, ABOVE | user(body, network(port)))])
        [(frame, control)] = await bench.pass_through()
        assert frame == Frame(body, ABOVE | user(body, network(port), host(port)))
        assert control
    one = seg(9, 0) + b"\0\0\x80\x3f" * 10
    for port, worker in enumerate(bench.workers):
        body = bench.frame(worker, DATA_CLASS, one)
        bench.rx[port].send([Frame(body, user(body, network(port)))])
    expected = []
    for port, worker in enumerate(bench.workers):
        four = one[:8] + b"\0\0\x80\x40" * 10
        body = Datagram(bench.own, worker, DATA_CLASS | 2, four).frame()
        expected.append((Frame(body, user(body, host(0), network(port))), False))
    assert await bench.pass_through() == expected


@cocotb.test()
async def other_frames_keep_their_tuser(dut) -> None:
    bench = Bench(dut)
    await bench.begin()
    expected = []
    for port, worker in enumerate(bench.workers):
        body = bench.frame(worker, 0, floats(bench.chance, 9))
        frame = Frame(body, ABOVE | user(body, network(port), 0x55))
        bench.rx[port].send([frame])
        expected.append(frame)
    # The control plane answers a worker.
    answer = Datagram(bench.own, bench.workers[2], CONTROL_CLASS, bytes(48)).frame()
    expected.append(Frame(answer, ABOVE | user(answer, host(2), network(2))))
    bench.rx[PORTS].send(expected[-1:])
    found = await bench.pass_through()
    assert sorted(found, key=str) == sorted(((frame, False) for frame in expected), key=str)


@cocotb.test()
async def an_order_of_the_host_is_one_of_its_port(dut) -> None:
    """The host ends port 1's job in its name: nothing comes of what the workers send then."""
    bench = Bench(dut)
    await bench.begin()
    for port in (0, 1):
        body = bench.frame(bench.workers[port], CONTROL_CLASS, join(7, port, 2))
        bench.rx[port].send([Frame(body, user(body, network(port)))])
    assert len(await bench.pass_through()) == 2
    for orders, results in ((0, 2), (1, 0)):
        for port in range(PORTS):
            halt = bytes([7, 9, 2, 0]) + bytes(12)
            body = bench.frame(bench.own, CONTROL_CLASS, halt)
            # Of ports without a member it means nothing.
            if orders or port > 1:
                bench.rx[PORTS].send([Frame(body, user(body, host(port)))])
        assert await bench.pass_through() == []
        for port in (0, 1):
            body = bench.frame(bench.workers[port], DATA_CLASS, seg(9, orders) + bytes(20))
            bench.rx[port].send([Frame(body, user(body, network(port)))])
        assert len(await bench.pass_through()) == results
