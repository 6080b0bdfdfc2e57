"""Attacks by a worker that the server let in: the others go on, and it is named."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from forging import Attacker, flood_of_clusters, lanes
from parties import SIZE, Honest, Party
from ports import free_port
from waiting import until

PUSHES = 60
COMPUTES_S = 0.005
"""What a turn of an honest worker takes."""


def named(switch: Party, event: str) -> set[int]:
    return {said["worker"] for said in switch.events() if said["event"] == event}


@pytest.mark.parametrize(
    "huge",
    [(1e30, 1.0, 0.0), (1.0, 1e300, 0.0), (1.0, 1.0, 1e30), (1e30, 1e-300, -1e30)],
    ids=["lanes", "weight", "reward", "all"],
)
def test_one_update_of_huge_numbers_is_clipped_and_named(
    switch: Party, server: Party, attacker: Attacker, huge: tuple[float, float, float]
) -> None:
    lane, weight, reward = huge
    honest = [Honest(switch.address, worker) for worker in (1, 2, 3)]
    for one in honest:
        one.push()
    attacker.enters(SIZE)
    attacker.send(attacker.update(lanes(lane, SIZE), sequence=1, weight=weight, reward=reward))
    until(lambda: server.stats()["jobs"][0]["received"] >= 4, "the update")
    assert named(switch, "contribution_clipped") == {attacker.worker}
    clipped = {w["worker"]: w["clipped"] for w in switch.stats()["workers"]}
    assert clipped == {1: 0, 2: 0, 3: 0, attacker.worker: 1}
    for one in honest:
        one.push()
        assert abs(float(one.model[0])) < 200, "the model is one that learns on"
        assert one.progress(PUSHES // 3) >= 0.9 * PUSHES // 3
    assert named(switch, "contribution_rejected") == set(), "nobody else is blamed"


@pytest.mark.parametrize("lane", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_refused_and_named(
    switch: Party, attacker: Attacker, lane: float
) -> None:
    honest = Honest(switch.address, 1)
    attacker.enters(SIZE)
    for sequence in range(20):
        attacker.send(attacker.update(lanes(lane, SIZE), sequence=sequence))
    until(lambda: switch.stats()["fates"]["rejected"].get("non_finite", 0) >= 20, "refusals")
    assert named(switch, "contribution_rejected") == {attacker.worker}
    assert honest.progress(PUSHES) >= 0.9 * PUSHES


def test_a_new_cluster_each_time_leaves_none_behind(
    switch: Party, server: Party, attacker: Attacker
) -> None:
    honest = Honest(switch.address, 1)
    cpu_before = switch.stats()["io"]["cpu_s"]
    flood_of_clusters(attacker, 30_000)
    assert honest.progress(PUSHES) >= 0.9 * PUSHES
    stats = switch.stats()
    assert len(stats["clusters"]) < 64
    assert len(server.stats()["jobs"][0]["clusters"]) < 64
    assert stats["refused"]["too_often"] > 1_000
    lines = switch.events()
    assert len(lines) < 100, "few lines about it"
    assert "worker_moved" in {line["event"] for line in lines}, "and it is named"
    # When the flood is over it costs nothing.
    assert stats["io"]["cpu_s"] - cpu_before < 10


def test_fetches_of_one_worker_are_answered_so_often(server: Party) -> None:
    honest = Honest(server.address, 1)
    attacker = Attacker(server.place)
    attacker.enters(SIZE)
    for _ in range(4_000):
        attacker.send(attacker.fetch())
    until(lambda: server.stats()["refused"].get("too_often", 0) > 100, "refusals")
    assert honest.progress(PUSHES) >= 0.9 * PUSHES
    attacker.close()


def test_one_who_poses_as_a_switch_books_little(switch: Party, attacker: Attacker) -> None:
    honest = Honest(switch.address, 1)
    attacker.enters(SIZE, hops=1)
    for sequence in range(1, 4):
        attacker.send(
            attacker.update(lanes(0.0, SIZE), sequence=sequence, contributors=(1 << 32) - 1, hops=1)
        )
    rejected = "too_many_contributors"
    until(lambda: switch.stats()["fates"]["rejected"].get(rejected, 0) == 3, "refusals")
    assert switch.stats()["received"] < 1_000
    assert honest.progress(PUSHES) >= 0.9 * PUSHES


@pytest.mark.parametrize("at", ["switch", "server"])
def test_a_list_says_who_may_be_a_switch(party: Callable[..., Party], at: str) -> None:
    lower_place = f"127.0.0.1:{free_port()}"
    lists = {"switches_from": [lower_place]}
    server = party("server", **(lists if at == "server" else {}))
    upper = server
    if at == "switch":
        upper = party("switch", upstream=server.address, **lists)
    lower = party("switch", upstream=upper.address, listen=lower_place)
    # Through the switch that is named a worker learns.
    honest = Honest(lower.address, 1)
    assert honest.push()
    attacker = Attacker(upper.place)
    attacker.send(attacker.join(SIZE, hops=1))
    until(lambda: upper.stats()["refused"].get("not_a_switch", 0) > 0, "a refusal")
    assert "worker_refused" in {event["event"] for event in upper.events()}
    # Straight from a worker it is no matter of the list.
    attacker.enters(SIZE)
    assert honest.push()
    attacker.close()


def test_joins_that_claim_versions_do_not_slow_the_job(
    party: Callable[..., Party],
) -> None:
    server = party("server", learning_rate=1.0)
    switch = party("switch", upstream=server.address)
    honest = Honest(switch.address, 1)
    undisturbed = honest.progress(PUSHES)
    attacker = Attacker(switch.place)
    attacker.enters(SIZE)
    for round_ in range(100):
        version = server.stats()["jobs"][0]["version"]
        for ahead in range(20):
            attacker.send(attacker.join(SIZE, have_version=version + 60_000 + round_ + ahead))
    assert server.stats()["jobs"][0]["version"] < 17 * (1 << 16)
    assert honest.progress(PUSHES) >= 0.9 * undisturbed
    attacker.close()


def test_a_flood_of_zeros_does_not_slow_the_others(party: Callable[..., Party]) -> None:
    server = party("server", learning_rate=1.0)
    switch = party("switch", upstream=server.address)
    honest = [Honest(switch.address, worker) for worker in (1, 2)]
    attacker = Attacker(switch.place, cluster=5)
    attacker.enters(SIZE)
    for one in honest:
        one.push()
    sequence = 0

    def progress(flood: int) -> float:
        nonlocal sequence
        before = float(honest[0].model[0])
        for _ in range(PUSHES):
            for _ in range(flood):
                sequence += 1
                attacker.send(attacker.update(lanes(0.0, SIZE), sequence=sequence))
            for one in honest:
                one.push()
        return float(honest[0].model[0]) - before

    undisturbed = progress(0)
    assert progress(50) >= 0.9 * undisturbed
    attacker.close()


@pytest.mark.parametrize("at", ["switch", "server"])
@pytest.mark.parametrize("long", [9.0, 1.0], ids=["long updates", "many updates"])
def test_one_that_pushes_as_far_as_each_limit_lets_it_is_scaled_down_and_named(
    party: Callable[..., Party], at: str, long: float
) -> None:
    limit = {"max_movement": "3x"}
    server = party("server", learning_rate=1.0, step="mean", staleness_power=0.0, **limit)
    place = server if at == "server" else party("switch", upstream=server.address, **limit)
    honest = [Honest(place.address, worker) for worker in (1, 2, 3)]
    attacker = Attacker(place.place, cluster=5)
    attacker.enters(SIZE)
    sequence = 0

    def turns(flood: int) -> float:
        """By how much the model moved while each honest worker pushed `PUSHES` times."""
        nonlocal sequence
        before = float(honest[0].model[0])
        for _ in range(PUSHES):
            time.sleep(COMPUTES_S)
            for _ in range(flood):
                sequence += 1
                attacker.send(attacker.update(lanes(-long, SIZE), sequence=sequence))
            for one in honest:
                one.push()
        return float(honest[0].model[0]) - before

    # What is usual is known after the first window: a fifth of a second.
    turns(0)
    moved = turns(12)
    named = {said["worker"] for said in place.events() if said.get("clipped") == "movement"}
    assert named == {attacker.worker}
    # Some turns' worth at once, and three times what one of the others moves; it wanted 12 times as
    # much, or 108 times. A merge with the others is a mean.
    assert moved > -64 - 4 * PUSHES
    attacker.close()
