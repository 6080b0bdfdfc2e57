"""The engines that sum behind keys: unsealed datagrams get nowhere, and a rewritten class of
service does no harm."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from parties import Party
from relay import Path as Way
from relay import Relay
from sum_formats import Format
from sum_parties import Stranger, Training, awaits_metric, ended, seat_of, sums
from waiting import until

from olaf import _olaf

MANY = 30


@pytest.fixture
def keys(tmp_path: Path) -> tuple[str, str]:
    """A job's key, and what a switch needs of it."""
    job, switch = tmp_path / "job.key", tmp_path / "switch.key"
    _olaf.new_key(job)
    _olaf.switch_key(job, switch)
    return str(job), str(switch)


def counts(switch: Party, engine: str) -> dict[str, Any]:
    """What met the keys of an engine."""
    found: dict[str, Any] = switch.stats()[engine]["keys"]
    return found


def awaits_refusals_of_keys(switch: Party, engine: str, sent: int) -> None:
    """Waits until nearly all of what was sent is refused; the kernel may have dropped some."""
    until(lambda: sum(counts(switch, engine)["refused"].values()) >= 0.9 * sent, "refusals")


def test_unsealed_datagrams_are_dropped_and_counted(
    party: Callable[..., Party],
    stranger: Callable[..., Stranger],
    form: Format,
    keys: tuple[str, str],
) -> None:
    switch = sums(party, form, key_files=[keys[1]])
    training = Training([switch.address] * 2, form.name, key_file=keys[0])
    for engine in form.engines:
        outsider = stranger(switch.place_of(engine))
        for _ in range(MANY):
            for rank, worker in enumerate(training.workers):
                who = seat_of(worker, rank)
                outsider.say(form.join(who), form.join(who, nonce=7), *form.others(who))
        awaits_refusals_of_keys(switch, engine, outsider.sent)
        training.goes_on()
        # A datagram that is as long as a handshake may draw the hint that its key is not known.
        assert all(one.startswith(b"OLAK") for one in outsider.listen())
        assert outsider.heard_bytes < outsider.sent_bytes
        found = counts(switch, engine)
        assert set(found["refused"]) <= {"no_seal", "unknown_association", "bad_handshake"}
        assert found["received"] == (
            found["opened"] + found["handshakes"] + sum(found["refused"].values())
        )
        awaits_metric(switch, "olaf_keys_refused_datagrams_total", f'engine="{engine}"')
    assert ended(switch, form) == {}
    training.stop()


class Rewriting(Relay):
    """A path that sets another class of service on the way."""

    CLASS = 46 << 2

    @staticmethod
    def _bound() -> socket.socket:
        bound = Relay._bound()
        bound.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, Rewriting.CLASS)
        return bound


def test_a_rewritten_class_of_service_loses_nothing_and_is_counted_where_it_counts(
    party: Callable[..., Party], form: Format, keys: tuple[str, str]
) -> None:
    """Only iSwitch tells its packets by their class. Without a seal they would be regular traffic
    from that path on."""
    switch = sums(party, form, key_files=[keys[1]])
    way = Rewriting(switch.address, Way())
    training = Training([way.address, switch.address], form.name, key_file=keys[0])
    training.goes_on()
    engine = form.engines[0]
    found = counts(switch, engine)
    assert found["refused"] == {}
    if form.name == "iswitch":
        assert 0 < found["reclassified"] < found["opened"], "of one worker of two"
        assert training.workers[0]["keys"]["reclassified"] > 0
        assert training.workers[1]["keys"]["reclassified"] == 0
        awaits_metric(switch, "olaf_keys_reclassified_datagrams_total", f'engine="{engine}"')
    else:
        assert found["reclassified"] == 0, "the engine reads no class"
    assert ended(switch, form) == {}
    training.stop()
    way.stop()
