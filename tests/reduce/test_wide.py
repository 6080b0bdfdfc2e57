"""``exact="wide"``: the same bits in every run, and small values beside large ones are kept."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from workers import switch_here, together

from olaf import SumConnection

WORKERS = 3


def own(rank: int, size: int) -> NDArray[np.float32]:
    """Values over ten orders of magnitude."""
    random = np.random.default_rng(7 + rank)
    return (random.normal(size=size) * 10.0 ** random.uniform(-10, 0, size)).astype(np.float32)


def summed(size: int, op: Any, **config: Any) -> NDArray[np.float32]:
    """What every worker gets."""

    def work(connection: SumConnection) -> bytes:
        array = own(connection.rank, size)
        assert connection.all_reduce(array, op, exact="wide") is array
        assert connection.all_reduce(np.ones(3, np.float32))[0] == WORKERS
        return array.tobytes()

    with switch_here(**config) as switch:
        results = together(switch.address, WORKERS, work)
    assert len(set(results)) == 1, "all workers have the same bits"
    return np.frombuffer(results[0], np.float32)


def reference(size: int) -> NDArray[np.float32]:
    """The true sum, rounded once."""
    columns = zip(*(own(rank, size).tolist() for rank in range(WORKERS)), strict=True)
    return np.array([math.fsum(column) for column in columns], np.float64).astype(np.float32)


@pytest.mark.parametrize("size", [1, 30_000])
def test_each_value_is_the_true_sum_rounded_once(size: int) -> None:
    found = summed(size, "sum", receive_loss={"probability": 0.01, "seed": 3})
    np.testing.assert_array_equal(found, reference(size))
    np.testing.assert_array_equal(summed(size, "sum"), found)
    mean = reference(size).astype(np.float64) / WORKERS
    np.testing.assert_allclose(summed(size, "mean"), mean, rtol=2.0**-23)


def test_what_exact_loses_is_kept() -> None:
    def work(connection: SumConnection) -> tuple[float, float]:
        values = np.array([1.0, 1e-9], np.float32)
        wide, narrow = values.copy(), values.copy()
        connection.all_reduce(wide, exact="wide")
        connection.all_reduce(narrow, exact=True)
        return float(wide[1]), float(narrow[1])

    with switch_here() as switch:
        wide, narrow = together(switch.address, 2, work)[0]
    assert wide == float(np.float32(1e-9)) * 2
    assert abs(narrow / 2e-9 - 1) > 0.05


def test_zeros_the_largest_and_values_that_are_none() -> None:
    largest = float(np.finfo(np.float32).max)
    cases = [
        ([0.0, 0.0], [0.0, 0.0], [0.0, 0.0]),
        ([largest, 1e-40], [-largest, 1e-40], [0.0, 0.0]),
        ([1e-45, 1e-40], [1e-45, 1e-40], [2.8e-45, 2 * float(np.float32(1e-40))]),
        ([1.0, math.nan], [1.0, 1.0], [math.nan, math.nan]),
        ([1.0, 1.0], [-math.inf, 1.0], [math.nan, math.nan]),
    ]

    def work(connection: SumConnection) -> list[NDArray[np.float32]]:
        found = []
        for case in cases:
            found.append(connection.all_reduce(np.array(case[connection.rank], np.float32),
                                               exact="wide"))  # fmt: skip
        return found

    with switch_here() as switch:
        for found in together(switch.address, 2, work):
            for got, (*_, expected) in zip(found, cases, strict=True):
                np.testing.assert_array_equal(got, np.array(expected, np.float32))


def test_other_types_and_calls() -> None:
    def work(connection: SumConnection) -> None:
        ones = np.ones(3, np.int64)
        assert connection.all_reduce(ones, exact="wide").tolist() == [2, 2, 2]
        assert connection.all_reduce(np.ones(2, np.float32), "max", exact="wide")[0] == 1
        assert connection.all_reduce(np.ones(0, np.float32), exact="wide").size == 0
        constant: NDArray[Any] = np.broadcast_to(np.float32(1), 1)
        for refused, array, partial in (
            ("need float32", np.ones(3, np.float16), False),
            ("partial=True", np.ones(3, np.float32), True),
            ("read-only", constant, False),
        ):
            with pytest.raises(ValueError, match=refused):
                connection.all_reduce(array, exact="wide", partial=partial)
        with pytest.raises(ValueError, match="all_reduce has more"):
            connection.all_reduce_async(np.ones(3, np.float32), exact="wide")  # type: ignore[arg-type]

    with switch_here() as switch:
        together(switch.address, 2, work)
