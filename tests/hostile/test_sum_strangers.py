"""Strangers at the engines that sum: they draw nothing, take no memory, and disturb no sum."""

from __future__ import annotations

from collections.abc import Callable

from parties import Party
from sum_formats import LONGEST_CONTROL, Format, Name, Reduce
from sum_parties import (
    Stranger,
    Training,
    awaits_metric,
    awaits_refusals,
    ended,
    refused,
    seat_of,
    sums,
)

MANY = 50


def test_joins_draw_no_sums_to_an_address_that_echoes_nothing(
    party: Callable[..., Party], stranger: Callable[..., Stranger], form: Format
) -> None:
    """As with the address of a victim: what comes to it is never echoed."""
    switch = sums(party, form)
    training = Training([switch.address] * 2, form.name)
    for engine in form.engines:
        victim = stranger(switch.place_of(engine))
        before = refused(switch, engine)
        for number in range(MANY):
            who = Name(session=5_000 + number)
            victim.say(form.join(who), form.join(who, nonce=12_345))
        awaits_refusals(switch, engine, MANY, before, "not_proven")
        training.goes_on()
        assert len(victim.listen()) >= MANY, "answers, which nobody echoes"
        assert victim.heard_bytes <= 1.5 * victim.sent_bytes
        assert max(map(len, victim.heard)) <= LONGEST_CONTROL
    assert ended(switch, form) == {}
    training.stop()
    # Who echoes is let in: the joins were good ones.
    stranger(switch.place).enters(form, Name(job=2, workers=1))


def test_pieces_and_questions_in_a_workers_name_change_nothing(
    party: Callable[..., Party], stranger: Callable[..., Stranger], form: Format
) -> None:
    switch = sums(party, form)
    training = Training([switch.address] * 2, form.name)
    for engine in form.engines:
        victim = stranger(switch.place_of(engine))
        before = refused(switch, engine)
        for _ in range(MANY):
            for rank, worker in enumerate(training.workers):
                victim.say(*form.others(seat_of(worker, rank)))
        awaits_refusals(switch, engine, victim.sent, before)
        training.goes_on()
        assert victim.heard_bytes <= 3 * victim.sent_bytes
        assert max(map(len, victim.heard), default=0) <= LONGEST_CONTROL
    assert ended(switch, form) == {}
    training.stop()


def test_the_seat_of_a_worker_that_lives_is_taken(
    party: Callable[..., Party], stranger: Callable[..., Stranger], form: Format
) -> None:
    """A newcomer who has proved his address and wants the rank of a worker has to wait."""
    switch = sums(party, form)
    training = Training([switch.address] * 2, form.name)
    newcomer = stranger(switch.place)
    for _ in range(MANY):
        assert not newcomer.asks(form, Name(session=6_666))
    training.goes_on()
    assert ended(switch, form) == {}
    training.stop()


def test_a_number_in_a_header_takes_no_memory_and_is_refused_by_name(
    party: Callable[..., Party], stranger: Callable[..., Stranger], form: Format
) -> None:
    switch = sums(party, form)
    training = Training([switch.address] * 2, form.name)
    faulty = stranger(switch.place)
    who = Name(job=9, workers=1)
    who = Name(job=9, workers=1, generation=faulty.enters(form, who))
    before = switch.memory_mib()
    for datagram, engine, reason in form.huge(who):
        known = refused(switch, engine)
        faulty.say(*[datagram] * MANY)
        awaits_refusals(switch, engine, MANY, known, reason)
        awaits_metric(switch, f'engine="{engine}"', f'reason="{reason}"')
    training.goes_on()
    assert switch.memory_mib() - before < 8
    assert ended(switch, form) == {}
    training.stop()


class Cramped(Reduce):
    """Joins of workers whose datagrams have room for one line of lanes and 64 names."""

    datagram_bytes = 64 + 64 + 8


def test_a_crowd_with_short_datagrams_stops_no_switch(
    party: Callable[..., Party], stranger: Callable[..., Stranger]
) -> None:
    form = Cramped()
    switch = sums(party, form)
    training = Training([switch.address] * 2, form.name)
    for workers in (65, 0):
        known = refused(switch, "reduce")
        for number in range(70):
            # Each worker has an address of its own, because one address may not join this often.
            crowd = stranger(switch.place)
            who = Name(job=5 + workers, session=1 + number, rank=number % 65, workers=workers)
            crowd.asks(form, who)
            crowd.asks(form, who)
        if workers:
            awaits_refusals(switch, "reduce", 65, known, "refused")
    training.goes_on()
    # A job of any number of workers begins anew with each newcomer.
    assert set(ended(switch, form)) <= {"joined"}
    training.stop()
