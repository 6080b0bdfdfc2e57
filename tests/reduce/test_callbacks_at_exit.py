"""A program may end while a callback of a sum runs; the interpreter waits for the callback."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest
from workers import PATIENCE_S, switch_process

import olaf
from olaf.processes import callbacks

PROGRAM = """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor
import numpy, olaf

def connect(rank):
    return olaf.connect_sum(sys.argv[1], workers=2, rank=rank)

with ThreadPoolExecutor(2) as pool:
    first, second = pool.map(connect, range(2))
began = threading.Event()

def slow(_):
    began.set()
    time.sleep(0.5)
    print("called in", threading.current_thread().name, flush=True)

one, two = (numpy.ones(4, numpy.float32) for _ in range(2))
future = first.all_reduce_async(one)
future.add_done_callback(slow)
second.all_reduce(two)
began.wait(20)
"""


def connect(address: str, rank: int) -> olaf.SumConnection:
    return olaf.connect_sum(address, workers=2, rank=rank)


def test_the_interpreter_ends_after_a_callback() -> None:
    with switch_process() as (_, address):
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, address],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert (ran.returncode, ran.stdout.strip()) == (0, "called in olaf-told"), ran.stderr


def test_a_callback_may_wait_for_another_operation() -> None:
    """While it waits, another thread of the connection tells of the operations that end."""
    with switch_process() as (_, address), ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda rank: connect(address, rank), range(2)))

        def sums(connection: olaf.SumConnection) -> float:
            inner: Future[float] = Future()

            def begin_another(_: object) -> None:
                second = connection.all_reduce_async(np.full(4, 2, np.float32))
                third = connection.all_reduce_async(np.full(4, 3, np.float32))
                told = threading.Event()
                third.add_done_callback(lambda _: told.set())
                assert told.wait(PATIENCE_S)
                inner.set_result(float(second.wait()[0]))

            first = connection.all_reduce_async(np.ones(4, np.float32))
            first.add_done_callback(begin_another)
            return inner.result(PATIENCE_S)

        assert list(pool.map(sums, both)) == [4.0, 4.0]
        for connection in both:
            connection.close()
        assert "olaf-told" not in {thread.name for thread in threading.enumerate()}


def test_after_the_close_no_thread_of_the_connection_is_left() -> None:
    """It would free what callbacks refer to while the interpreter ends."""
    called, ended = threading.Event(), threading.Event()

    def of_result(_: object) -> None:
        called.set()
        ended.wait(PATIENCE_S)

    with switch_process() as (_, address), ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda rank: connect(address, rank), range(2))
        future = first.all_reduce_async(np.ones(4, np.float32))
        future.add_done_callback(of_result)
        second.all_reduce(np.ones(4, np.float32))
        assert called.wait(PATIENCE_S)
        closing = pool.submit(first.close)
        with pytest.raises(TimeoutError):
            closing.result(0.2)  # the callback still runs
        ended.set()
        closing.result(PATIENCE_S)
        assert "olaf-told" not in {thread.name for thread in threading.enumerate()}
        second.close()


def test_a_callback_that_never_returns_holds_the_end_up_for_a_bounded_time() -> None:
    began, end = threading.Event(), threading.Event()

    def call() -> None:
        with callbacks.running():
            began.set()
            end.wait(PATIENCE_S)

    thread = threading.Thread(target=call)
    thread.start()
    assert began.wait(PATIENCE_S)
    assert not callbacks.wait(0.01)
    end.set()
    assert callbacks.wait(PATIENCE_S)
    thread.join(PATIENCE_S)


def test_a_callback_that_fails_counts_as_returned() -> None:
    with pytest.raises(ZeroDivisionError), callbacks.running():
        _ = 1 / 0
    assert callbacks.wait(0)
