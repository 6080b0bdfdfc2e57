"""Tensors of a GPU on their way to the network and back, through pinned memory.

The network reads and writes host memory. A copy between a GPU and ordinary host memory waits for
each tensor; between a GPU and pinned memory it runs on its own. So all tensors of a model are
copied to pinned buffers without waiting, and one event says when the last has arrived. The buffers
are made once and used again.

Ordering: copies run on the current stream of the tensor's device, after what the program queued
there before, and before what it queues later. A program that trains on another stream must
synchronise that stream first.
"""

# mypy checks this file with and without torch; without it everything of torch is Any.
# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore,no-untyped-call"

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Mark(Protocol):
    """A point in the copies that were started."""

    def synchronize(self) -> None:
        """Wait until everything started before is done."""


class Transfers(Protocol):
    """How tensors are copied between a device and the host; the seam for tests without a GPU."""

    def is_remote(self, item: object) -> bool:
        """Whether it is a tensor that the host cannot read where it lies."""

    def buffer(self, like: Tensor) -> Tensor:
        """Host memory for a tensor, float32 and contiguous."""

    def start(self, into: Tensor, source: Tensor) -> None:
        """Start a copy, with conversion where the types differ. ``source`` must stay as it is."""

    def mark(self, tensors: Iterable[Tensor]) -> Mark:
        """The point after all copies started so far from or to the devices of ``tensors``."""


class Streams:
    """CUDA's streams and pinned memory; other devices (MPS, XPU) are copied one by one."""

    def is_remote(self, item: object) -> bool:
        """Whether it is a tensor on a device."""
        return isinstance(item, Tensor) and item.device.type != "cpu"

    def buffer(self, like: Tensor) -> Tensor:
        """Pinned memory for a tensor of a CUDA device."""
        return torch.empty(tuple(like.shape), dtype=torch.float32, pin_memory=like.is_cuda)

    def start(self, into: Tensor, source: Tensor) -> None:
        """Copy on the device's current stream."""
        device = source.device if source.is_cuda else into.device
        if device.type != "cuda":
            into.copy_(source)
            return
        with torch.cuda.device(device):
            into.copy_(source, non_blocking=True)

    def mark(self, tensors: Iterable[Tensor]) -> Mark:
        """One event on the current stream of each CUDA device."""
        devices = {tensor.device for tensor in tensors if tensor.is_cuda}
        return _Events([torch.cuda.current_stream(device).record_event() for device in devices])


class _Events:
    def __init__(self, events: list[Any]) -> None:
        self._events = events

    def synchronize(self) -> None:
        for event in self._events:
            event.synchronize()


class Staging:
    """Host buffers for the tensors of one model. One thread at a time."""

    def __init__(self, transfers: Transfers | None = None) -> None:
        self._transfers = transfers or Streams()
        self._buffers: dict[int, Tensor] = {}
        self._sent: Mark | None = None

    def hosted(self, items: Sequence[Any]) -> list[Any]:
        """The items, with every tensor of a device replaced by a copy of it on the host.

        The copies are overwritten by the next call on this object.
        """
        found = list(items)
        remote = {n: item for n, item in enumerate(found) if self._transfers.is_remote(item)}
        if remote:
            self._wait()
            for index, tensor in remote.items():
                found[index] = self._buffer(index, tensor)
                self._transfers.start(found[index], tensor.detach())
            self._transfers.mark(remote.values()).synchronize()
        return found

    def receiving(self, index: int, tensor: Tensor) -> NDArray[np.float32]:
        """An array to write tensor number ``index`` of the model into; `send` copies it over."""
        self._wait()
        array: NDArray[np.float32] = self._buffer(index, tensor).numpy()
        return array

    def send(self, tensors: dict[int, Tensor]) -> None:
        """Start to copy the arrays of `receiving` into their tensors, by number; never waits.

        What the program queues on the device from now on sees the new values.
        """
        for index, tensor in tensors.items():
            self._transfers.start(tensor.detach(), self._buffers[index])
        self._sent = self._transfers.mark(tensors.values())

    def _buffer(self, index: int, tensor: Tensor) -> Tensor:
        buffer = self._buffers.get(index)
        if buffer is None or buffer.shape != tensor.shape:
            buffer = self._buffers[index] = self._transfers.buffer(tensor)
        return buffer

    def _wait(self) -> None:
        """Buffers that are still being copied to the device may not be written."""
        if self._sent is not None:
            self._sent.synchronize()
            self._sent = None
