"""`SumConnection.pipeline`: its arguments, its errors, and equal weights at every iteration."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from workers import together

import olaf
from olaf import SumConnection, _olaf

Array = NDArray[np.float32]


@contextmanager
def switch_here(loss: float = 0.0) -> Iterator[_olaf.Switch]:
    told = {"engines": ["iswitch"], "listen": "127.0.0.1:0"}
    lossy = {"receive_loss": {"probability": loss, "seed": 5}} if loss else {}
    switch = _olaf.Switch(json.dumps(told | lossy))
    switch.start()
    try:
        yield switch
    finally:
        switch.stop()


def descend(weights: Any, mean: Any) -> None:
    weights -= 0.1 * mean


def test_weights_are_equal_at_every_iteration_bit_for_bit() -> None:
    def work(connection: SumConnection) -> list[bytes]:
        rng = np.random.default_rng(connection.rank)
        weights, history = np.full(3000, connection.rank, np.float32), []

        def step(weights: Array, mean: Array) -> None:
            descend(weights, mean)
            history.append(weights.tobytes())

        with connection.pipeline(weights, step, iterations=40) as training:
            for copy in training:
                noise = rng.normal(size=3000).astype(np.float32)
                training.commit(copy + noise)
        assert training.iteration == 40
        counted = connection.stats()["vectors"]
        assert counted["committed"] == sum(training.gradients.values())
        assert {name: counted[name] for name in training.gradients} == training.gradients
        return history

    with switch_here(loss=0.02) as switch:
        lossy = {"probability": 0.02, "seed": 6}
        histories = together(switch.address, 3, work, protocol="iswitch", receive_loss=lossy)
        assert len(histories[0]) == 40
        assert histories[0] == histories[1] == histories[2]


def test_one_worker_fills_the_sums_alone() -> None:
    is_over = threading.Event()

    def work(connection: SumConnection) -> int:
        weights = np.ones(10, np.float32)
        with connection.pipeline(weights, descend, iterations=20) as training:
            for copy in training:
                if connection.rank == 1:
                    is_over.wait(20)
                training.commit(copy)
            is_over.set()
        return training.gradients["sent"]

    with switch_here() as switch:
        fast, _ = together(switch.address, 2, work, protocol="iswitch")
    assert fast == 40, "H = 2 gradients for each of 20 iterations"


def test_a_tensor_is_updated_in_place() -> None:
    torch = pytest.importorskip("torch")

    def work(connection: SumConnection) -> list[float]:
        weights = torch.ones(2, 3)

        def step(weights: Any, mean: Any) -> None:
            assert mean.shape == (2, 3)
            weights.sub_(0.5 * mean)

        with connection.pipeline(weights, step, iterations=3) as training:
            for copy in training:
                training.commit(copy)
        return [float(weight) for weight in weights.flatten()]

    with switch_here() as switch:
        one, other = together(switch.address, 2, work, protocol="iswitch")
    assert one == other
    assert all(weight < 1 for weight in one)


def test_the_state_of_the_furthest_worker_is_taken_over() -> None:
    def work(connection: SumConnection) -> tuple[int, float, float]:
        rank = connection.rank
        weights, moments = np.full(4, rank, np.float32), np.full(4, 10 * rank, np.float32)
        at = [3, 70_001, 5][rank]
        training = connection.pipeline(
            weights, descend, iterations=70_001, iteration=at, state=[moments]
        )
        with training:
            assert list(training) == []
        return training.iteration, float(weights[0]), float(moments[0])

    with switch_here() as switch:
        assert together(switch.address, 3, work, protocol="iswitch") == [(70_001, 1.0, 10.0)] * 3


def test_an_error_in_step_ends_the_training_at_all_workers() -> None:
    errors: dict[int, BaseException] = {}

    def work(connection: SumConnection) -> None:
        def step(weights: Array, mean: Array) -> None:
            if connection.rank == 0:
                raise ZeroDivisionError("a bug of the caller")
            descend(weights, mean)

        with connection.pipeline(np.ones(4, np.float32), step, iterations=10**6) as training:
            try:
                for copy in training:
                    training.commit(copy)
            except (ZeroDivisionError, olaf.SumError) as error:
                errors[connection.rank] = error

    with switch_here() as switch:
        together(switch.address, 2, work, protocol="iswitch")
    assert isinstance(errors[0], ZeroDivisionError)
    assert isinstance(errors[1], olaf.SumError)


def test_what_cannot_be_is_said() -> None:
    weights = np.ones(4, np.float32)
    with switch_here() as switch:
        with olaf.connect_sum(switch.address, workers=1, protocol="iswitch") as job:
            with pytest.raises(ValueError, match="weights holds f16"):
                job.pipeline(weights.astype(np.float16), descend, iterations=1)
            with pytest.raises(ValueError, match="weights must be contiguous"):
                job.pipeline(np.ones((4, 2), np.float32)[:, 0], descend, iterations=1)
            with pytest.raises(ValueError, match="staleness = -1"):
                job.pipeline(weights, descend, iterations=1, staleness=-1)
            with pytest.raises(ValueError, match="iterations = 0"):
                job.pipeline(weights, descend, iterations=0)
            with job.pipeline(weights, descend, iterations=1) as training:
                with pytest.raises(ValueError, match="gradient has 5 values: must have 4"):
                    training.commit(np.ones(5, np.float32))
                for copy in training:
                    training.commit(copy)
        with (
            olaf.connect_sum(switch.address, workers=1, protocol="iswitch", threshold=1) as job,
            pytest.raises(ValueError, match="threshold = 1"),
        ):
            job.pipeline(weights, descend, iterations=1)
    told = {"engines": ["reduce"], "listen": "127.0.0.1:0"}
    reduce = _olaf.Switch(json.dumps(told))
    reduce.start()
    with (
        olaf.connect_sum(reduce.address, workers=1) as job,
        pytest.raises(ValueError, match='needs protocol="iswitch"'),
    ):
        job.pipeline(weights, descend, iterations=1)
    reduce.stop()
