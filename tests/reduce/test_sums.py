"""Workers sum arrays through a switch, and all of them get the same right result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from workers import Worker, switch_here, switch_process, together

from olaf import SumConnection

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
