"""A worker that the server let in floods with small updates: the others keep their share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from forging import Attacker, lanes
from parties import SIZE, Honest, Party
from waiting import until

ROUNDS = 25
PER_ROUND = 200


class Flood:
    """Sends updates of 0.011 of the usual length, to and fro, and waits until all have come."""

    def __init__(self, attacker: Attacker, place: Party) -> None:
        self.sent = 0
        self._attacker, self._place = attacker, place

    def refused(self) -> int:
        stats = self._place.stats()
        fates = stats["fates"] if "fates" in stats else stats["jobs"][0]["fates"]
        return int(fates["rejected"].get("too_often", 0))

    def send(self, count: int) -> None:
        small = [lanes(0.011, SIZE), lanes(-0.011, SIZE)]
        for _ in range(count):
            self.sent += 1
            update = self._attacker.update(small[self.sent % 2], sequence=self.sent)
            self._attacker.send(update)
        until(lambda: self._came() >= self.sent, "the updates of the flood")

    def _came(self) -> int:
        """Number of its last update that came."""
        hops = self._place.stats()["arrivals"]["hops"]
        return max((h["newest"] for h in hops if h["worker"] == self._attacker.worker), default=0)


@pytest.fixture(params=["switch", "server"])
def place(request: pytest.FixtureRequest, party: Callable[..., Party]) -> Party:
    """Where the workers are: behind a switch, or at the server, which counts overlapping steps."""
    server = party("server", learning_rate=1.0, step="overlap", staleness_power=1.0)
    return server if request.param == "server" else party("switch", upstream=server.address)


@pytest.fixture
def intruder(place: Party) -> Iterator[Attacker]:
    attacker = Attacker(place.place)
    yield attacker
    attacker.close()


def moved(honest: list[Honest], flood: Flood, count: int) -> float:
    """By how much rounds move the model: in each, a push of every worker, and ``count`` updates."""
    before = float(honest[0].model[0])
    for _ in range(ROUNDS):
        flood.send(count)
        for one in honest:
            assert one.push(), "an answer to each push"
    return float(honest[-1].model[0]) - before


def test_a_flood_of_small_updates_is_cut_and_named_and_the_others_go_on(
    place: Party, intruder: Attacker
) -> None:
    """How far they go on is tested in virtual time, where rates do not depend on the machine."""
    honest = [Honest(place.address, worker, cluster=worker) for worker in (1, 2, 3)]
    intruder.enters(SIZE)
    flood = Flood(intruder, place)
    moved(honest, flood, 0)
    assert moved(honest, flood, PER_ROUND) > 0
    assert flood.refused() > flood.sent / 4
    named = {e["worker"] for e in place.events() if e["event"] == "contribution_rejected"}
    assert named == {intruder.worker}
    # When the flood is over, nothing of it is left.
    assert honest[0].progress(10) > 0
