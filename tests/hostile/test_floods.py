"""A worker that the server let in floods with small updates: the others keep their share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from forging import Attacker, lanes
from parties import SIZE, Honest, Party, Training
from waiting import until

ROUNDS = 25
PER_ROUND = 200


def refused_at(place: Party) -> int:
    """Updates that came too often."""
    stats = place.stats()
    fates = stats["fates"] if "fates" in stats else stats["jobs"][0]["fates"]
    return int(fates["rejected"].get("too_often", 0))


class Flood:
    """Sends updates of 0.011 of the usual length, to and fro, and waits until all have come."""

    def __init__(self, attacker: Attacker, place: Party) -> None:
        self.sent = 0
        self._attacker, self._place = attacker, place

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
    honest = [Honest(place.address, worker, cluster=worker) for worker in (1, 2, 3)]
    intruder.enters(SIZE)
    flood = Flood(intruder, place)
    moved(honest, flood, 0)
    assert moved(honest, flood, PER_ROUND) > 0
    assert refused_at(place) > flood.sent / 4
    named = {e["worker"] for e in place.events() if e["event"] == "contribution_rejected"}
    assert named == {intruder.worker}
    # When the flood is over, nothing of it is left.
    assert honest[0].progress(10) > 0


SHARE = 3 / 4
"""What three of four honest workers would have of the progress."""
TURNS, TURN_S = 6, 1.5
COMPUTES_S = 0.02


@contextmanager
def flooding(place: Party) -> Iterator[Callable[[str], int]]:
    """A flooder of its own process; `flood` or `burn` for a turn returns its number of updates."""
    program = Path(__file__).with_name("flooding.py")
    pipe = subprocess.PIPE
    argv = [sys.executable, str(program), place.address]
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def turn(what: str) -> int:
            stdin.write(f"{what} {TURN_S}\n")
            stdin.flush()
            return int(stdout.readline())

        try:
            assert stdout.readline() == "joined\n"
            yield turn
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.alone
def test_beside_a_flood_the_others_make_at_least_nine_tenths_of_their_share(place: Party) -> None:
    """Turns with the flood and turns with the same work for the machine, in turn.

    The workers compute for a fixed time, as real ones do: else a flood that takes the machine's
    time makes rounds longer, and the limit of the flood, which is a rate, follows late.
    """
    honest = [Honest(place.address, worker, cluster=worker) for worker in (1, 2, 3)]
    moved, sent = {"burn": 0.0, "flood": 0.0}, 0
    with Training(honest, COMPUTES_S), flooding(place) as flooder:
        flooder("burn")
        for what in ("burn", "flood") * TURNS:
            before = float(honest[0].model[0])
            sent += flooder(what)
            moved[what] += float(honest[0].model[0]) - before
    ratio = moved["flood"] / moved["burn"]
    print(f"{ratio:.3f} of undisturbed, {ratio / SHARE:.3f} of the share; {sent} updates")
    assert refused_at(place) > sent / 4, "this is no flood"
    assert ratio >= 0.9 * SHARE, moved
