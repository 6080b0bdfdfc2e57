"""What `olaf.Connection` hands to the core and takes from it: memory, not copies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from olaf.connection import Connection, Model

Array = NDArray[np.float32]


class Client:
    """The core's client as far as memory goes; its newest model is ``model`` at ``version``."""

    def __init__(self) -> None:
        self.worker = 7
        self.version = 0
        self.model: list[Array] = []
        self.pushed: list[tuple[list[Array], float, float]] = []
        self.left = 0

    def join(self, weights: Sequence[Array], timeout_s: float) -> int:
        self.version = self.version or 1
        self.model = self.model or [part.copy() for part in weights]
        return self.version

    def push(self, parts: Sequence[Array], *, reward: float, weight: float = 1.0) -> int:
        for part in parts:
            assert part.dtype == np.float32
            assert part.flags.c_contiguous
        self.pushed.append((list(parts), reward, weight))
        return len(self.pushed) - 1

    def pull(self, parts: Sequence[Array], newer_than: int) -> int | None:
        if self.version <= newer_than:
            return None
        for part, own in zip(parts, self.model, strict=True):
            part[...] = own
        return self.version

    def wait(self, newer_than: int, timeout_s: float) -> int | None:
        return self.version if self.version > newer_than else None

    def flush(self, timeout_s: float) -> bool:
        return True

    def stats(self) -> str:
        return json.dumps({"role": "worker"})

    def events(self) -> list[str]:
        return [json.dumps({"event": "switch_silent"})]

    def leave(self) -> None:
        self.left += 1

    def serve(self, *parts: Any) -> None:
        """Let there be a new model."""
        self.version += 1
        self.model = [np.asarray(part, np.float32) for part in parts]


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def connection(client: Client) -> Connection:
    return Connection(cast(Any, client))


def test_float32_arrays_are_pushed_where_they_lie(connection: Connection, client: Client) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert connection.push(array, reward=1.5, weight=2.0) == 0
    ((parts, reward, weight),) = client.pushed
    assert parts[0] is array
    assert (reward, weight) == (1.5, 2.0)


@pytest.mark.parametrize("dtype", ["f8", "f2", ">f4", "i4"])
def test_other_dtypes_are_converted_once(
    connection: Connection, client: Client, dtype: str
) -> None:
    connection.push([np.arange(3).astype(dtype)])
    np.testing.assert_array_equal(client.pushed[0][0][0], [0, 1, 2])


def test_strided_arrays_are_copied(connection: Connection, client: Client) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3).T
    connection.push([array])
    np.testing.assert_array_equal(client.pushed[0][0][0], array)


def test_the_first_workers_weights_stay_as_they_are(connection: Connection) -> None:
    weights = [np.ones((2, 2), np.float32), np.zeros(3, np.float32)]
    assert connection.join(weights) == 1
    assert connection.version == 1
    np.testing.assert_array_equal(weights[0], np.ones((2, 2)))


def test_a_later_workers_weights_become_the_jobs(connection: Connection, client: Client) -> None:
    client.serve(np.full(3, 5.0))
    weights = np.zeros(3, np.float32)
    connection.join(weights)
    np.testing.assert_array_equal(weights, np.full(3, 5.0))


def test_pull_gives_fresh_arrays_of_the_joined_shapes(
    connection: Connection, client: Client
) -> None:
    connection.join([np.zeros((2, 2), np.float32), np.zeros(1, np.float32)])
    assert connection.pull() is None
    client.serve(np.full((2, 2), 3.0), [4.0])
    model = connection.pull()
    assert isinstance(model, Model)
    assert model.version == 2
    assert [part.shape for part in model.parts] == [(2, 2), (1,)]
    np.testing.assert_array_equal(model.parts[0], np.full((2, 2), 3.0))
    assert connection.pull() is None


def test_pull_into_writes_in_place_whatever_the_layout(
    connection: Connection, client: Client
) -> None:
    plain, double = np.zeros(2, np.float32), np.zeros(2, np.float64)
    strided = np.zeros((2, 2), np.float32)[:, 0]
    connection.join([plain, double, strided])
    client.serve([1, 2], [3, 4], [5, 6])
    assert connection.pull(into=[plain, double, strided]) == 2
    for array, expected in ((plain, [1, 2]), (double, [3, 4]), (strided, [5, 6])):
        np.testing.assert_array_equal(array, expected)
    assert connection.pull(into=[plain, double, strided]) is None


def test_read_only_weights_join_and_are_pulled_apart(
    connection: Connection, client: Client
) -> None:
    client.serve([9.0, 9.0])
    weights = np.zeros(2, np.float32)
    weights.flags.writeable = False
    connection.join(weights)
    np.testing.assert_array_equal(weights, [0, 0])
    model = connection.pull()
    assert model is not None
    np.testing.assert_array_equal(model.parts[0], [9, 9])
    with pytest.raises(ValueError, match="read-only"):
        connection.pull(into=weights)


def test_pull_before_join_says_what_to_do(connection: Connection) -> None:
    with pytest.raises(ValueError, match=r"before join\(\)"):
        connection.pull()


@pytest.mark.parametrize("wrong", [{"a": 1}, "weights", [[1.0, 2.0]], [], None, 3.0])
def test_what_is_no_array_is_refused(connection: Connection, wrong: object) -> None:
    with pytest.raises(ValueError, match="expected an array"):
        connection.push(wrong)


def test_complex_numbers_are_refused(connection: Connection) -> None:
    with pytest.raises(ValueError, match="real numbers"):
        connection.push(np.zeros(2, np.complex64))


def test_leaving_happens_at_the_end_of_the_block(connection: Connection, client: Client) -> None:
    with connection as same:
        assert same is connection
        assert same.worker == 7
        assert same.flush()
        assert same.stats() == {"role": "worker"}
        assert same.events() == [{"event": "switch_silent"}]
        before = client.left
    assert (before, client.left) == (0, 1)


@pytest.mark.torch
def test_tensors_share_their_memory_both_ways(connection: Connection, client: Client) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(4)
    connection.join([tensor])
    connection.push([tensor])
    assert client.pushed[0][0][0].ctypes.data == tensor.data_ptr()
    client.serve([1, 2, 3, 4])
    assert connection.pull(into=[tensor]) == 2
    assert tensor.tolist() == [1, 2, 3, 4]


@pytest.mark.torch
def test_a_modules_gradients_are_pushed_and_its_parameters_written(
    connection: Connection, client: Client
) -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(2, 1)
    connection.join(module)
    with pytest.raises(ValueError, match=r"call backward\(\)"):
        connection.push(module)
    module(torch.ones(1, 2)).sum().backward()
    module.bias.grad = None
    connection.push(module)
    weight, bias = client.pushed[0][0]
    assert weight.ctypes.data == module.weight.grad.data_ptr()
    np.testing.assert_array_equal(bias, [0.0])
    before = module.weight.data_ptr()
    client.serve([[7.0, 8.0]], [9.0])
    assert connection.pull(into=module) == 2
    assert module.weight.tolist() == [[7.0, 8.0]]
    assert module.weight.data_ptr() == before


@pytest.mark.torch
def test_tensors_that_numpy_cannot_see_are_converted(
    connection: Connection, client: Client
) -> None:
    torch = pytest.importorskip("torch")
    half = torch.ones(2, dtype=torch.bfloat16)
    connection.join([half])
    connection.push([half])
    np.testing.assert_array_equal(client.pushed[0][0][0], [1, 1])
    client.serve([2, 3])
    connection.pull(into=[half])
    assert half.tolist() == [2, 3]
