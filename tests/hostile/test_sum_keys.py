"""The engines that sum behind keys: unsealed datagrams get nowhere, a rewritten class of service
does no harm, and content that changed on the way is found."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from parties import Party
from relay import Path as Way
from relay import Relay
from sum_formats import FORMATS, Format
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


class Changing(Relay):
    """A path on which four bytes of a long datagram change now and then: a broken machine, which
    sends each datagram with a checksum that is right."""

    LONG = 260
    SHARE = 0.15
    """Drawn: with a fixed number in between, all could be on their way down."""

    def __init__(self, target: str, path: Way) -> None:
        self.changed = 0
        self.is_broken = False
        self._changes = random.Random(1)
        super().__init__(target, path)

    def passed(self, datagram: bytes) -> bytes:
        """The datagram, as it goes on."""
        if not self.is_broken or len(datagram) < self.LONG:
            return datagram
        if self._changes.random() > self.SHARE:
            return datagram
        self.changed += 1
        middle = len(datagram) // 2
        # In each byte of a value: one of them has its exponent.
        bad = bytes(byte ^ 0x20 for byte in datagram[middle : middle + 4])
        return datagram[:middle] + bad + datagram[middle + 4 :]


def test_content_that_changed_on_the_way_is_found_with_the_key_that_everybody_has(
    party: Callable[..., Party], form: Format
) -> None:
    switch = sums(party, form, key_files=["public"])
    way = Changing(switch.address, Way())
    training = Training([way.address, switch.address], form.name, key_file="public")
    way.is_broken = True
    training.goes_on()
    assert ended(switch, form) == {}

    def refused() -> int:
        """On the way up; the workers count what they refuse on the way down."""
        found = [counts(switch, engine)["refused"] for engine in form.engines]
        return sum(one.get("bad_tag", 0) for one in found)

    until(refused, "a refusal in the statistics")
    training.stop()
    way.stop()
    assert 0 < refused() <= way.changed


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"iswitch"}))
def test_without_a_key_content_that_changed_is_summed(
    party: Callable[..., Party], name: str
) -> None:
    """The harm that the docs tell of. Without a seal a packet of iSwitch is known by its class of
    service, which this path does not keep."""
    form = FORMATS[name]
    switch = sums(party, form)
    way = Changing(switch.address, Way())
    training = Training([way.address, switch.address], form.name)
    way.is_broken = True
    with pytest.raises(AssertionError, match="a wrong sum"):
        training.goes_on(1000)
    way.stop()


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
