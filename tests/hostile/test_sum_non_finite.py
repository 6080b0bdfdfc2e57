"""A worker that sends NaN to a switch or a server that refuses it: the operation ends everywhere,
and the worker is named."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from parties import Party
from waiting import until

import olaf

RANKS, FAULTY = 3, 1
PACKETS = 12
"""Of a vector, of 366 floats each."""


def test_iswitch_ends_the_operation_at_all_workers_and_names_the_worker_that_sent_nan(
    party: Callable[..., Party],
) -> None:
    switch = party("switch", engines=["iswitch"], iswitch={"non_finite": "refuse"})

    def received() -> int:
        return int(switch.stats()["iswitch"]["pieces"]["received"])

    def works(rank: int) -> tuple[float, olaf.SumError]:
        array = np.full(PACKETS * 366, rank + 1, np.float32)
        with olaf.connect_sum(
            switch.address, job=1, workers=RANKS, rank=rank, protocol="iswitch"
        ) as job:
            job.all_reduce(array)
            right = float(array[0])
            if rank == FAULTY:
                array[4_000] = np.nan
                # The others wait in the operation: who has not begun would begin it anew.
                until(lambda: received() >= (2 * RANKS - 1) * PACKETS, "the others' packets")
            with pytest.raises(olaf.SumError) as caught:
                job.all_reduce(array)
            return right, caught.value

    with ThreadPoolExecutor(RANKS) as pool:
        told = list(pool.map(works, range(RANKS)))
    assert [right for right, _ in told] == [6.0] * RANKS
    for _, error in told:
        assert (error.reason, error.culprit) == ("refused", FAULTY)
        assert f"because of worker {FAULTY} of job 1" in str(error)
    stats = switch.stats()["iswitch"]
    assert stats["pieces"]["refused"]["non_finite"] == 1
    assert stats["non_finite_packets"] == 0, "none is in a sum"
    closed = stats["closed_generations"]
    # The next generation may have begun before the programs left.
    assert closed["refused"] == 1
    assert closed.keys() <= {"refused", "left"}
    said = [event for event in switch.events() if event["event"] == "non_finite"]
    assert [event["rank"] for event in said] == [FAULTY]


def test_the_server_of_atp_ends_the_operation_at_all_workers_and_names_the_worker(
    party: Callable[..., Party],
) -> None:
    switch = party("switch", engines=["atp", "atp_server"], atp_server={"non_finite": "refuse"})

    def works(rank: int) -> tuple[float, olaf.SumError, float]:
        array = np.full(5_000, rank + 1, np.float32)
        with olaf.connect_sum(
            switch.address, job=1, workers=RANKS, rank=rank, protocol="atp"
        ) as job:
            before = float(job.all_reduce(array.copy())[0])
            bad = array.copy()
            if rank == FAULTY:
                bad[4_000] = np.nan
            with pytest.raises(olaf.SumError) as caught:
                job.all_reduce(bad)
            met.wait(30)
            after = float(job.all_reduce(array)[0])
            met.wait(30)
            return before, caught.value, after

    met = threading.Barrier(RANKS)
    with ThreadPoolExecutor(RANKS) as pool:
        told = list(pool.map(works, range(RANKS)))
    assert [(before, after) for before, _, after in told] == [(6.0, 6.0)] * RANKS
    for _, error, _ in told:
        assert (error.reason, error.culprit) == ("refused", FAULTY)
    stats = switch.stats()["atp_server"]
    assert stats["non_finite_packets"] == 0, "none is in a sum"
    assert stats["closed_generations"]["refused"] == 1
    assert stats["refused"]["non_finite"] == 1
    said = [event for event in switch.events() if event["event"] == "non_finite"]
    assert [event["rank"] for event in said] == [FAULTY]
