"""Frames through the P4 programs: identity before the queue, status and receivers behind it."""

from __future__ import annotations

import json
import random
import struct
from dataclasses import replace

import pytest
from p4chain import (
    ANSWER,
    BYPASS,
    DOWN,
    GROUP,
    OWN,
    QUEUE,
    SIGNAL,
    UP,
    UPDATE,
    WORKERS,
    before,
    behind,
    from_queue,
    signal,
    v1model,
)
from p4frames import SERVER, WORKER, Frame, Status, down, edges, ip, message, messages, mutants

from olaf._olaf import Engine

STRANGER = "10.0.0.77"


def answers() -> list[bytes]:
    return [message("acknowledgement")["data"], message("model")["data"]]


# Before the queue


def test_an_update_of_a_known_worker_gets_the_identity_of_the_vector() -> None:
    ours = message("update")
    frame = Frame(ours["data"], source=WORKER)
    user, out = before().process(frame.emit())
    assert out == ours["data"], "Ethernet, IPv4 and UDP are gone"
    identity = {name: ours[name] for name in ("job", "cluster", "worker", "segment")}
    assert user.items() >= {"class": UPDATE, "group": GROUP, "flow": frame.flow, **identity}.items()

    ((port, at_queue),) = v1model().process(UP, frame.emit())
    assert port == QUEUE
    assert at_queue[SIGNAL.size :] == ours["data"]
    assert signal(at_queue) == user


@pytest.mark.parametrize(
    ("kinds", "sender", "accepted", "peer"),
    [(("update",), WORKER, "unknown_worker", 7),
     (("acknowledgement", "model"), SERVER, "unknown_job", 1)],
)  # fmt: skip
def test_what_the_switch_refuses_bypasses(
    kinds: tuple[str, ...], sender: str, accepted: str, peer: int
) -> None:
    """The engine parses with olaf-wire. It knows no job: what it can read has one verdict."""
    chance = random.Random(17)
    engine = Engine("switch", json.dumps({"server": 1}))
    block = before()
    seen = {True: 0, False: 0}
    for kind in kinds:
        for data in [message(kind)["data"], *mutants(message(kind)["data"], 150, chance)]:
            if (message(kind)["job"], message(kind)["cluster"]) != struct.unpack(
                "!II", data[8:16].ljust(8, b"\0")
            ):
                continue  # another job bypasses, and is well-formed
            if data[5:6] not in {bytes([1]), bytes([2]), bytes([3])}:
                continue  # other kinds are read by both, but are nothing for the queue
            frame = Frame(data, source=sender).emit()
            user, out = block.process(frame)
            assert out == (data if user["class"] == UPDATE else frame)
            verdict = engine.handle_packet(1, peer, data, 1 if peer == 7 else 0)
            ours = data[5:6] == bytes([1]) if sender == WORKER else data[5:6] != bytes([1])
            readable = verdict == accepted and ours
            assert (user["class"] != BYPASS) == readable, (verdict, data.hex())
            seen[readable] += 1
    assert min(seen.values()) > 20, "both kinds of message were tried"


def test_the_edges_are_those_of_the_switch() -> None:
    engine = Engine("switch", json.dumps({"server": 1}))
    block = before()
    found = []
    for sender, data in edges():
        peer, port, accepted = (
            (7, 1, "unknown_worker") if sender == WORKER else (1, 0, "unknown_job")
        )
        readable = engine.handle_packet(1, peer, data, port) == accepted
        user, _ = block.process(Frame(data, source=sender).emit())
        assert (user["class"] != BYPASS) == readable, data[:112].hex()
        found.append(readable)
    assert found.count(True) > 10
    assert found.count(False) > 10


def test_only_known_senders_in_their_role_reach_the_queue() -> None:
    block = before()
    update, answer = message("update")["data"], message("model")["data"]
    for payload, source in [
        (update, STRANGER), (answer, STRANGER), (update, SERVER), (answer, WORKER),
    ]:  # fmt: skip
        frame = Frame(payload, source=source).emit()
        names = ("class", "group", "flow", "job", "cluster", "worker", "segment")
        user, out = block.process(frame, **dict.fromkeys(names, 2))  # what a board may have there
        assert [user[name] for name in names] == [0] * 7
        assert out == frame
        assert v1model().process(UP, frame) == [(DOWN, frame)], "bit for bit"
    for other in messages():
        if other["kind"] not in {"update", "acknowledgement", "model"}:
            for source in (WORKER, SERVER):
                frame = Frame(other["data"], source=source).emit()
                assert block.process(frame)[0]["class"] == BYPASS, other["kind"]
                assert v1model().process(UP, frame) == [(DOWN, frame)]


def test_frames_that_are_no_whole_datagrams_pass_untouched() -> None:
    block, switch = before(), v1model()
    good = Frame(message("update")["data"], source=WORKER)
    frames = [
        replace(good, fragment=0x2000).emit(),
        replace(good, fragment=3).emit(),
        replace(good, options=bytes(8)).emit(),
        replace(good, udp_length=8 + len(good.payload) + 4).emit(),
        replace(good, udp_length=20).emit(),
        good.emit()[:12] + b"\x86\xdd" + good.emit()[14:],
        good.emit()[:23] + b"\x06" + good.emit()[24:],
        bytes(60),
    ]
    for frame in frames + [good.emit()[:cut] for cut in range(14 + 20 + 8 + 96)]:
        user, out = block.process(frame)
        assert (user["class"], out) == (BYPASS, frame)
        assert switch.process(UP, frame) == [(DOWN, frame)]
    # Only v1model knows how long a frame is; docs/design/036-p4.md.
    lanes_missing = good.emit()[:-1]
    assert switch.process(UP, lanes_missing) == [(DOWN, lanes_missing)]
    assert block.process(lanes_missing)[0]["class"] == UPDATE
    cut_answer = down(answers()[1]).emit()[:-1]
    assert switch.process(DOWN, cut_answer) == [(UP, cut_answer)]
    # Bytes behind the datagram: the queue refuses such an update, an answer keeps them.
    longer = good.emit() + bytes(4)
    assert switch.process(UP, longer) == [(DOWN, longer)]
    assert block.process(longer)[1] == good.payload + bytes(4)
    ((port, at_queue),) = switch.process(DOWN, down(answers()[1]).emit() + bytes(4))
    assert port == QUEUE
    assert at_queue.endswith(down(answers()[1]).emit() + bytes(4))


def test_tables_change_while_the_chain_runs() -> None:
    block = before()
    ours = message("update")
    frame = Frame(ours["data"], source=STRANGER).emit()
    senders = block.table("Before.identify.senders")
    clusters = block.table("Before.identify.clusters")
    assert block.process(frame)[0]["class"] == BYPASS
    senders.add((ip(STRANGER),), "worker")
    assert block.process(frame)[0]["group"] == GROUP
    clusters.add((ours["job"], ours["cluster"]), "in_group", 12)  # the cluster moves to a new group
    assert block.process(frame)[0]["group"] == 12
    clusters.remove((ours["job"], ours["cluster"]))
    assert block.process(frame)[0]["class"] == BYPASS
    clusters.add((ours["job"], ours["cluster"]), "in_group", 0)  # no group
    assert block.process(frame)[0]["class"] == BYPASS
    clusters.add((ours["job"], ours["cluster"]), "in_group", 13)
    senders.remove((ip(STRANGER),))
    assert block.process(frame)[0]["class"] == BYPASS
    with pytest.raises(ValueError, match="no action `to`"):
        senders.add((1,), "to")
    with pytest.raises(ValueError, match="does not fit 32 bits"):
        senders.add((1 << 32,), "worker")
    while len(senders.rows) < 1024:
        senders.add((len(senders.rows),), "worker")
    with pytest.raises(ValueError, match="full"):
        senders.add((1024,), "worker")


# Behind the queue


@pytest.mark.parametrize("with_checksum", [True, False])
def test_answers_carry_the_status_and_right_checksums(with_checksum: bool) -> None:
    chance = random.Random(5)
    block, switch = behind(), v1model()
    for step in range(20):
        active, slots, used, own_active, own_slots = (
            chance.choice((0, 1, 8, 9, 65535, chance.randrange(65536))) for _ in range(5)
        )
        above = Status(
            active, slots, used, chance.randrange(1 << 32), switches=chance.choice((0, 1, 254, 255))
        )
        own_used = chance.choice((0, 7, 65535, 65536, (1 << 24) - 1))
        own = Status(own_active, own_slots, own_used, chance.randrange(1 << 32))
        payload = above.into(answers()[step % 2])
        frame = down(payload, with_checksum=with_checksum)
        stamped = above.passing(own).into(payload)
        told = {name: value for name, value in vars(own).items() if name != "switches"}
        for copy, receiver in enumerate(WORKERS):
            fields = {"class": ANSWER, "group": GROUP, "copy": copy, **told}
            assert block.process(frame.emit(), **fields)[1] == frame.to(*receiver, stamped).emit()

        ((port, at_queue),) = switch.process(DOWN, frame.emit())
        assert port == QUEUE
        assert at_queue[SIGNAL.size :] == frame.emit(), "stamped behind the queue alone"
        assert switch.process(QUEUE, from_queue(at_queue, own)) == [
            (port, frame.to(*receiver, stamped).emit())
            for port, receiver in zip((UP, 2), WORKERS, strict=True)
        ]


def test_of_two_queues_as_crowded_an_answer_tells_the_nearer_one() -> None:
    above = Status(active_clusters=16, slots=8, used=5, round_us=1, switches=1)
    own = Status(active_clusters=8, slots=4, used=2, round_us=1)
    fields = {name: value for name, value in vars(own).items() if name != "switches"}
    frame = down(above.into(answers()[0])).emit()
    _, out = behind().process(frame, **{"class": ANSWER, "group": GROUP, **fields})
    assert out is not None
    assert Status.of(out[42:]) == replace(own, switches=2)


def checksum(frame: bytes) -> int:
    return int.from_bytes(frame[40:42], "big")


@pytest.mark.parametrize("behind_both", [False, True])
def test_a_checksum_that_becomes_0_is_sent_as_ffff(behind_both: bool) -> None:
    """0 would say that there is none: behind `Stamp`, and behind `Readdress`."""
    mac, address, port = WORKERS[0]
    own = replace(OWN, active_clusters=60000)
    user = {name: value for name, value in vars(own).items() if name != "switches"}
    payload = answers()[1]
    above = Status.of(payload)
    stamped = down(above.passing(own).into(payload))
    sent = stamped.to(mac, address, port, stamped.payload) if behind_both else stamped
    # The last word of the lanes takes up what is missing.
    word = int.from_bytes(payload[-2:], "big") + checksum(sent.emit())
    payload = payload[:-2] + (word % 0xFFFF).to_bytes(2, "big")
    expected = above.passing(own).into(payload)
    at_edge = replace(sent, payload=expected).emit()
    assert checksum(at_edge) == 0xFFFF
    frame = down(payload).emit()
    _, out = behind().process(frame, **{"class": ANSWER, "group": GROUP, **user})
    assert out == down(payload).to(mac, address, port, expected).emit()


def test_the_status_of_the_vectors_is_where_olaf_wire_reads_it() -> None:
    for kind in ("acknowledgement", "model"):
        ours = message(kind)
        own = replace(OWN, active_clusters=65535)
        user = {name: value for name, value in vars(own).items() if name != "switches"}
        fields = {"class": ANSWER, "group": GROUP, "copy": 0, **user}
        _, out = behind().process(down(ours["data"]).emit(), **fields)
        assert out is not None
        assert Status.of(out[42:]) == Status(
            65535, 8, 3, max(ours["round_us"], 70_000), ours["switches"] + 1
        )


def test_a_stale_checksum_stays_wrong() -> None:
    """The new checksum follows from the old one. It hides no error from the receiver."""
    frame = bytearray(down(answers()[1]).emit())
    frame[-1] ^= 1
    fields = {"class": ANSWER, "group": GROUP, "active_clusters": 9, "slots": 8, "used": 3}
    _, out = behind().process(bytes(frame), **fields)
    assert out is not None
    payload = replace(OWN, round_us=0).into(bytes(frame[42:]))
    mac, address, port = WORKERS[0]
    right = down(answers()[1]).to(mac, address, port, payload).emit()
    assert out[40:42] != right[40:42]


def test_a_copy_without_a_receiver_is_dropped() -> None:
    frame = down(answers()[0]).emit()
    for group, copy in ((GROUP, 2), (GROUP + 1, 0)):
        fields = {"class": ANSWER, "group": group, "copy": copy}
        assert behind().process(frame, **fields)[1] is None
    switch = v1model()
    ((_, at_queue),) = switch.process(DOWN, frame)
    switch.table("OlafEgress.readdress.receivers").remove((GROUP, 1))  # a worker left the cluster
    assert [port for port, _ in switch.process(QUEUE, from_queue(at_queue, OWN))] == [UP]
    switch.table("OlafEgress.readdress.receivers").add((GROUP, 1), "to", 2, ip("10.0.0.3"), 9)
    assert [port for port, _ in switch.process(QUEUE, from_queue(at_queue, OWN))] == [UP, 2]


def test_strangers_leave_the_queue_unmodified() -> None:
    update = Frame(message("update")["data"], source=WORKER).emit()
    for frame in (update, b"anything", down(answers()[0]).emit()):
        assert behind().process(frame, group=GROUP, used=8)[1] == frame


def test_a_port_without_a_wire_drops() -> None:
    switch = v1model()
    frame = Frame(b"anything", source=STRANGER).emit()
    assert switch.process(3, frame) == []
    assert switch.process(QUEUE, b"too short for a signal") == []
    # The queue sends updates and answers alone.
    bypassing = SIGNAL.pack(BYPASS, GROUP, 0, 0, 0, 0, 0, b"\0\0\0", 0, 0, 0, 0) + frame
    assert switch.process(QUEUE, bypassing) == []
    # Only the queue's port has signals: nobody else can forge one.
    for kind in (UPDATE, ANSWER):
        forged = SIGNAL.pack(kind, GROUP, 0, 0, 0, 0, 0, b"\0\0\0", 0, 0, 0, 0) + frame
        assert switch.process(UP, forged) == [(DOWN, forged)]
