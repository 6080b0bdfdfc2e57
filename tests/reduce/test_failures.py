"""Whatever goes wrong ends in an error that says what, where, and what to do. Nothing hangs."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from ports import free_port, taken_port
from workers import PATIENCE_S, Worker, switch_here, switch_process, together

import olaf
from olaf import SumConnection, _olaf

Options = dict[str, Any]


@pytest.fixture
def workers() -> Iterator[list[Worker]]:
    """Workers that are ended, whatever happens."""
    started: list[Worker] = []
    yield started
    for worker in started:
        worker.end()


def start(workers: list[Worker], address: str, number: int, **options: Any) -> list[Worker]:
    """That many workers of one job, by rank."""
    new = [Worker(address, workers=number, **options) for _ in range(number)]
    workers += new
    by_rank = {worker.answer()["rank"]: worker for worker in new}
    return [by_rank[rank] for rank in range(number)]


def test_a_worker_that_is_killed_is_named_within_seconds(workers: list[Worker]) -> None:
    with switch_here(silence_ms=1000) as switch:
        first, second, third = start(workers, switch.address, 3)
        for worker in (first, second, third):
            worker.tell(do="sum", size=1000)
        assert [worker.answer()["value"] for worker in (first, second, third)] == [6, 6, 6]
        third.process.send_signal(signal.SIGKILL)
        third.process.wait()
        for worker in (first, second):
            worker.tell(do="sum", size=1000)
        for worker in (first, second):
            answer = worker.answer()
            assert answer["kind"] == "SumError", answer
            assert answer["reason"] == "worker_died"
            assert answer["culprit"] == 2
            assert "worker 2 of job 1 died" in answer["error"]
            assert switch.address in answer["error"]
            assert answer["took_s"] < 10


def test_a_worker_that_is_stopped_for_two_seconds_costs_time_alone(workers: list[Worker]) -> None:
    """With the default of ``silence_ms``: a debugger, a garbage collector, a slow file server."""
    with switch_here() as switch:
        first, second = start(workers, switch.address, 2)
        second.process.send_signal(signal.SIGSTOP)
        first.tell(do="sum", size=1000)
        threading.Event().wait(2.0)  # this is how long it is stopped
        second.process.send_signal(signal.SIGCONT)
        second.tell(do="sum", size=1000)
        assert [worker.answer().get("value") for worker in (first, second)] == [3, 3]


def test_a_switch_that_is_killed_is_named(workers: list[Worker]) -> None:
    with switch_process() as (process, address):
        first, second = start(workers, address, 2, silence_ms=1500)
        process.kill()
        process.wait()
        for worker in (first, second):
            worker.tell(do="sum", size=1000)
        for worker in (first, second):
            answer = worker.answer()
            assert (answer["kind"], answer["reason"]) == ("SumError", "switch_silent"), answer
            assert address in answer["error"]
            assert "olaf switch --engines reduce" in answer["error"]
            assert answer["took_s"] < 10


def test_after_a_restart_of_the_switch_the_job_goes_on() -> None:
    port = free_port()
    config = json.dumps({"engines": ["reduce"], "listen": f"127.0.0.1:{port}"})
    before = _olaf.Switch(config)
    before.start()
    restarted = threading.Barrier(3)

    def work(connection: SumConnection) -> float:
        connection.all_reduce(np.ones(100, np.float32))
        restarted.wait(PATIENCE_S)
        restarted.wait(PATIENCE_S)
        with pytest.raises(olaf.SumError) as error:
            connection.all_reduce(np.ones(100, np.float32))
        assert error.value.reason == "switch_restarted"
        assert f"127.0.0.1:{port}" in str(error.value)
        return float(connection.all_reduce(np.ones(100, np.float32))[0])

    def restart() -> None:
        restarted.wait(PATIENCE_S)
        before.stop()
        after.append(_olaf.Switch(config))
        after[0].start()
        restarted.wait(PATIENCE_S)

    after: list[_olaf.Switch] = []
    thread = threading.Thread(target=restart)
    thread.start()
    try:
        assert together(f"127.0.0.1:{port}", 2, work) == [2, 2]
    finally:
        thread.join(PATIENCE_S)
        for switch in (before, *after):
            switch.stop()


def test_workers_that_call_different_operations_all_hear_of_it() -> None:
    def work(connection: SumConnection) -> tuple[str, str]:
        size = 100 if connection.rank else 200
        with pytest.raises(olaf.SumError) as error:
            connection.all_reduce(np.ones(size, np.float32))
        return error.value.reason, str(error.value)

    with switch_here() as switch:
        for reason, text in together(switch.address, 3, work):
            assert reason == "mismatch"
            assert "called another operation than the others" in text


def test_a_worker_that_leaves_ends_a_fixed_job(workers: list[Worker]) -> None:
    with switch_here() as switch:
        first, second = start(workers, switch.address, 2)
        assert second.do(do="close") == {"closed": True}
        answer = first.do(do="sum", size=10)
        assert (answer["reason"], answer["culprit"]) == ("worker_left", 1), answer
        assert "worker 1 left job 1" in answer["error"]


def test_the_callers_time_limit_is_a_time_out(workers: list[Worker]) -> None:
    with switch_here(silence_ms=60_000) as switch:
        first, _ = start(workers, switch.address, 2)
        answer = first.do(do="sum", size=10, timeout_s=0.5)
        assert answer["kind"] == "TimeoutError", answer
        assert 0.4 < answer["took_s"] < 5
        assert "did not end within 0.5 s" in answer["error"]
        assert switch.address in answer["error"]


def test_the_time_limit_of_the_connection_holds_for_futures_nobody_waits_for() -> None:
    def work(connection: SumConnection) -> str:
        if connection.rank == 1:
            over.wait(PATIENCE_S)
            return "over"
        ended = threading.Event()
        future = connection.all_reduce_async(np.ones(10, np.float32))
        future.add_done_callback(lambda future: ended.set())
        with pytest.raises(TimeoutError, match="it goes on"):
            future.wait(timeout_s=0.05)
        assert not future.done()
        assert ended.wait(PATIENCE_S)
        assert isinstance(future.exception(), TimeoutError)
        with pytest.raises(TimeoutError, match=r"did not end within 0\.5 s"):
            future.wait()
        over.set()
        return "over"

    over = threading.Event()
    with switch_here(silence_ms=60_000) as switch:
        assert together(switch.address, 2, work, operation_timeout_ms=500) == ["over", "over"]


def test_a_closed_connection_ends_what_waits() -> None:
    with switch_here(silence_ms=60_000) as switch:
        alone = olaf.connect_sum(switch.address)
        other = Worker(switch.address)
        try:
            other.answer()
            alone.all_reduce(np.ones(3, np.float32), timeout_s=0.2) if alone.workers == 1 else None
        except (TimeoutError, olaf.SumError):
            pass
        finally:
            future = alone.all_reduce_async(np.ones(3, np.float32))
            threading.Timer(0.2, alone.close).start()
            with pytest.raises(olaf.SumError) as error:
                future.wait()
            assert error.value.reason == "not_joined"
            other.end()
        with pytest.raises(olaf.SumError, match="connect again"):
            alone.all_reduce(np.ones(3, np.float32))
        alone.close()


def test_a_nan_that_the_switch_refuses_is_missing_and_names_its_worker() -> None:
    def work(connection: SumConnection) -> tuple[str, int | None]:
        array = np.ones(50_000, np.float32)
        if connection.rank == 1:
            array[40_000] = np.nan
        with pytest.raises(olaf.SumError) as error:
            # No deadline: the block goes without the refused piece at once.
            connection.all_reduce(array, timeout_s=20)
        array[:] = np.nan if connection.rank == 1 else 2.0
        assert (connection.all_reduce(array, partial=True) == 4).all(), "the others' sum"
        return error.value.reason, error.value.culprit

    with switch_here(non_finite="refuse") as switch:
        assert together(switch.address, 3, work) == [("not_finite", 1)] * 3
        told = [json.loads(event) for event in switch.events()]
    named = [event for event in told if event["event"] == "non_finite"]
    assert [(event["rank"], event["operation"]) for event in named] == [(1, 0), (1, 1)]


def test_a_nan_that_is_passed_on_is_told() -> None:
    def work(connection: SumConnection) -> bool:
        array = np.full(10, np.inf if connection.rank else 1.0, np.float32)
        future = connection.all_reduce_async(array)
        assert np.isinf(future.wait()).all()
        assert future.counts is not None
        return future.counts.not_finite

    with switch_here() as switch:
        assert together(switch.address, 2, work) == [True, True]


def test_nobody_at_the_address_is_named() -> None:
    began = time.monotonic()
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(olaf.UnreachableError, match="nothing listens on that port") as error:
        olaf.connect_sum(address, timeout_s=0.3)
    assert address in str(error.value)
    with (
        taken_port() as silent,
        pytest.raises(olaf.UnreachableError, match="does UDP get through"),
    ):
        olaf.connect_sum(f"127.0.0.1:{silent}", timeout_s=0.3)
    assert time.monotonic() - began < 20


def test_missing_workers_are_counted() -> None:
    with (
        switch_here() as switch,
        pytest.raises(TimeoutError, match="1 of 3 workers of job 7 are at the switch"),
    ):
        olaf.connect_sum(switch.address, job=7, workers=3, timeout_s=0.5)


def test_one_worker_too_many_is_refused() -> None:
    with switch_here() as switch, olaf.connect_sum(switch.address, workers=1):
        with pytest.raises(olaf.RefusedError, match="has all its workers"):
            olaf.connect_sum(switch.address, workers=1, timeout_s=5)
        with pytest.raises(olaf.RefusedError, match="contradicts the other workers"):
            olaf.connect_sum(switch.address, workers=2, timeout_s=5)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"workers": 0}, "workers = 0: must be from 1"),
        ({"workers": 2, "rank": 2}, "rank = 2: must be from 0 to 1"),
        ({"job": -1}, "job = -1"),
        ({"deadline_s": 0}, "deadline_s = 0"),
        ({"silence_ms": 0}, "silence_ms"),
        ({"windows": 3}, "unknown field `windows`"),
        ({"mtu_bytes": 100}, "mtu_bytes = 100: must be at least 576"),
    ],
)
def test_what_cannot_be_names_the_key(options: Options, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        olaf.connect_sum("127.0.0.1:9", **options)


def test_an_address_without_a_port_says_what_to_write() -> None:
    with pytest.raises(ValueError, match="has no port: write host:port"):
        olaf.connect_sum("127.0.0.1")


def test_arrays_that_cannot_be_reduced_say_why() -> None:
    def work(connection: SumConnection) -> None:
        read_only = np.zeros(3, np.float32)
        read_only.flags.writeable = False
        swapped: Any = np.zeros(3, ">f4")
        for array, kind, told in (
            (np.zeros(3), ValueError, "the array holds float64"),
            (swapped, ValueError, "in this machine's byte order"),
            (read_only, ValueError, "read-only"),
            ([1.0, 2.0], TypeError, "expected a numpy array or a torch tensor, not list"),
        ):
            with pytest.raises(kind, match=told):
                connection.all_reduce(array)
        array = np.zeros(3, np.int32)
        with pytest.raises(ValueError, match="integers have no mean"):
            connection.all_reduce(array, "mean")
        wrong: Any = "product"
        with pytest.raises(ValueError, match="op = 'product': must be one of sum, mean"):
            connection.all_reduce(array, wrong)
        with pytest.raises(ValueError, match="root = 1: must be a rank, from 0 to 0"):
            connection.broadcast(array, 1)
        with pytest.raises(ValueError, match="timeout_s = 0"):
            connection.all_reduce(array, timeout_s=0)
        connection.all_reduce(array)

    with switch_here() as switch:
        together(switch.address, 1, work)
