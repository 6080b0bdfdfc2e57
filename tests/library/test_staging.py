"""Tensors of a device, without one: a stand-in whose copies happen only when somebody waits.

It takes some CPU tensors for remote. What is read too early, or overwritten too early, is wrong
numbers here, as it would be on a GPU. Where there is a GPU, the last test takes it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import pytest
from test_connection import Client

import olaf
from olaf.memory import parameters

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


class Device:
    """Copies are queued, and done in order when a mark is waited for."""

    def __init__(self, *tensors: Any) -> None:
        self.tensors = tensors
        self.queue: list[tuple[Any, Any]] = []
        self.buffers: list[Any] = []
        self.waits = 0

    def is_remote(self, item: object) -> bool:
        torch = importlib.import_module("torch")
        if not isinstance(item, torch.Tensor):
            return False
        return any(item.data_ptr() == tensor.data_ptr() for tensor in self.tensors)

    def buffer(self, like: Any) -> Any:
        torch = importlib.import_module("torch")
        self.buffers.append(torch.full(tuple(like.shape), float("nan")))
        return self.buffers[-1]

    def start(self, into: Any, source: Any) -> None:
        self.queue.append((into, source))

    def mark(self, tensors: Iterable[Any]) -> Device:
        return self

    def synchronize(self) -> None:
        self.waits += 1
        for into, source in self.queue:
            into.copy_(source)
        self.queue.clear()


def staging(device: Device) -> Any:
    return importlib.import_module("olaf.memory.staging").Staging(device)


def test_all_tensors_are_copied_before_one_wait_and_buffers_are_used_again(torch: Any) -> None:
    one, two, here = torch.ones(2, 3), torch.full((4,), 2.0), torch.zeros(1)
    device = Device(one, two)
    hosts = staging(device)
    found = hosts.hosted([one, here, two])
    assert [part.tolist() for part in found] == [[[1.0] * 3] * 2, [0.0], [2.0] * 4]
    assert found[1] is here
    assert device.waits == 1
    one.fill_(7)
    again = hosts.hosted([one, here, two])
    assert again[0] is found[0]
    assert again[0].tolist() == [[7.0] * 3] * 2
    assert len(device.buffers) == 2


def test_a_buffer_on_its_way_to_the_device_is_not_overwritten(torch: Any) -> None:
    weights = torch.zeros(3)
    device = Device(weights)
    hosts = staging(device)
    hosts.receiving(0, weights)[...] = [1, 2, 3]
    hosts.send({0: weights})
    assert weights.tolist() == [0, 0, 0]  # still under way, and nobody waited
    array = hosts.receiving(0, weights)
    assert weights.tolist() == [1, 2, 3]
    array[...] = 9
    assert weights.tolist() == [1, 2, 3]


def test_another_model_gets_buffers_of_its_shape(torch: Any) -> None:
    small, large = torch.ones(2), torch.full((5,), 3.0)
    hosts = staging(Device(small, large))
    assert hosts.hosted([small])[0].tolist() == [1, 1]
    assert hosts.hosted([large])[0].tolist() == [3] * 5


def test_a_connection_sends_and_takes_what_lies_on_a_device(
    torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every call that takes tensors goes by the staging: join, the three pushes, pull, snapshot."""
    module = torch.nn.Linear(2, 1)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([[1.0, 2.0]]))
        module.bias.fill_(3.0)
    device = Device(*module.parameters())
    staged = importlib.import_module("olaf.memory.staging")
    monkeypatch.setattr(staged, "Streams", lambda: device)
    monkeypatch.setattr(parameters, "_is_remote", device.is_remote)
    client = Client()
    connection = olaf.Connection(cast(Any, client))
    connection.join(module)
    before = olaf.snapshot(module)
    np.testing.assert_array_equal(before[0], [[1, 2]])
    with torch.no_grad():
        module.weight.add_(1.0)
    connection.push_delta(before, module)
    np.testing.assert_array_equal(client.pushed[-1][0][0], [[1, 1]])
    np.testing.assert_array_equal(client.pushed[-1][0][1], [0])
    gradients = [torch.full((1, 2), 4.0), torch.full((1,), 6.0)]
    for parameter, gradient in zip(module.parameters(), gradients, strict=True):
        parameter.grad = gradient
    device.tensors = (*module.parameters(), *gradients)
    connection.push_gradient(module, learning_rate=0.5)
    np.testing.assert_array_equal(client.pushed[-1][0][0], [[-2, -2]])
    connection.push(gradients)
    np.testing.assert_array_equal(client.pushed[-1][0][1], [6])
    client.serve([[5.0, 6.0]], [7.0])
    assert connection.pull(into=module)
    device.synchronize()  # the device gets there before whatever is queued after the pull
    assert module.weight.tolist() == [[5.0, 6.0]]
    assert module.bias.tolist() == [7.0]
    assert not any(np.isnan(part).any() for parts, *_ in client.pushed for part in parts)


def test_the_real_transfers_copy_what_no_stream_has(torch: Any) -> None:
    """On the CPU, and with a tensor of another type, as of a device that has no streams."""
    streams = importlib.import_module("olaf.memory.staging").Streams()
    half = torch.tensor([1.5, 2.5], dtype=torch.bfloat16)
    assert not streams.is_remote(half)
    assert streams.is_remote(torch.empty(2, device="meta"))
    assert not streams.is_remote(np.zeros(2))
    buffer = streams.buffer(half)
    assert (buffer.dtype, buffer.is_pinned()) == (torch.float32, False)
    streams.start(buffer, half)
    streams.mark([half]).synchronize()
    assert buffer.tolist() == [1.5, 2.5]


def test_on_a_gpu_the_same_calls_end_with_the_same_numbers(torch: Any) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    module, client = torch.nn.Linear(300, 200).cuda(), Client()
    connection = olaf.Connection(cast(Any, client))
    connection.join(module)
    before = olaf.snapshot(module)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.5)
    connection.push_delta(before, module)
    for part in client.pushed[-1][0]:
        np.testing.assert_allclose(part, 0.5, atol=1e-6)
    client.serve(*[np.full(part.shape, 3.0) for part in before])
    assert connection.pull(into=module)
    for parameter in module.parameters():
        assert float((parameter - 3.0).abs().max()) == 0.0
