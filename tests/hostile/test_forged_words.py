"""Words in the name of a server or a switch: a switch and a worker believe what they asked for."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from forging import (
    ACKNOWLEDGEMENT,
    ANSWER_ACKNOWLEDGES,
    ANSWER_EPOCH,
    ANY,
    MODEL,
    NOTICE,
    WELCOME,
    WELCOME_CODE,
    WELCOME_ECHO,
    WELCOME_EPOCH,
    WORKER_AT,
    WRONG_MODEL_SIZE,
    Attacker,
    changed,
)
from parties import Honest, Party
from relay import Path, Relay
from waiting import until

MANY, PUSHES = 20, 40


@pytest.fixture
def between() -> Iterator[Callable[[Party], Relay]]:
    """Relays that forge datagrams of a party, sent from the address at which it is known."""
    relays: list[Relay] = []

    def stands(before: Party) -> Relay:
        relays.append(Relay(before.address, Path()))
        return relays[-1]

    yield stands
    for one in relays:
        one.stop()


def last(relay: Relay, kind: int) -> bytes:
    """What came down last of that kind."""

    def found() -> bytes:
        return next((one for one in reversed(relay.down) if one[5] == kind), b"")

    return until(found, f"a datagram of kind {kind}")


def no_life(answer: bytes, kind: int) -> bytes:
    """An answer of no life of the server, that acknowledges all that was ever sent."""
    as_kind = answer[:5] + bytes([kind]) + answer[6:]
    if kind == ACKNOWLEDGEMENT:
        as_kind = changed(as_kind[:112], 44, ">I", 0)
    acknowledges_all = changed(as_kind, ANSWER_ACKNOWLEDGES, ">I", 1 << 30)
    return changed(acknowledges_all, ANSWER_EPOCH, ">I", 0)


def refused_by(switch: Party) -> Callable[[], dict[str, int]]:
    return lambda: dict(switch.stats()["refused"])


def is_refused_each_time(
    refused: Callable[[], dict[str, int]], reason: str, say: Callable[[], None]
) -> None:
    before = refused().get(reason, 0)
    for _ in range(MANY):
        say()
    until(lambda: refused().get(reason, 0) - before >= MANY, f"refusals: {reason}")


def goes_on(honest: Honest) -> None:
    assert honest.progress(PUSHES) >= 0.9 * PUSHES


def test_a_switch_believes_no_server_that_it_did_not_ask(
    party: Callable[..., Party], server: Party, between: Callable[[Party], Relay]
) -> None:
    forger = between(server)
    switch = party("switch", upstream=forger.address)
    honest = Honest(switch.address, 1)
    honest.push()

    model, welcome = last(forger, MODEL), last(forger, WELCOME)
    new_life = changed(welcome, WELCOME_EPOCH, ">I", 4_711)
    refusal = changed(welcome, WELCOME_CODE, ">B", WRONG_MODEL_SIZE)
    for reason, datagram in [
        ("unknown_epoch", no_life(model, ACKNOWLEDGEMENT)),
        ("unknown_epoch", no_life(model, MODEL)),
        ("unknown_epoch", changed(model, ANSWER_EPOCH, ">I", 4_711)),
        ("unknown_epoch", changed(new_life, WELCOME_ECHO, ">Q", 5)),
        ("not_asked", changed(refusal, WELCOME_ECHO, ">Q", 5)),
    ]:
        is_refused_each_time(refused_by(switch), reason, partial(forger.forge, datagram))
    goes_on(honest)
    assert {event["event"] for event in switch.events()} == {"worker_joined"}


def test_a_worker_believes_no_switch_that_it_did_not_ask(
    party: Callable[..., Party], switch: Party, between: Callable[[Party], Relay]
) -> None:
    forger = between(switch)
    honest = Honest(forger.address, 1)
    honest.push()
    model, welcome = last(forger, MODEL), last(forger, WELCOME)
    for_all = changed(changed(no_life(model, ACKNOWLEDGEMENT), 24, ">I", 0), WORKER_AT, ">I", ANY)
    of_the_future = struct.pack(">Q", 1 << 62)
    notice = model[:5] + bytes([NOTICE]) + changed(model, WORKER_AT, ">I", ANY)[6:24]
    notice += of_the_future
    new_life = changed(welcome, WELCOME_EPOCH, ">I", 4_711)
    refusal = changed(welcome, WELCOME_CODE, ">B", WRONG_MODEL_SIZE)
    for reason, datagram in [
        ("not_for_me", for_all),
        ("not_for_me", notice),
        ("unknown_epoch", changed(model, ANSWER_EPOCH, ">I", 4_711)),
        ("not_asked", changed(new_life, WELCOME_ECHO, ">Q", 5)),
        ("not_asked", changed(refusal, WELCOME_ECHO, ">Q", 5)),
    ]:
        is_refused_each_time(honest.refused, reason, partial(forger.forge, datagram))
    goes_on(honest)


def test_a_stranger_speaks_for_no_server(
    switch: Party, attacker: Attacker, between: Callable[[Party], Relay]
) -> None:
    """The same words from an address of one's own."""
    way = between(switch)
    honest = Honest(way.address, 1)
    honest.push()
    model, welcome = last(way, MODEL), last(way, WELCOME)
    for reason, word in [
        ("wrong_direction", no_life(model, ACKNOWLEDGEMENT)),
        ("wrong_direction", welcome),
        # A model that goes up is an offer.
        ("unknown_receiver", model),
    ]:
        is_refused_each_time(refused_by(switch), reason, partial(attacker.send, word))
    goes_on(honest)
