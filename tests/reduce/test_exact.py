"""Order-free sums: the same inputs have the same bits, in any order and through any tree."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from workers import switch_here, together

import olaf
from olaf import SumConnection

WORKERS = 4


def own(rank: int, size: int) -> NDArray[np.float32]:
    """Lanes of very different magnitudes: their float sum depends on the order."""
    random = np.random.default_rng(100 + rank)
    lanes = random.normal(size=size) * 10.0 ** random.uniform(-6, 6, size)
    return lanes.astype(np.float32)


def true_sum(size: int) -> NDArray[np.float64]:
    """The sum of all workers' lanes in float64."""
    each = [own(rank, size).astype(np.float64) for rank in range(WORKERS)]
    total: NDArray[np.float64] = np.sum(each, axis=0)
    return total


def exact(size: int, op: str, **loss: Any) -> bytes:
    """The bits that every worker gets."""

    def work(connection: SumConnection) -> bytes:
        array = own(connection.rank, size)
        connection.all_reduce(array, op, exact=True)  # type: ignore[arg-type]
        # A later operation keeps its place behind both operations of the exact one.
        assert connection.all_reduce(np.ones(3, np.float32))[0] == WORKERS
        return array.tobytes()

    with switch_here(**loss) as switch:
        results = together(switch.address, WORKERS, work)
    assert len(set(results)) == 1, "all workers have the same bits"
    return results[0]


@pytest.mark.parametrize("size", [1, 5_000, 400_000])
def test_two_runs_have_the_same_bits(size: int) -> None:
    bits = exact(size, "sum")
    assert bits == exact(size, "sum", receive_loss={"probability": 0.02, "seed": 7})
    result, expected = np.frombuffer(bits, np.float32), true_sum(size)
    # The largest lane of a block sets the step of all its lanes.
    largest = max(np.abs(own(rank, size)).max() for rank in range(WORKERS))
    assert np.abs(result - expected).max() <= largest * 2.0**-26 + np.abs(expected).max() * 2.0**-23


def test_a_mean_is_exact_too() -> None:
    mean = np.frombuffer(exact(1_000, "mean"), np.float32)
    total = np.frombuffer(exact(1_000, "sum"), np.float32)
    np.testing.assert_array_equal(mean, total / np.float32(WORKERS))


def test_a_tree_of_switches_has_the_same_bits_as_one() -> None:
    size = 50_000
    results: dict[int, bytes] = {}

    def work(address: str, rank: int, leaving: threading.Barrier) -> None:
        with olaf.connect_sum(address, workers=WORKERS, rank=rank) as connection:
            assert (connection.rank, connection.workers) == (rank, WORKERS)
            array = own(rank, size)
            connection.all_reduce(array, exact=True)
            results[rank] = array.tobytes()
            told = np.full(10_000, float(rank), np.float32)
            assert (connection.broadcast(told, root=3) == 3.0).all()
            leaving.wait(60)

    with switch_here() as upper:
        up = upper.address
        with switch_here(upstream=up) as left, switch_here(upstream=up) as right:
            leaving = threading.Barrier(WORKERS)
            places = [left.address, left.address, right.address, right.address]
            threads = [
                threading.Thread(target=work, args=(address, rank, leaving), daemon=True)
                for rank, address in enumerate(places)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
    assert set(results) == set(range(WORKERS))
    assert set(results.values()) == {exact(size, "sum")}


def test_what_has_no_exact_sum_is_refused_by_name() -> None:
    def work(connection: SumConnection) -> None:
        with pytest.raises(ValueError, match="f16"):
            connection.all_reduce(np.ones(4, np.float16), exact=True)
        whole = connection.all_reduce(np.ones(4, np.int32), exact=True)
        assert (whole == 1).all(), "integers are always exact"

    with switch_here() as switch:
        together(switch.address, 1, work)
