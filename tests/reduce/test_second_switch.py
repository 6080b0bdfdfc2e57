"""A job with two switches ends all operations rightly when the first switch is killed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import moving
import numpy as np
import pytest
from ports import free_port
from relay import Path as Way
from relay import Relay
from workers import PATIENCE_S, switch_here, switch_process

import olaf
from olaf import SumConnection

PROGRAM = Path(__file__).with_name("moving.py")
WORKERS = 4
SILENCE_MS = 800
PATIENT = ("--set", "switch.reduce.silence=60s")
"""Of a switch that is killed: until then it takes no worker for dead, however slow the machine is.

A worker that it takes for dead is an error at the workers that hear of it. Those that do not hear
it go to the second switch, and wait for the others there until their operations time out.
"""
OPERATION_MS = 40_000
"""Shorter than `PATIENCE_S`: a worker that waits in vain says why."""


@contextmanager
def programs(address: str, **order: Any) -> Iterator[list[subprocess.Popen[str]]]:
    """The workers of a job, by rank."""
    options = order.pop("options")
    started = [
        subprocess.Popen(
            [
                *(sys.executable, str(PROGRAM), address),
                json.dumps({**order, "options": {**options, "rank": rank}}),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(WORKERS)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def outcome(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The last line of a worker that has ended well."""
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    last: dict[str, Any] = json.loads(out.splitlines()[-1])
    return last


@pytest.mark.parametrize(
    ("largest", "steps", "at_once", "seed"),
    [
        (3_000, 60, 1, 1),
        (3_000, 60, 1, 2),
        (3_000, 80, 6, 3),
        (3_000, 80, 6, 4),
        (1_500_000, 14, 1, 5),
        (1_500_000, 14, 1, 6),
        (1_500_000, 14, 4, 7),
        (1_500_000, 14, 4, 8),
    ],
)
def test_a_switch_that_is_killed_in_the_middle_costs_no_operation(
    largest: int, steps: int, at_once: int, seed: int
) -> None:
    chance = random.Random(seed)
    with switch_process(*PATIENT) as (process, address), switch_process() as (_, second):
        options = {"workers": WORKERS, "fall_back": second, "silence_ms": SILENCE_MS}
        order = {"steps": steps, "seed": seed, "largest": largest, "at_once": at_once}
        order["waits_at"] = steps - 1
        with programs(address, **order, options=options) as workers:
            last = chance.randrange(1, steps - at_once - 1)
            stream = workers[chance.randrange(WORKERS)].stdout
            assert stream is not None
            while json.loads(stream.readline())["step"] < last:
                pass
            time.sleep(chance.random() * 0.02)
            process.kill()
            process.wait()
            for worker in workers:
                assert worker.stdin is not None
                worker.stdin.write("\n")
                worker.stdin.flush()
            ends = [outcome(worker) for worker in workers]
    for end in ends:
        assert end["digests"] == ends[0]["digests"], "all workers have the same bits"
        assert len(end["digests"]) == steps
        told = end["fall_back"]
        assert (told["state"], told["switch"]) == ("second", second)
        assert told["operation"] == ends[0]["fall_back"]["operation"] > last
        assert told["kept_bytes"] == 0
        assert len(end["warnings"]) == 1
        assert address in end["warnings"][0]
        assert second in end["warnings"][0]


Work = Callable[[SumConnection], Any]


def each(work: Sequence[tuple[str, Work]], **options: Any) -> list[Any]:
    """What the workers return: each is a thread with an address and something to do."""
    results: dict[int, Any] = {}

    def one(rank: int, address: str, do: Work) -> None:
        try:
            with olaf.connect_sum(address, workers=len(work), rank=rank, **options) as connection:
                results[rank] = do(connection)
        except BaseException as error:
            results[rank] = error

    threads = [
        threading.Thread(target=one, args=(rank, address, do), daemon=True)
        for rank, (address, do) in enumerate(work)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "a worker hangs"
    for result in results.values():
        if isinstance(result, BaseException):
            raise result
    return [results[rank] for rank in range(len(work))]


def told(connection: SumConnection, *keys: str) -> tuple[Any, ...]:
    table = connection.stats()["fall_back"]
    return tuple(table[key] for key in keys)


def noise(rank: int, size: int = 20_000) -> Any:
    """Numbers whose sum depends on the order of its terms."""
    return np.random.default_rng(rank).lognormal(0, 8, size).astype(np.float32)


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.filterwarnings("ignore:olaf. THE SWITCH")
def test_a_worker_that_has_a_result_gives_it_to_those_who_lack_it(goes_on: bool) -> None:
    """It has overwritten its array by then. It goes on to the next operation, or leaves."""
    ready, over = threading.Barrier(3), threading.Barrier(3)
    with switch_process(*PATIENT) as (process, address), switch_here() as second:
        relays = [Relay(address, Way()) for _ in range(2)]

        def has_it(connection: SumConnection) -> Any:
            connection.all_reduce(noise(9))
            ready.wait(PATIENCE_S)
            ready.wait(PATIENCE_S)
            array = connection.all_reduce(noise(0))
            kept = array.copy()
            array[:] = 0
            process.kill()
            process.wait()
            if goes_on:
                assert connection.all_reduce(np.ones(5, np.int64))[0] == 3
                over.wait(PATIENCE_S)
                assert told(connection, "operation", "given", "taken") == (2, 1, 0)
            return kept

        def lacks_it(connection: SumConnection) -> Any:
            connection.all_reduce(noise(9))
            ready.wait(PATIENCE_S)
            relays[connection.rank - 1].path.mute = True
            ready.wait(PATIENCE_S)
            array = connection.all_reduce(noise(connection.rank))
            if goes_on:
                assert connection.all_reduce(np.ones(5, np.int64))[0] == 3
                over.wait(PATIENCE_S)
            assert told(connection, "operation", "given", "taken") == (2, 0, 1)
            return array

        work = [(address, has_it), *((relay.address, lacks_it) for relay in relays)]
        try:
            results = each(work, fall_back=second.address, silence_ms=SILENCE_MS)
        finally:
            for relay in relays:
                relay.stop()
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.filterwarnings("ignore:olaf. THE SWITCH")
def test_workers_that_lose_results_at_different_moments_agree(seed: int) -> None:
    chance = random.Random(seed)
    at_once, steps, largest = chance.choice([1, 3, 8]), 40, chance.choice([50, 5_000, 100_000])
    order = {"seed": seed, "largest": largest}
    with switch_process(*PATIENT) as (process, address), switch_here() as second:
        relays = [Relay(address, Way()) for _ in range(WORKERS)]
        dies_after = chance.randrange(steps // 2)
        mutes = {dies_after + ahead: chance.choice(relays) for ahead in (0, at_once // 2)}
        reached = threading.Event()
        begun = threading.Barrier(WORKERS)
        """A worker whose way is mute before it heard that the job begins would wait in vain."""

        def work(connection: SumConnection) -> Any:
            begun.wait(PATIENCE_S)
            running: deque[tuple[int, Any]] = deque()
            results = []

            def end() -> None:
                step, future = running.popleft()
                array = future.wait()
                moving.check(array, seed, step, WORKERS)
                results.append(array.tobytes())
                array[:] = -1

            for step in range(steps):
                if step in mutes:
                    mutes[step].path.mute = True
                if step == dies_after:
                    reached.set()
                array = moving.lanes(seed, step, connection.rank, moving.size_of(order, step))
                running.append((step, moving.begin(connection, step, array)))
                if len(running) == at_once:
                    end()
            while running:
                end()
            return results, told(connection, "state", "operation", "taken", "given")

        def kill() -> None:
            reached.wait(PATIENCE_S)
            time.sleep(0.2)  # the others take in what they can
            process.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            # Longer than the wait before the switch dies: to all workers it is dead, or to none.
            settings = {
                "fall_back": second.address,
                "silence_ms": 6 * SILENCE_MS,
                "operation_timeout_ms": OPERATION_MS,
            }
            ends = each([(relay.address, work) for relay in relays], **settings)
        finally:
            killer.join()
            for relay in relays:
                relay.stop()
    results = [results for results, _ in ends]
    assert all(its == results[0] for its in results[1:]), "all workers have the same bits"
    states = {(state, operation) for _, (state, operation, *_) in ends}
    assert len(states) == 1
    assert states.pop()[0] == "second"


@pytest.mark.filterwarnings("ignore:olaf. THE SWITCH")
def test_a_result_may_come_before_its_operation_begins() -> None:
    """A root has the result of its broadcast while another worker has not begun it."""
    ready = threading.Barrier(3)
    with switch_process(*PATIENT) as (process, address), switch_here() as second:
        relay = Relay(address, Way())

        def root(connection: SumConnection) -> Any:
            connection.all_reduce(noise(9))
            ready.wait(PATIENCE_S)
            first = connection.all_reduce_async(noise(connection.rank))
            array = noise(5)
            second = connection.broadcast_async(array, 0)
            if connection.rank == 0:
                first.wait()
                second.wait()
                array[:] = 0
                process.kill()
                process.wait()
            third = connection.all_reduce(np.ones(5, np.int64))
            return first.wait(), third, told(connection, "operation", "again")

        def late(connection: SumConnection) -> Any:
            connection.all_reduce(noise(9))
            relay.path.mute = True
            ready.wait(PATIENCE_S)
            first = connection.all_reduce(noise(2))
            copy = connection.broadcast(np.zeros(20_000, np.float32), 0)
            np.testing.assert_array_equal(copy, noise(5))
            third = connection.all_reduce(np.ones(5, np.int64))
            assert told(connection, "taken") == (2,)
            return first, third, (3, 0)

        work = [(address, root), (address, root), (relay.address, late)]
        try:
            results = each(work, fall_back=second.address, silence_ms=SILENCE_MS)
        finally:
            relay.stop()
    for first, third, (operation, _) in results:
        np.testing.assert_array_equal(first, results[0][0])
        assert (third == 3).all()
        assert operation == 3


@pytest.mark.filterwarnings("ignore:olaf. THE SWITCH")
def test_a_worker_that_was_idle_when_the_switch_was_started_again_moves_too() -> None:
    """It joins the new switch by itself; the others have gone to the second one."""
    idle, port = threading.Barrier(3), free_port()
    with switch_here(f"127.0.0.1:{port}") as before, switch_here() as second:

        def work(connection: SumConnection) -> Any:
            connection.all_reduce(np.ones(3, np.float32))
            idle.wait(PATIENCE_S)
            idle.wait(PATIENCE_S)
            if connection.rank:
                # Its heartbeats tell it that the switch has another life.
                while not connection.events():
                    time.sleep(0.01)
            return float(connection.all_reduce(np.ones(3, np.float32))[0])

        results: list[Any] = []
        options = {"fall_back": second.address, "silence_ms": SILENCE_MS, "keepalive_ms": 50}
        thread = threading.Thread(
            target=lambda: results.extend(each([(before.address, work)] * 2, **options))
        )
        thread.start()
        idle.wait(PATIENCE_S)
        before.stop()
        with switch_here(f"127.0.0.1:{port}"):
            idle.wait(PATIENCE_S)
            thread.join(PATIENCE_S)
        assert results == [2, 2]


@pytest.mark.filterwarnings("ignore:olaf. THE SWITCH")
def test_partial_sums_and_callbacks_keep_their_meaning() -> None:
    ready = threading.Barrier(3)
    with switch_process(*PATIENT) as (process, address), switch_here() as second:

        def work(connection: SumConnection) -> Any:
            connection.all_reduce(np.ones(10, np.float32), partial=True)
            if ready.wait(PATIENCE_S) == 0:
                process.kill()
                process.wait()
            ended = threading.Event()
            future = connection.all_reduce_async(np.ones(10, np.float32), "mean", partial=True)
            future.add_done_callback(lambda _: ended.set())
            assert ended.wait(PATIENCE_S), "nobody waits for the future"
            assert (future.wait() == 1).all()
            ready.wait(PATIENCE_S)
            if connection.rank == 2:
                time.sleep(1.5)
            array = np.full(10, 1.0 + connection.rank, np.float32)
            future = connection.all_reduce_async(array, "mean", partial=True)
            future.wait()
            assert future.counts is not None
            ready.wait(PATIENCE_S)
            return float(array[0]), future.counts[:2]

        options = {"fall_back": second.address, "silence_ms": SILENCE_MS, "deadline_s": 0.5}
        assert each([(address, work)] * 3, **options) == [(1.5, (2, 3))] * 3


def test_without_the_second_switch_the_error_names_both() -> None:
    nobody = f"127.0.0.1:{free_port()}"
    have_it = threading.Barrier(2)
    with switch_process(*PATIENT) as (process, address):

        def work(connection: SumConnection) -> Any:
            connection.all_reduce(np.ones(10, np.float32))
            have_it.wait(PATIENCE_S)  # else the switch may die before it has sent both results
            if connection.rank == 0:
                process.kill()
                process.wait()
            errors = []
            for _ in range(2):
                began = time.monotonic()
                with pytest.raises(olaf.SumError) as error:
                    connection.all_reduce(np.ones(10, np.float32))
                errors.append((error.value.reason, str(error.value), time.monotonic() - began))
            assert told(connection, "state") == ("failed",)
            return errors

        options = {"fall_back": nobody, "silence_ms": SILENCE_MS, "operation_timeout_ms": 3000}
        for (reason, text, took_s), (_, again, at_once_s) in each([(address, work)] * 2, **options):
            assert reason == "switch_silent"
            assert address in text
            assert f"the second switch {nobody}" in text
            assert "nothing listens on that port" in text
            assert (again, took_s < 15, at_once_s < 1) == (text, True, True)


def test_the_second_switch_does_not_help_a_job_with_a_new_worker() -> None:
    """The new worker counts its operations from another one, so nothing may be summed."""
    with switch_process(*PATIENT) as (process, address), switch_here() as second:
        options: dict[str, Any] = {
            "workers": 2,
            "fall_back": second.address,
            "silence_ms": SILENCE_MS,
            "operation_timeout_ms": 2000,
        }
        made: list[SumConnection] = []
        first = threading.Thread(target=lambda: made.append(olaf.connect_sum(address, **options)))
        first.start()
        stays = olaf.connect_sum(address, **options)
        first.join()
        future = stays.all_reduce_async(np.ones(3, np.float32))
        made[0].all_reduce(np.ones(3, np.float32))
        future.wait()
        made[0]._client.leave_at_once()
        new = olaf.connect_sum(address, **options)
        with pytest.raises(olaf.SumError) as left:
            stays.all_reduce(np.ones(3, np.float32))
        assert left.value.reason == "worker_left"
        future = stays.all_reduce_async(np.ones(3, np.float32))
        assert new.all_reduce(np.ones(3, np.float32))[0] == 2
        future.wait()
        process.kill()
        process.wait()
        future = stays.all_reduce_async(np.ones(3, np.float32))
        with pytest.raises(olaf.SumError, match="1 of 2 workers"):
            new.all_reduce(np.ones(3, np.float32))
        with pytest.raises(olaf.SumError) as error:
            future.wait()
        assert (error.value.reason, address in str(error.value)) == ("switch_silent", True)
        assert "began anew" in told(stays, "off")[0]
        stays.close()
        new.close()


def test_what_cannot_be_is_said_at_the_start() -> None:
    with pytest.raises(ValueError, match="fall_back needs workers="):
        olaf.connect_sum("127.0.0.1:9", fall_back="127.0.0.1:10")
    with pytest.raises(ValueError, match="has no port"):
        olaf.connect_sum("127.0.0.1:9", workers=2, fall_back="127.0.0.1")
