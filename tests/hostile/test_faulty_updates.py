"""Updates and fetches that a worker should not send: each is refused by name, and nothing of it
stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from forging import Attacker, lanes
from parties import SIZE, Honest, Party
from waiting import until

MANY, PUSHES = 2_000, 40


@pytest.fixture(params=["switch", "server"])
def place(request: pytest.FixtureRequest, party: Callable[..., Party], server: Party) -> Party:
    """Where the workers are."""
    return server if request.param == "server" else party("switch", upstream=server.address)


@pytest.fixture
def strangers() -> Iterator[Callable[..., Attacker]]:
    all_of: list[Attacker] = []

    def appears(place: Party, **name: int) -> Attacker:
        all_of.append(Attacker(place.place, **name))
        return all_of[-1]

    yield appears
    for one in all_of:
        one.close()


def rejected(place: Party, reason: str) -> int:
    """Contributions refused for that reason."""
    stats = place.stats()
    fates = stats["fates"] if "fates" in stats else stats["jobs"][0]["fates"]
    return int(fates["rejected"].get(reason, 0))


def clusters(place: Party) -> int:
    stats = place.stats()
    return len(stats["clusters"] if "clusters" in stats else stats["jobs"][0]["clusters"])


def named(place: Party, event: str) -> set[int]:
    return {said["worker"] for said in place.events() if said["event"] == event}


def is_least(count: Callable[[], int], least: int) -> bool:
    return count() >= least


def goes_on(honest: Honest) -> None:
    assert honest.progress(PUSHES) >= 0.9 * PUSHES


def test_an_update_names_no_cluster(place: Party, strangers: Callable[..., Attacker]) -> None:
    """Joins alone do; else each update could make a switch remember one more."""
    honest = Honest(place.address, 1)
    attacker = strangers(place)
    attacker.enters(SIZE)
    before = clusters(place)
    for number in range(1, MANY + 1):
        attacker.send(attacker.update(lanes(1.0, SIZE), sequence=number, cluster=1_000 + number))
    until(lambda: rejected(place, "wrong_cluster") >= 0.9 * MANY, "refusals")
    assert clusters(place) == before
    assert named(place, "contribution_rejected") <= {attacker.worker}
    goes_on(honest)


def test_segments_that_the_model_does_not_have_take_no_memory_and_have_no_vote(
    place: Party, strangers: Callable[..., Attacker]
) -> None:
    honest = [Honest(place.address, worker, cluster=worker) for worker in (1, 2)]
    for one in honest:
        one.push()
    crowd = [strangers(place, worker=600 + number, cluster=9) for number in range(5)]
    for each in crowd:
        each.enters(SIZE)
    before = place.memory_mib()
    for number in range(1, MANY + 1):
        for each in crowd:
            # A segment of the largest model, and the last one of models of each length.
            for segment, segments in (((1 << 20) - number, 1 << 20), (number, number + 1)):
                each.send(
                    each.update(
                        lanes(1e30, SIZE),
                        sequence=number,
                        segment=segment,
                        segments=segments,
                        weight=1e300,
                        reward=1e30,
                    )
                )
    until(lambda: rejected(place, "wrong_size") >= 5 * MANY, "refusals")
    assert place.memory_mib() - before < 8
    # Five voters of seven: with their votes nothing would be clipped.
    crowd[0].send(crowd[0].update(lanes(1e30, SIZE), sequence=MANY + 1))
    clipped = until(lambda: named(place, "contribution_clipped"), "the update that counts")
    assert clipped == {crowd[0].worker}
    for one in honest:
        one.push()
        assert abs(float(one.model[0])) < 200
        goes_on(one)


def test_one_who_poses_as_a_switch_has_no_vote_of_the_workers_of_another_switch(
    party: Callable[..., Party], server: Party, strangers: Callable[..., Attacker]
) -> None:
    upper = party("switch", upstream=server.address)
    lower = party("switch", upstream=upper.address)
    honest = [Honest(lower.address, worker) for worker in (1, 2, 3)]
    for one in honest:
        one.push()
    posed = strangers(upper, cluster=7)
    posed.enters(SIZE, hops=1)
    # With the votes of the three its limit would grow a hundred times with each turn.
    turns = 6

    def clipped() -> int:
        return int(upper.stats()["clipped"]["norm"])

    for number in range(1, turns + 1):
        in_the_name_of = {"worker": 1 + number % 3, "session": 9_000}
        huge = posed.update(lanes(1e30, SIZE), sequence=number, hops=1, **in_the_name_of)
        posed.send(huge)
        until(partial(is_least, clipped, number), "a clipped update")
    for one in honest:
        one.push()
        goes_on(one)
    assert clipped() == turns, "nobody else is clipped"
    assert abs(float(honest[0].model[0])) < 2_000, "100 for each turn, and the honest steps"


def test_fetches_of_a_version_that_is_gone_are_paid_for_by_what_they_bring(
    server: Party, strangers: Callable[..., Attacker]
) -> None:
    segments, segment_lanes = 500, 64
    size = segments * segment_lanes
    honest = Honest(server.address, 1, size=size, segment_lanes=segment_lanes)
    honest.push()
    attacker = strangers(server)
    attacker.enters(size, segment_lanes)

    def sent() -> tuple[int, int]:
        stats = server.stats()
        return stats["io"]["sent_bytes"], stats["refused"].get("too_often", 0)

    began = time.monotonic()
    before, _ = sent()
    fetches = 60
    for _ in range(fetches):
        # One segment is asked for, and the whole newest model comes.
        attacker.send(attacker.fetch(version=4_711, mask=1))
        while attacker.receive(None, 0.01):
            pass
    until(lambda: sent()[1] > 0, "refusals")
    bytes_out = sent()[0] - before
    models = bytes_out / (segments * (112 + 4 * segment_lanes))
    assert models <= 6 + 9 * (time.monotonic() - began), f"{models:.1f} models of {fetches}"
    assert models > 3, "it is answered at first"
    goes_on(honest)
