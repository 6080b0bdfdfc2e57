"""A switch with several cores: workers divide their operations, and every result is right."""

from __future__ import annotations

import json
import signal
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from workers import Worker, switch_here, switch_process, together

import olaf
from olaf import SumConnection, _olaf

SMALL, LARGE = 1_000, 300_001
"""Lanes of f32: a small array goes to one core, and a large one to all."""


def own(connection: SumConnection, size: int) -> NDArray[np.float32]:
    """An array whose values depend on the rank and on the place."""
    return (np.arange(size) % 1000 + 10_000 * connection.rank).astype(np.float32)


def pieces(switch: _olaf.Switch) -> dict[str, Any]:
    """What the switch counts."""
    counted: dict[str, Any] = json.loads(switch.stats())["reduce"]
    return counted


def cores_of(switch: _olaf.Switch) -> set[int]:
    """The cores that have a job."""
    return {job["core"] for job in pieces(switch)["jobs"]}


@pytest.mark.parametrize("cores", [2, 3])
def test_all_cores_sum_and_every_result_is_right(cores: int) -> None:
    def work(connection: SumConnection) -> int:
        for size in (SMALL, LARGE):
            expected = sum(own_of(rank, size) for rank in range(3))
            np.testing.assert_array_equal(
                connection.all_reduce(own(connection, size), "sum"), expected
            )
            np.testing.assert_array_equal(
                connection.all_reduce(own(connection, size), "max"), own_of(2, size)
            )
            np.testing.assert_array_equal(
                connection.broadcast(own(connection, size), 1), own_of(1, size)
            )
            exact = connection.all_reduce(own(connection, size), "sum", exact=True)
            np.testing.assert_allclose(exact, expected)
        futures = [connection.all_reduce_async(own(connection, LARGE)) for _ in range(6)]
        for future in futures:
            np.testing.assert_array_equal(
                future.wait(), sum(own_of(rank, LARGE) for rank in range(3))
            )
        stats = connection.stats()
        assert stats["cores"] == cores
        others = stats["other_cores"]
        assert all(other["operations"]["done"] == 3 + 1 + 6 for other in others), others
        assert stats["operations"]["done"] == 2 * (3 + 1) + 6
        # The workers are still here: a switch forgets a job that all have left.
        assert cores_of(switch) == set(range(cores))
        return int(stats["pieces"]["sent"] + sum(other["pieces"]["sent"] for other in others))

    with switch_here(cores=cores) as switch:
        sent = sum(together(switch.address, 3, work))
        counted = pieces(switch)
        fates = counted["pieces"]
        assert fates["received"] >= sent
        names = ("summed", "waiting", "late", "repeated", "held", "occupied", "given_up")
        assert fates["received"] == sum(fates[name] for name in names)


def own_of(rank: int, size: int) -> NDArray[np.float32]:
    """What `own` gives the worker of that rank."""
    return (np.arange(size) % 1000 + 10_000 * rank).astype(np.float32)


def test_results_are_right_whatever_is_lost() -> None:
    def work(connection: SumConnection) -> None:
        for _ in range(5):
            array = connection.all_reduce(own(connection, LARGE))
            np.testing.assert_array_equal(array, sum(own_of(rank, LARGE) for rank in range(2)))

    with switch_here(cores=2, receive_loss={"probability": 0.02, "seed": 3}) as switch:
        together(switch.address, 2, work, receive_loss={"probability": 0.02, "seed": 4})
        assert pieces(switch)["pieces"]["repeated"] + pieces(switch)["wants"] > 0


def test_a_job_whose_workers_come_and_go_uses_the_first_core() -> None:
    with (
        switch_here(cores=2) as switch,
        olaf.connect_sum(switch.address) as connection,
    ):
        assert connection.all_reduce(np.ones(LARGE, np.float32))[-1] == connection.workers
        assert connection.stats()["cores"] == 1


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_job_goes_on_with_one_core_after_a_death(size: int) -> None:
    """The worker dies before a small or a large operation: on one core, or on both."""
    with switch_here(cores=2, silence="500ms") as switch:
        workers = [Worker(switch.address, workers=2, rank=rank) for rank in range(2)]
        try:
            assert [worker.answer()["rank"] for worker in workers] == [0, 1]
            for worker in workers:
                worker.tell(do="sum", size=LARGE)
            assert all(worker.answer()["value"] == 3.0 for worker in workers)
            assert cores_of(switch) == {0, 1}
            workers[1].process.send_signal(signal.SIGKILL)
            failed = workers[0].do(do="sum", size=size)
            assert (failed["reason"], failed["culprit"]) == ("worker_died", 1), failed
            # Another worker takes its place. Each operation meets the same one of the other worker.
            workers[1].end()
            workers[1] = Worker(switch.address, workers=2, rank=1)
            for value, then in enumerate((SMALL, LARGE, LARGE, SMALL, LARGE)):
                for rank, worker in enumerate(workers):
                    if value == 0 and rank == 1:
                        assert worker.answer()["rank"] == 1
                    worker.tell(do="sum", size=then, value=10 * value + rank)
                for worker in workers:
                    answer = worker.answer()
                    assert (answer["value"], answer["differ"]) == (20.0 * value + 1, 0), answer
        finally:
            for worker in workers:
                worker.end()


def test_the_next_run_of_a_job_uses_all_cores_again() -> None:
    def work(connection: SumConnection) -> int:
        np.testing.assert_array_equal(
            connection.all_reduce(own(connection, LARGE)), own_of(0, LARGE) + own_of(1, LARGE)
        )
        assert cores_of(switch) == {0, 1}
        return int(connection.stats()["cores"])

    with switch_here(cores=2) as switch:
        for _ in range(3):
            assert together(switch.address, 2, work) == [2, 2]


def test_the_command_gives_each_core_a_port() -> None:
    def work(connection: SumConnection) -> tuple[float, int]:
        array = connection.all_reduce(np.ones(LARGE, np.float32))
        return float(array[-1]), connection.stats()["cores"]

    with switch_process("--cores", "2") as (_, address):
        assert together(address, 2, work) == [(2.0, 2), (2.0, 2)]


def test_cores_that_cannot_be_are_named() -> None:
    told = {"engines": ["reduce"], "listen": "127.0.0.1:0", "reduce": {"cores": 0}}
    with pytest.raises(ValueError, match=r"reduce\.cores = 0: must be from 1 to 256"):
        _olaf.Switch(json.dumps(told))


def test_a_worker_with_a_second_switch_uses_one_core() -> None:
    def work(connection: SumConnection) -> int:
        np.testing.assert_array_equal(
            connection.all_reduce(own(connection, LARGE)), own_of(0, LARGE) + own_of(1, LARGE)
        )
        return int(connection.stats()["cores"])

    with switch_here(cores=2) as switch, switch_here() as second:
        assert together(switch.address, 2, work, fall_back=second.address) == [1, 1]
        assert together(switch.address, 2, work, cores=1) == [1, 1]
        with pytest.raises(ValueError, match="cores = 2: with fall_back a worker uses one core"):
            olaf.connect_sum(switch.address, workers=1, cores=2, fall_back=second.address)
