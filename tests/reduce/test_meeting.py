"""Workers that meet agree on the same results, whatever each of them has."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from olaf.sums.meeting import DisagreementError, Kind, Result, Standing, givers, shared


class Table:
    """A meeting in one process: what all say, and what becomes of it."""

    def __init__(self, workers: int) -> None:
        self.barrier = threading.Barrier(workers)
        self.said: dict[int, Any] = {}

    def all_of(self, rank: int, said: Any) -> dict[int, Any]:
        self.said[rank] = said
        self.barrier.wait(10)
        everything = dict(self.said)
        self.barrier.wait(10)
        return everything


class Seat:
    """One worker's talk."""

    def __init__(self, table: Table, rank: int) -> None:
        self.table, self.rank = table, rank

    def smallest(self, numbers: list[int]) -> list[int]:
        said = self.table.all_of(self.rank, numbers)
        assert len({len(numbers) for numbers in said.values()}) == 1, "different operations"
        return [min(each) for each in zip(*said.values(), strict=True)]

    def copy_of(self, rank: int, words: NDArray[np.int64]) -> None:
        said = self.table.all_of(self.rank, (rank, words.copy()))
        assert len({(root, its.size) for root, its in said.values()}) == 1, "different operations"
        words[:] = said[rank][1]


def result(index: int) -> Result:
    """The result of an operation; some ended with an error."""
    kind = Kind("f16", "mean", 0, 2 * index + 1)
    reason = "partial" if index % 5 == 4 else ""
    words = np.full(0 if reason else -(-kind.bytes // 8), index, np.int64)
    return Result(kind, reason, (3, 4, index % 2 == 0), words)


def meet(standings: list[Standing]) -> list[Any]:
    """Who gives what, and what each takes; or the error of each."""
    table = Table(len(standings))
    found: dict[int, Any] = {}

    def one(mine: Standing) -> None:
        seat = Seat(table, mine.rank)
        try:
            chosen = givers(seat, mine)
            found[mine.rank] = (chosen, shared(seat, mine, chosen))
        except DisagreementError as error:
            found[mine.rank] = str(error)

    threads = [threading.Thread(target=one, args=(mine,), daemon=True) for mine in standings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    return [found[rank] for rank in range(len(standings))]


def standing(rank: int, begun: int, unsettled: set[int], lost: set[int], run: int = 7) -> Standing:
    kept = {index: result(index) for index in range(begun) if index not in unsettled | lost}
    return Standing(rank, run, begun, unsettled, kept)


@pytest.mark.parametrize("seed", range(60))
def test_every_worker_gets_what_it_lacks_and_begins_the_rest_again(seed: int) -> None:
    chance = random.Random(seed)
    workers, done = chance.randrange(2, 6), chance.randrange(4)
    standings = []
    for rank in range(workers):
        begun = done + chance.randrange(6)
        # Operations on several cores do not end in their order.
        unsettled = {index for index in range(done, begun) if chance.random() < 0.5}
        lost = {index for index in range(done) if chance.random() < 0.5}
        if chance.random() < 0.1:
            lost |= {index for index in range(begun) if chance.random() < 0.3}
        standings.append(standing(rank, begun, unsettled, lost))
    ended = [{i for i in range(12) if mine.has_ended(i)} for mine in standings]
    somewhere, everywhere = set.union(*ended), set.intersection(*ended)
    kept = set().union(*(mine.kept for mine in standings))
    low = min(mine.first_open for mine in standings)
    found = meet(standings)
    if missing := {i for i in somewhere - kept if i >= low}:
        assert found == [f"no worker has kept the result of operation {min(missing)}"] * workers
        return
    chosen = found[0][0]
    assert set(chosen) >= somewhere - everywhere
    assert not set(chosen) - somewhere
    for mine, (theirs, taken) in zip(standings, found, strict=True):
        assert theirs == chosen, "all begin the same operations again"
        assert set(taken) == {i for i in somewhere if not mine.has_ended(i)}
        for index, its in taken.items():
            expected = result(index)
            assert its[:3] == expected[:3]
            assert its.words.tolist() == expected.words.tolist()


def test_workers_of_different_generations_do_not_go_on() -> None:
    found = meet([standing(0, 5, {4}, set()), standing(1, 1, {0}, set(), run=8)])
    assert found == ["a worker was replaced, and counts from another operation"] * 2


def test_another_program_at_the_second_switch_is_found() -> None:
    table = Table(2)
    other = threading.Thread(target=lambda: Seat(table, 1).smallest([5] * 6))
    other.start()
    with pytest.raises(DisagreementError, match="use another job number"):
        givers(Seat(table, 0), standing(0, 1, set(), set()))
    other.join()


def test_workers_that_are_absurdly_far_apart_do_not_go_on() -> None:
    far = Standing(1, 7, 1 << 40, set(), {})
    assert all("operations apart" in text for text in meet([standing(0, 0, set(), set()), far]))
