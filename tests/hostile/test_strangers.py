"""Attacks by strangers: honest workers go on, and memory stays bounded."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import pytest
from forging import (
    ANSWER_EPOCH,
    ANSWER_MODEL_VERSION,
    MODEL,
    WELCOME,
    WELCOME_CODE,
    WELCOME_ECHO,
    WELCOME_EPOCH,
    WRONG_MODEL_SIZE,
    Attacker,
    changed,
    flood_of_joins,
    flood_of_offers,
    lanes,
)
from parties import SIZE, Honest, Party
from relay import Path, Relay
from sum_parties import awaits_metric
from waiting import until

PUSHES = 60


def goes_on(honest: Honest) -> None:
    """At least 90 % of what is undisturbed, which is 1 for each push."""
    assert honest.progress(PUSHES) >= 0.9 * PUSHES


def test_a_number_in_a_header_takes_no_memory(
    server: Party, switch: Party, attacker: Attacker
) -> None:
    honest = Honest(switch.address, 1)
    before = switch.memory_mib(), server.memory_mib()
    largest = 1 << 28
    for number, segment_lanes in enumerate([1, 255, 256, 256, 256, 256, 256, 256]):
        attacker.job = 100 + number
        segments = -(-largest // segment_lanes)
        attacker.enters(largest, segment_lanes)
        attacker.send(
            attacker.update(
                lanes(0.0, segment_lanes), segment=segments - 1, segments=segments, sequence=1
            )
        )
    goes_on(honest)
    assert switch.memory_mib() - before[0] < 16
    assert server.memory_mib() - before[1] < 16
    assert switch.stats()["refused"]["model_too_large"] >= 2


def test_offers_take_the_memory_of_what_came(
    server: Party, switch: Party, attacker: Attacker
) -> None:
    honest = Honest(switch.address, 1)
    before = switch.memory_mib(), server.memory_mib()
    flood_of_offers(attacker, 20_000)
    goes_on(honest)
    came_mib = attacker.sent_bytes / (1 << 20)
    assert server.memory_mib() - before[1] < 1.5 * came_mib + 16
    assert switch.memory_mib() - before[0] < 32


def test_joins_keep_no_new_job_out(switch: Party, attacker: Attacker) -> None:
    honest = Honest(switch.address, 1)
    flood_of_joins(attacker, 4_000)
    goes_on(Honest(switch.address, 1, job=2))
    goes_on(honest)
    # A name for what was refused, and few lines about it.
    assert switch.stats()["refused"]["full"] > 0
    assert len(switch.events()) < 4_100


def test_worker_ids_of_one_address_keep_no_worker_out(switch: Party, attacker: Attacker) -> None:
    honest = Honest(switch.address, 1)
    for worker in range(1_000, 6_000):
        attacker.send(attacker.join(SIZE, worker=worker))
    until(lambda: switch.stats()["refused"].get("full", 0) > 100, "refused joins")
    assert len(switch.stats()["workers"]) <= 257
    goes_on(Honest(switch.address, 2))
    goes_on(honest)


def test_who_finds_a_switch_full_is_counted_in_the_metrics(
    party: Callable[..., Party], server: Party
) -> None:
    switch = party("switch", upstream=server.address, metrics="127.0.0.1:0")
    crowd = Attacker(switch.place)
    for worker in range(400):
        crowd.send(crowd.join(SIZE, worker=worker))
    awaits_metric(switch, "olaf_refused_datagrams_total", 'reason="full"')
    crowd.close()


def test_a_fetch_of_a_stranger_is_not_answered(
    switch: Party, server: Party, attacker: Attacker
) -> None:
    honest = Honest(switch.address, 1)
    for target in (switch.place, server.place):
        attacker.target = target
        for _ in range(100):
            attacker.send(attacker.fetch())
        until(lambda: switch.stats()["refused"].get("unknown_receiver", 0) > 0, "a refusal")
        assert attacker.receive(MODEL, 0.2) is None
    goes_on(honest)


@pytest.mark.parametrize("through", ["switch", "server"])
def test_joins_and_fetches_draw_no_models_to_an_address_that_echoes_nothing(
    switch: Party, server: Party, attacker: Attacker, through: str
) -> None:
    """As with the address of a victim: what comes to it is never read."""
    honest = Honest(switch.address, 1)
    attacker.target = (switch if through == "switch" else server).place
    for _ in range(200):
        attacker.send(attacker.join(SIZE))
        attacker.send(attacker.join(SIZE, nonce=12_345))
        attacker.send(attacker.fetch())
        attacker.send(attacker.update(lanes(0.0, SIZE), sequence=attacker.sent_bytes))
    refused = switch if through == "switch" else server
    until(lambda: refused.stats()["refused"].get("not_proven", 0) >= 50, "refused fetches")
    assert attacker.receive(MODEL, 0.5) is None
    assert attacker.received_bytes <= 3 * attacker.sent_bytes
    goes_on(honest)
    # The same worker gets a model when it echoes.
    attacker.enters(SIZE)
    attacker.send(attacker.fetch())
    assert attacker.receive(MODEL) is not None


def test_foreign_datagrams_are_dropped_and_counted(switch: Party, attacker: Attacker) -> None:
    honest = Honest(switch.address, 1)
    for _ in range(1_000):
        attacker.send(b"GET / HTTP/1.1\r\n\r\n")
    until(lambda: switch.stats()["refused"].get("foreign", 0) > 500, "the count")
    assert switch.stats()["forwarded"]["untouched"] == 0
    assert attacker.receive(None, 0.1) is None
    goes_on(honest)


def test_a_list_names_whose_foreign_datagrams_go_up(party: Callable[..., Party]) -> None:
    above = Attacker(("127.0.0.1", 9))
    below = Attacker(("127.0.0.1", 9))
    place = "127.0.0.1:{}".format
    switch = party(
        "switch",
        upstream=place(above.socket.getsockname()[1]),
        pass_from=[place(below.socket.getsockname()[1])],
    )
    below.target = switch.place
    below.send(b"not ours at all")
    assert above.receive() == b"not ours at all"
    assert switch.stats()["forwarded"]["untouched"] == 1
    above.close()
    below.close()


def test_a_replayed_join_takes_no_worker_over(
    switch: Party, server: Party, attacker: Attacker
) -> None:
    relay = Relay(switch.address, Path())
    honest = Honest(relay.address, 1)
    attacker.worker = 1
    attacker.session = struct.unpack_from(">I", relay.down[-1], 20)[0]
    for target in (switch.place, server.place):
        attacker.target = target
        for _ in range(50):
            attacker.send(attacker.join(SIZE))
    until(lambda: switch.stats()["refused"].get("worker_id_in_use", 0) >= 25, "refusals")
    goes_on(honest)
    named = [event for event in switch.events() if event["event"] == "worker_refused"]
    assert named
    assert named[0]["reason"] == "worker_id_in_use"
    relay.stop()


@pytest.fixture
def forger(switch: Party) -> Iterator[Relay]:
    """Sends from the address at which the worker knows its switch."""
    relay = Relay(switch.address, Path())
    yield relay
    relay.stop()


def last(relay: Relay, kind: int) -> bytes:
    return next(datagram for datagram in reversed(relay.down) if datagram[5] == kind)


@pytest.mark.parametrize("lives", [1, 50])
def test_a_forged_life_of_the_server_makes_nobody_deaf(forger: Relay, lives: int) -> None:
    honest = Honest(forger.address, 1)
    honest.push()
    for epoch in range(1, lives + 1):
        forger.forge(changed(last(forger, MODEL), ANSWER_EPOCH, ">I", epoch))
        welcome = changed(last(forger, WELCOME), WELCOME_EPOCH, ">I", epoch)
        forger.forge(changed(welcome, WELCOME_ECHO, ">Q", 5))
    goes_on(honest)


def test_a_forged_refusal_turns_nobody_away(forger: Relay) -> None:
    honest = Honest(forger.address, 1)
    refusal = changed(last(forger, WELCOME), WELCOME_CODE, ">B", WRONG_MODEL_SIZE)
    forger.forge(changed(refusal, WELCOME_ECHO, ">Q", 12_345))
    goes_on(honest)


def test_a_forged_model_of_the_highest_version_does_not_last(forger: Relay) -> None:
    honest = Honest(forger.address, 1)
    honest.push()
    forged = changed(last(forger, MODEL), ANSWER_MODEL_VERSION, ">I", (1 << 32) - 1)
    forger.forge(forged[:-4] + struct.pack("<f", float("nan")))
    goes_on(honest)
    forger.forge(forged)
    taken = until(lambda: honest.client.pull([honest.model], honest.version), "the forged model")
    assert taken == (1 << 32) - 1
    honest.version = taken
    # The next answer to a join says that the server has no such version.
    until(lambda: honest.client.wait(honest.version, 5.0), "a true model")
    honest.version = honest.client.pull([honest.model], honest.version) or 0
    assert 0 < honest.version < 1_000_000
    goes_on(honest)
