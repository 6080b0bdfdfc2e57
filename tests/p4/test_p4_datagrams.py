"""Updates in the whole chain: frames before the queue, datagrams at it, new frames behind it."""

from __future__ import annotations

import json
import random
import struct
from collections import Counter

import numpy as np
from p4board import UPDATE_HEADER, Board
from p4chain import (
    ANSWER,
    BYPASS,
    DOWN,
    GROUP,
    NAMES,
    OWN,
    QUEUE,
    SERVERS,
    UP,
    UPDATE,
    add_server,
    before,
    behind,
    departed,
    packed,
    v1model,
)
from p4frames import WORKER, Frame, message, put, received

from olaf._olaf import Engine

FLOWS = [(job, cluster) for job in SERVERS for cluster in (0, 7)]
SIZES = (1, 2, 3, 7, 8, 366, 2208, 16348)
STATUS = {name: value for name, value in vars(OWN).items() if name != "switches"}


def some_update(chance: random.Random, sizes: tuple[int, ...] = SIZES) -> bytes:
    """An update of any fields that olaf-wire reads. One in ten brings another size to its flow."""
    job, cluster = chance.choice(FLOWS)
    segment = chance.randrange(2)
    at = FLOWS.index((job, cluster)) * 2 + segment
    lanes = sizes[at % len(sizes)] if chance.random() < 0.9 else chance.choice(sizes)
    oldest, version = chance.randrange(1 << 40), chance.randrange(1 << 20)
    header = UPDATE_HEADER.pack(
        *(b"OLAF", 3, 1, 0, job, cluster, chance.randrange(3), chance.getrandbits(32)),
        *(chance.getrandbits(32), chance.getrandbits(32), segment, 2),
        *(oldest, oldest + chance.randrange(1 << 33), version, version + chance.randrange(9)),
        *(chance.choice((1, 1, 1, 2, 70000)), lanes),
        *(chance.uniform(0.1, 9), chance.uniform(-5, 5), chance.choice((0, 1, 254, 255))),
        chance.getrandbits(32),
    )
    drawn = np.random.default_rng(chance.getrandbits(32)).normal(size=lanes)
    return header + drawn.astype("<f4").tobytes()


def contributors(datagram: bytes) -> int:
    return int.from_bytes(datagram[64:68], "big")


def test_updates_pass_the_queue_as_datagrams_and_leave_as_frames() -> None:
    chance = random.Random(36)
    first, second, switch, board = before(), behind(), v1model(), Board(slots=4)
    reader = Engine("switch", json.dumps({"server": 1}))
    for clusters in (
        first.table("Before.identify.clusters"),
        switch.table("OlafIngress.identify.clusters"),
    ):
        for job, cluster in FLOWS:
            clusters.add((job, cluster), "in_group", GROUP)
    came: Counter[str] = Counter()
    left, sizes = 0, set()
    departing = None
    for _ in range(400):
        if chance.random() < 0.6:
            datagram = some_update(chance)
            frame = Frame(datagram, source=WORKER, with_checksum=chance.random() < 0.5).emit()
            user, to_queue = first.process(frame)
            assert to_queue == datagram, "the bytes of the UDP payload, and no others"
            assert reader.handle_packet(1, 7, datagram, 1) == "unknown_worker", "it reads it"
            assert switch.process(UP, frame) == [(QUEUE, packed(user) + datagram)]
            board.arrive(user, to_queue)
            came[board.fates[-1]] += contributors(datagram)
        elif departing is None:
            departing = board.begin_departure()
        else:
            user, datagram = departing
            out_user, out = second.process(datagram, **user)
            assert out is not None
            assert out == departed(datagram)
            assert received(out) == (datagram, SERVERS[user_job(datagram)][1])
            assert out_user == user
            assert switch.process(QUEUE, packed(user) + datagram) == [(DOWN, out)]
            left += contributors(datagram)
            sizes.add(len(datagram))
            board.end_departure()
            departing = None
    assert set(came) == {"appended", "merged", "replaced", "dropped", "wrong_size"}
    assert min(Counter(board.fates).values()) >= 5
    assert left <= came["appended"] + came["merged"] + came["replaced"]
    assert len(sizes) > 5


def user_job(datagram: bytes) -> int:
    return int.from_bytes(datagram[8:12], "big")


def test_each_number_of_lanes_has_its_lengths_and_checksum() -> None:
    block = behind()
    for lanes in (1, 2, 255, 256, 4096, 8191, 8192, 16347, 16348):
        for job in SERVERS:
            datagram = put(put(message("update")["data"], 8, "I", job), 68, "I", lanes)[:96]
            datagram += random.Random(lanes).randbytes(4 * lanes)
            _, out = block.process(datagram, **{"class": UPDATE})
            assert out == departed(datagram)
            assert received(out) == (datagram, SERVERS[job][1])


def test_any_addresses_give_a_right_checksum() -> None:
    """Also those in which both folds of the sum carry: its low word is 0xffff, with words above."""
    chance = random.Random(8)
    block = behind()
    servers = block.table("Behind.wrap.servers")
    datagram = message("update")["data"]
    edges = [0xFFFF_FFFF, 0xFFFF_0000, 0, 0x0000_FFFF]
    for step in range(200):
        addresses = [chance.choice([*edges, chance.getrandbits(32)]) for _ in range(2)]
        macs = [chance.getrandbits(48) for _ in range(2)]
        ports = [chance.getrandbits(16) for _ in range(2)]
        traffic_class = step % 256
        if step % 2:
            length = 28 + len(datagram)
            words = [0x4500 + traffic_class, length, 0x4000, 0x4011, addresses[1] >> 16]
            words += [addresses[0] >> 16, addresses[0] & 0xFFFF]
            addresses[1] = addresses[1] >> 16 << 16 | ~sum(words) & 0xFFFF
        own, to = zip(macs, addresses, ports, strict=True)
        servers.add((message("update")["job"],), "to_server", *own, *to, traffic_class)
        _, out = block.process(datagram, **{"class": UPDATE})
        assert out is not None
        assert received(out) == (datagram, traffic_class)
        found = struct.unpack("!6s6s14xIIHH", out[:38])
        assert found == (
            macs[1].to_bytes(6, "big"), macs[0].to_bytes(6, "big"), *addresses, *ports,
        )  # fmt: skip


def test_an_update_without_a_server_is_dropped() -> None:
    datagram = message("update")["data"]
    job = message("update")["job"]
    block, switch = behind(), v1model()
    user = {**dict.fromkeys(NAMES, 0), "class": UPDATE, **STATUS}
    at_queue = packed(user) + datagram
    tables = (block.table("Behind.wrap.servers"), switch.table("OlafEgress.wrap.servers"))
    for servers in tables:
        servers.remove((job,))
    assert block.process(datagram, **user)[1] is None
    assert switch.process(QUEUE, at_queue) == []
    for servers in tables:  # the job begins while the chain runs
        add_server(servers, job)
    assert block.process(datagram, **user)[1] == departed(datagram)
    assert switch.process(QUEUE, at_queue) == [(DOWN, departed(datagram))]
    switch.table("OlafIngress.wires").remove((QUEUE,))  # v1model: the queue's link has no port
    assert switch.process(QUEUE, at_queue) == []


def test_only_updates_get_headers() -> None:
    """The queue sends nothing else with class 1. If it did, nobody would know its length."""
    update, answer = message("update")["data"], message("model")["data"]
    other_version = update[:4] + b"\4" + update[5:]
    wrong = [b"", update[:95], answer, other_version, put(update, 68, "I", 0),
             put(update, 68, "I", 16349), Frame(update).emit()]  # fmt: skip
    user = {**dict.fromkeys(NAMES, 0), "class": UPDATE}
    for datagram in wrong:
        assert behind().process(datagram, **user)[1] is None
        assert v1model().process(QUEUE, packed(user) + datagram) == []


def test_only_the_signal_makes_a_departing_update() -> None:
    """A message without headers that comes with another class is a frame that nobody knows."""
    update, answer = message("update")["data"], message("model")["data"]
    for datagram in (update, answer):
        assert behind().process(datagram, **{"class": BYPASS, "group": GROUP})[1] == datagram
        assert behind().process(datagram, **{"class": ANSWER, "group": GROUP})[1] is None
        assert before().process(datagram, **{"class": UPDATE})[1] == datagram
