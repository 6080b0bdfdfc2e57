"""A leave counts from its worker's own address alone, whoever knows the worker's session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from parties import Party
from sum_formats import Format, Name
from sum_parties import Stranger, Training, awaits_refusals, ended, refused, seat_of, sums
from waiting import until

MANY = 20
REASONS = {
    "reduce": "wrong_sender",
    "iswitch": "not_a_member",
    "trio": "wrong_sender",
    "atp": "wrong_sender",
    "atp_server": "unknown_peer",
}


def test_a_forged_leave_ends_no_sum_and_is_named(
    party: Callable[..., Party], stranger: Callable[..., Stranger], form: Format
) -> None:
    switch = sums(party, form)
    training = Training([switch.address] * 2, form.name)
    names = [seat_of(worker, rank) for rank, worker in enumerate(training.workers)]
    for engine in form.engines:
        forger = stranger(switch.place_of(engine))
        before = refused(switch, engine)
        for who in names * MANY:
            forger.say(form.leave(who), form.leave(replace(who, session=who.session ^ 1)))
        found = awaits_refusals(switch, engine, forger.sent, before)
        assert found[REASONS[engine]] >= 0.9 * len(names) * MANY
        training.goes_on()
    assert ended(switch, form) == {}
    training.stop()
    # The workers' own leaves count.
    until(lambda: ended(switch, form).get("left"), "the end of the job")


def test_a_leave_that_is_repeated_counts_once(
    party: Callable[..., Party], stranger: Callable[..., Stranger], form: Format
) -> None:
    """Also where another worker has the seat by now."""
    switch = sums(party, form)
    training = Training([switch.address] * 2, form.name)
    guest = stranger(switch.place)
    who = Name(job=9, workers=1)
    guest.enters(form, who)
    who = replace(who, generation=max(map(form.life_of, guest.heard)))
    guest.say(form.leave(who))
    until(lambda: ended(switch, form).get("left"), "the end of its job")
    newcomer = replace(who, session=who.session + 1, generation=0)
    engine = form.engines[0]
    stranger(switch.place).enters(form, newcomer)
    before = refused(switch, engine)
    if form.name == "trio":
        # What is of an earlier term is late, and no fault.
        leaves = switch.stats()[engine]["leaves"]
        guest.say(*[form.leave(who)] * MANY)
        until(lambda: switch.stats()[engine]["leaves"] == leaves + MANY, "the leaves")
    else:
        guest.say(*[form.leave(who)] * MANY)
        assert awaits_refusals(switch, engine, MANY, before)["not_a_member"] >= 0.9 * MANY
    training.goes_on()
    assert ended(switch, form) == {"left": 1}
    training.stop()
