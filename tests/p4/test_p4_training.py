"""Real workers and a real server at the ends of the chain."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from p4board import Board
from p4chain import (
    ANSWER,
    BYPASS,
    GROUP,
    OWN,
    SERVERS,
    SWITCH,
    UPDATE,
    WORKERS,
    before,
    behind,
)
from p4frames import WORKER, Frame, down, ip, received

from olaf._olaf import Engine


def train(
    who: dict[str, int],
    to_server: Callable[[bytes], bytes],
    to_worker: Callable[[bytes], bytes],
    until: Callable[[Engine], bool],
) -> Engine:
    """A real worker joins a real server and pushes; ``to_server`` and ``to_worker`` are the way."""
    worker = Engine("worker", json.dumps({"cluster": 77, "switch": 9, **who}), life=11)
    server = Engine("server", "{}", life=3)
    worker.join(0, np.zeros(8, np.float32))
    for step in range(2000):
        now = step * 1_000_000
        for engine in (worker, server):
            if (due := engine.poll_timeout()) is not None and due <= now:
                engine.handle_timeout(now)
            while (event := engine.poll_event()) is not None:
                if event["event"] == "joined":
                    worker.push(now, np.ones(8, np.float32), reward=1.0)
        while (sent := worker.poll_transmit(now)) is not None:
            server.handle_packet(now, 1, to_server(sent[1]))
        while (sent := server.poll_transmit(now)) is not None:
            worker.handle_packet(now, 9, to_worker(sent[1]))
        if until(worker):
            return worker
    raise AssertionError("two seconds of virtual time were not enough")


@pytest.mark.parametrize("segment_lanes", [2208, 3])
def test_updates_of_a_real_worker_get_its_identity(segment_lanes: int) -> None:
    block = before()
    block.table("Before.identify.clusters").add((3, 77), "in_group", 6)
    segments: list[int] = []

    def up(data: bytes) -> bytes:
        user, out = block.process(Frame(data).emit())
        assert out == (data if user["class"] == UPDATE else Frame(data).emit())
        if user["class"] == UPDATE:
            segments.append(user["segment"])
            found = {name: user[name] for name in ("group", "job", "cluster", "worker")}
            assert found == {"group": 6, "job": 3, "cluster": 77, "worker": 1234567}
        return data

    who = {"job": 3, "worker": 1234567, "segment_lanes": segment_lanes}
    train(who, up, bytes, lambda _: bool(segments))
    assert sorted(segments) == list(range(-(-8 // segment_lanes)))


def test_a_worker_trains_through_the_chain_and_hears_of_its_queue() -> None:
    """Both blocks stand between a real worker and a real server; the queue holds nothing back."""
    first, second = before(), behind()
    first.table("Before.identify.clusters").add((3, 77), "in_group", GROUP)
    status = {name: value for name, value in vars(OWN).items() if name != "switches"}
    classes: list[int] = []

    def through(frame: Frame) -> bytes:
        user, between = first.process(frame.emit())
        assert between is not None
        classes.append(user["class"])
        _, out = second.process(between, **{**user, **status})
        assert out is not None
        return received(out)[0]

    pulled = np.zeros(8, np.float32)
    worker = train(
        {"job": 3, "worker": 5},
        lambda data: through(Frame(data, source=WORKER)),
        lambda data: through(down(data)),
        lambda worker: worker.pull(pulled, newer_than=1) is not None,
    )
    assert pulled.all(), "the server applied the update, and the worker has the model"
    assert set(classes) == {BYPASS, UPDATE, ANSWER}
    report = worker.report(2_000_000_000)
    assert report["queue"] == vars(replace(OWN, switches=1))
    assert (report["acknowledged"], report["refused"]) == (1, {})


STRANGER = "10.0.0.253"
PEERS = {STRANGER: 7, SWITCH[1]: 9, SERVERS[3][0][1]: 1, WORKERS[0][1]: 11, WORKERS[1][1]: 12}
"""Numbers of the addresses, for the engines."""


@dataclass
class Network:
    """Two workers, a switch in software that passes their joins on, and a server; all frames of
    both directions pass the blocks. The board in their midst merges the updates."""

    board: Board = field(default_factory=Board)
    classes: set[int] = field(default_factory=set)
    to_server: list[bytes] = field(default_factory=list)
    """Updates that the server received."""

    def __post_init__(self) -> None:
        self.first, self.second = before(), behind()
        self.first.table("Before.identify.clusters").add((3, 77), "in_group", GROUP)
        senders = self.first.table("Before.identify.senders")
        senders.add((ip(WORKERS[1][1]),), "worker")
        senders.add((ip(SERVERS[3][0][1]),), "server")
        who = {"job": 3, "cluster": 77, "switch": 9}
        self.workers = [
            Engine("worker", json.dumps({**who, "worker": number}), life=number)
            for number in (5, 6)
        ]
        self.server = Engine("server", "{}", life=3)
        self.switch = Engine("switch", json.dumps({"server": 1}), life=4)
        self.pending: list[tuple[dict[str, int], bytes]] = []

    def at(self, peer: int) -> tuple[str, int]:
        """Address and port."""
        address = next(address for address, number in PEERS.items() if number == peer)
        places = [SWITCH, (0, STRANGER, 1), SERVERS[3][0], *WORKERS]
        return address, next(port for _, place, port in places if place == address)

    def send(self, now: int, sender: int, to: int, payload: bytes) -> None:
        """A frame meets the first block; what bypasses arrives at once."""
        (source, own_port), (destination, port) = self.at(sender), self.at(to)
        frame = Frame(payload, source=source, destination=destination, ports=(own_port, port))
        user, out = self.first.process(frame.emit())
        assert out is not None
        self.classes.add(user["class"])
        if user["class"] == UPDATE:
            self.board.arrive(user, out)
        else:
            self.leave(now, *self.board.around(user, out))

    def leave(self, now: int, user: dict[str, int], body: bytes) -> None:
        """A frame leaves the board and meets the second block; each copy, if it is an answer."""
        for copy in range(2 if user["class"] == ANSWER else 1):
            _, out = self.second.process(body, **{**user, "copy": copy})
            assert out is not None
            if user["class"] == UPDATE:
                self.to_server.append(body)
            sender, to = (PEERS[".".join(map(str, out[at : at + 4]))] for at in (26, 30))
            self.deliver(now, sender, to, received(out)[0])

    def deliver(self, now: int, sender: int, to: int, payload: bytes) -> None:
        if to == 1:
            self.server.handle_packet(now, sender, payload)
        elif to == 9:
            self.switch.handle_packet(now, sender, payload, 0 if sender == 1 else 1)
        elif to > 10:
            self.workers[to - 11].handle_packet(now, 9, payload)

    def step(self, now: int) -> None:
        engines = [(self.server, 1, 1), (self.switch, 9, 2), *(
            (worker, 11 + at, 1) for at, worker in enumerate(self.workers)
        )]  # fmt: skip
        for engine, own, ports in engines:
            if (due := engine.poll_timeout()) is not None and due <= now:
                engine.handle_timeout(now)
            for port in range(ports):
                while (sent := engine.poll_transmit(now, port)) is not None:
                    for to in sent[0]:
                        self.send(now, own, to, sent[1])


def push_and_pull(network: Network, ticks: int) -> list[NDArray[np.float32]]:
    """Both workers push at the same time. Ends when both have a newer model, or with the time."""
    pulled = [np.zeros(8, np.float32) for _ in network.workers]
    for worker in network.workers:
        worker.join(0, pulled[0])
    joined, newer = 0, set[int]()
    for tick in range(ticks):
        now = tick * 1_000_000
        network.step(now)
        for worker in network.workers:
            while (event := worker.poll_event()) is not None:
                if event["event"] == "joined":
                    joined += 1
                    if joined == len(network.workers):
                        for of, other in enumerate(network.workers):
                            other.push(now, np.full(8, 1 + of, np.float32), reward=1.0)
        network.step(now)
        for user, datagram in network.board.drain():
            network.leave(now, user, datagram)
        for at, worker in enumerate(network.workers):
            if worker.pull(pulled[at], newer_than=1) is not None:
                newer.add(at)
        if len(newer) == len(network.workers):
            break
    return pulled


def test_workers_train_through_the_board_that_merges_their_updates() -> None:
    """The server knows the board by the address of the switch that passes the joins on."""
    network = Network()
    first, second = push_and_pull(network, 2000)
    assert network.board.fates == ["appended", "merged"]
    assert len(network.to_server) == 1, "one datagram for two workers"
    assert network.classes == {BYPASS, UPDATE, ANSWER}
    assert first.any()
    assert np.array_equal(first, second)
    report = network.server.report(2_000_000_000)
    [job] = report["jobs"]
    assert job["fates"]["delivered_merged"] == 2
    assert report["arrivals"]["hops"][0]["life"] == network.board.session
    for worker in network.workers:
        assert worker.report(2_000_000_000)["queue"]["slots"] == OWN.slots


def test_a_server_takes_no_updates_from_an_address_that_passed_no_joins_on() -> None:
    network = Network()
    servers = network.second.table("Behind.wrap.servers")
    _, arguments = servers.rows[3,]
    servers.add((3,), "to_server", arguments[0], ip(STRANGER), *arguments[2:])
    first, second = push_and_pull(network, 50)
    assert len(network.to_server) > 0
    [job] = network.server.report(50_000_000)["jobs"]
    assert set(job["fates"]["rejected"]) == {"unknown_peer"}
    assert not first.any()
    assert not second.any()
