"""A good-bye counts from its worker's own address alone, whoever knows the worker's session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from parties import Party
from sum_formats import Format
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


def test_a_forged_good_bye_ends_no_sum_and_is_named(
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
    # The workers' own good-byes count.
    until(lambda: ended(switch, form).get("left"), "the end of the job")
