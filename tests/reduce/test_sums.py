"""Workers sum arrays through a switch, and all of them get the same right result."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from waiting import until
from workers import PATIENCE_S, Worker, switch_here, switch_process, together

import olaf
from olaf import SumConnection, SumFuture

SIZES = [1, 2, 2_560, 20_000, 825_000]
"""Lanes of f32; 2,560 are 10 KB, and 825,000 are 3.3 MB."""


def own(connection: SumConnection, size: int, dtype: Any = np.float32) -> NDArray[Any]:
    """An array whose values depend on the rank and on the place."""
    return (np.arange(size) % 100 + 10 * connection.rank).astype(dtype)


def expected(op: str, size: int, workers: int, dtype: Any = np.float32) -> NDArray[Any]:
    """The result of all workers' `own` arrays, computed at once."""
    each = np.array([np.arange(size) % 100 + 10 * rank for rank in range(workers)])
    result: NDArray[Any] = getattr(each, op)(axis=0)
    return result.astype(dtype)


def test_two_processes_sum_through_a_switch_in_a_third() -> None:
    with switch_process() as (_, address):
        workers = [Worker(address, workers=2) for _ in range(2)]
        try:
            ranks = sorted(worker.answer()["rank"] for worker in workers)
            assert ranks == [0, 1]
            for size in (1, 2_560, 825_000):
                for worker in workers:
                    worker.tell(do="sum", size=size)
                for worker in workers:
                    answer = worker.answer()
                    assert (answer["value"], answer["differ"]) == (3.0, 0), answer
            for worker in workers:
                assert worker.do(do="close") == {"closed": True}
                assert worker.process.wait(10) == 0
        finally:
            for worker in workers:
                worker.end()


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_every_operation_is_right_at_every_size(workers: int) -> None:
    def work(connection: SumConnection) -> None:
        for size in SIZES:
            for op in ("sum", "mean", "min", "max"):
                array = own(connection, size)
                assert connection.all_reduce(array, op) is array
                np.testing.assert_allclose(array, expected(op, size, workers), rtol=1e-6)

    with switch_here() as switch:
        together(switch.address, workers, work)


@pytest.mark.parametrize(
    ("dtype", "ops"),
    [
        (np.float16, ("sum", "mean", "min", "max")),
        (np.int32, ("sum", "min", "max")),
        (np.int64, ("sum", "min", "max")),
    ],
)
def test_every_type_is_reduced(dtype: Any, ops: tuple[Any, ...]) -> None:
    def work(connection: SumConnection) -> None:
        for op in ops:
            array = own(connection, 3_000, dtype)
            connection.all_reduce(array, op)
            np.testing.assert_allclose(array, expected(op, 3_000, 3, dtype), rtol=2e-3)

    with switch_here() as switch:
        together(switch.address, 3, work)


def test_a_mean_of_halves_is_rounded_once() -> None:
    """Also where no float16 holds the sum."""
    rng = np.random.default_rng(1)
    each = rng.uniform(-60_000, 60_000, (3, 5_000)).astype(np.float16)
    each[:, 0] = 60_000
    wanted = each.astype(np.float64).mean(axis=0)

    def work(connection: SumConnection) -> tuple[NDArray[Any], NDArray[Any]]:
        arrays = [each[connection.rank].copy(), np.repeat(each[connection.rank], 2)[::2]]
        connection.all_reduce(arrays[0], "mean")
        connection.all_reduce_async(arrays[1], "mean").wait()
        with pytest.raises(ValueError, match="read-only"):
            connection.all_reduce(np.frombuffer(b"1234", np.float16), "mean")
        return arrays[0], arrays[1]

    with switch_here() as switch:
        for arrays in together(switch.address, 3, work):
            for array in arrays:
                assert array.dtype == np.float16
                # Half a step of float16, and the rounding of float32.
                step = np.spacing(np.abs(array)).astype(np.float64)
                assert (np.abs(array.astype(np.float64) - wanted) <= 0.501 * step).all()


def test_arrays_whose_values_are_not_their_own_are_refused_before_the_sum() -> None:
    def work(connection: SumConnection) -> None:
        once = np.ones(1, np.float32)
        repeated = np.lib.stride_tricks.as_strided(once, (4,), (0,))
        masked = np.ma.masked_greater(np.arange(4, dtype=np.float32), 1)
        for array, said in ((repeated, "share memory"), (masked, "masked")):
            with pytest.raises(ValueError, match=said):
                connection.all_reduce(array)
            with pytest.raises(ValueError, match=said):
                connection.broadcast_async(array)
        assert connection.all_reduce(once)[0] == 2  # all are at the same operation
        assert masked.data.tolist() == [0, 1, 2, 3]

    with switch_here() as switch:
        together(switch.address, 2, work)


def test_every_rank_may_be_the_root_of_a_broadcast() -> None:
    def work(connection: SumConnection) -> None:
        for size in SIZES:
            for root in range(3):
                array = own(connection, size)
                assert connection.broadcast(array, root) is array
                np.testing.assert_array_equal(array, np.arange(size) % 100 + 10 * root)

    with switch_here() as switch:
        together(switch.address, 3, work)


def test_an_array_that_is_not_contiguous_is_written_back() -> None:
    def work(connection: SumConnection) -> None:
        whole = np.zeros((6, 8), np.float32)
        whole[::2, 1::3] = 1 + connection.rank
        part = whole[::2, 1::3]
        assert connection.all_reduce(part) is part
        assert (part == 3).all()
        assert whole.sum() == 3 * part.size
        turned = np.arange(12, dtype=np.int64).reshape(3, 4).T
        future = connection.all_reduce_async(turned)
        np.testing.assert_array_equal(future.wait(), 2 * np.arange(12).reshape(3, 4).T)
        scalar = np.array(5.0, np.float32)
        assert connection.all_reduce(scalar) is scalar
        assert float(scalar) == 10.0
        empty = np.zeros((0, 3), np.float32)
        assert connection.all_reduce(empty) is empty
        assert connection.all_reduce_async(empty).wait() is empty

    with switch_here() as switch:
        together(switch.address, 2, work)


def test_futures_end_in_any_order_and_call_back() -> None:
    def work(connection: SumConnection) -> list[int]:
        called: list[int] = []
        arrays = [np.full(50_000, index + connection.rank, np.float32) for index in range(8)]
        futures = [connection.all_reduce_async(array) for array in arrays]

        def note(index: int) -> Callable[[SumFuture[Any]], None]:
            return lambda future: called.append(index if future.done() else -1)

        for index, future in enumerate(futures):
            future.add_done_callback(note(index))
        for index, future in reversed([*enumerate(futures)]):
            assert (future.wait() == 2 * index + 1).all()
            assert future.done()
            assert future.exception() is None
            assert future.counts == (2, 2, False)
        until(lambda: len(called) == 8, what="the callbacks")
        futures[0].add_done_callback(note(8))
        return called

    with switch_here() as switch:
        for called in together(switch.address, 2, work):
            assert sorted(called) == [*range(9)]
            assert called[-1] == 8


def test_a_callback_that_fails_stops_no_other() -> None:
    def work(connection: SumConnection) -> int:
        called = threading.Event()
        future = connection.all_reduce_async(np.ones(10_000, np.float32))
        future.add_done_callback(lambda future: 1 / 0)
        future.add_done_callback(lambda future: called.set())
        assert called.wait(PATIENCE_S)
        return int(future.wait()[0])

    with switch_here() as switch:
        assert together(switch.address, 2, work) == [2, 2]


def test_several_jobs_share_a_switch() -> None:
    def work(connection: SumConnection) -> float:
        array = np.full(30_000, connection.job, np.float32)
        for _ in range(5):
            connection.all_reduce(array, "mean")
        return float(array[-1])

    results: dict[int, list[float]] = {}

    def job(number: int) -> None:
        results[number] = together(switch.address, 2, work, job=number)

    with switch_here() as switch:
        threads = [threading.Thread(target=job, args=(number,)) for number in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert results == {number: [number, number] for number in (1, 2, 3)}


def test_several_threads_wait_on_one_connection() -> None:
    def work(connection: SumConnection) -> None:
        futures = [
            connection.all_reduce_async(np.full(40_000, index, np.float32)) for index in range(6)
        ]
        results: list[float] = []
        threads = [
            threading.Thread(target=lambda f=future: results.append(float(f.wait()[0])))
            for future in futures
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert sorted(results) == [0, 2, 4, 6, 8, 10]

    with switch_here() as switch:
        together(switch.address, 2, work)


@pytest.mark.timeout(240)
def test_sums_are_right_where_datagrams_are_lost_both_ways() -> None:
    def work(connection: SumConnection) -> dict[str, Any]:
        for size in (1, 2_560, 825_000):
            for op in ("sum", "max"):
                array = own(connection, size)
                connection.all_reduce(array, op)
                np.testing.assert_array_equal(array, expected(op, size, 3))
        array = own(connection, 200_000)
        connection.broadcast(array, 1)
        np.testing.assert_array_equal(array, np.arange(200_000) % 100 + 10)
        return connection.stats()

    loss = {"probability": 0.01, "seed": 7}
    with switch_here(receive_loss=loss) as switch:
        counts = together(switch.address, 3, work, mtu_bytes=1500, receive_loss=loss)
    for count in counts:
        assert count["io"]["lost_on_purpose"] > 0
        assert count["asks"] > 0


def test_a_sum_beyond_the_deadline_is_partial_and_says_so() -> None:
    late = threading.Event()

    def work(connection: SumConnection) -> float:
        if connection.rank == 2:
            late.wait(PATIENCE_S)
            connection.all_reduce(np.ones(10, np.float32), "mean", partial=True)
            return 0.0
        array = np.full(10, 3.0 + connection.rank, np.float32)
        future = connection.all_reduce_async(array, "mean", partial=True)
        value = float(future.wait()[0])
        assert future.counts is not None
        assert (future.counts.contributors, future.counts.expected) == (2, 3)
        with pytest.raises(olaf.SumError, match="2 of the 3 workers") as error:
            connection.all_reduce(np.ones(10, np.float32))
        assert error.value.reason == "partial"
        assert (error.value.contributors, error.value.expected) == (2, 3)
        late.set()
        return value

    def work_with_second(connection: SumConnection) -> float:
        value = work(connection)
        if connection.rank == 2:
            connection.all_reduce(np.ones(10, np.float32), partial=True)
        return value

    with switch_here() as switch:
        values = together(switch.address, 3, work_with_second, deadline_s=0.1)
    assert values == [3.5, 3.5, 0.0]


def test_an_elastic_job_goes_on_as_workers_come_and_go() -> None:
    with switch_here() as switch, olaf.connect_sum(switch.address) as first:
        assert first.workers == 1
        assert first.all_reduce(np.ones(5, np.float32))[0] == 1
        second = Worker(switch.address)
        try:
            second.answer()
            second.tell(do="sum", size=5, value=1)
            assert first.all_reduce(np.ones(5, np.float32))[0] == 2
            assert second.answer()["value"] == 2
            assert first.workers == 2
            assert second.do(do="close") == {"closed": True}
            assert first.all_reduce(np.ones(5, np.float32))[0] == 1
        finally:
            second.end()


@pytest.mark.torch
def test_tensors_are_reduced_in_their_own_memory() -> None:
    torch = pytest.importorskip("torch")

    def work(connection: SumConnection) -> None:
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64):
            tensor = torch.full((3, 5), connection.rank + 1).to(dtype)
            memory = tensor.data_ptr()
            assert connection.all_reduce(tensor) is tensor
            assert tensor.data_ptr() == memory
            assert (tensor == 3).all()
        parameter = torch.nn.Parameter(torch.ones(7))
        connection.all_reduce(parameter)
        assert (parameter == 2).all()
        turned = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3).t()
        connection.all_reduce_async(turned).wait()
        assert (turned == 2 * torch.arange(6).reshape(2, 3).t()).all()
        with pytest.raises(ValueError, match=r"holds torch\.float64"):
            connection.all_reduce(torch.zeros(3, dtype=torch.float64))

    with switch_here() as switch:
        together(switch.address, 2, work)
