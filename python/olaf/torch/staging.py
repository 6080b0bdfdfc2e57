"""CUDA tensors: copied to pinned memory for the network, and back, on a stream of their own."""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore,no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class Staging:
    """The staging buffer of one device. Only the thread of the group's lane calls `through`."""

    def __init__(self, device: torch.device) -> None:
        self.stream: Any = torch.cuda.Stream(device=device)
        self._buffer = torch.empty(0, dtype=torch.uint8)

    def ready(self, tensor: torch.Tensor) -> Any:
        """An event of the caller's stream: what is queued there is done, the tensor complete."""
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(tensor.device))
        # The caching allocator must not give the memory away before our stream is done with it.
        tensor.record_stream(self.stream)
        return event

    def through(
        self, tensor: torch.Tensor, ready: Any, network: Callable[[torch.Tensor], object]
    ) -> None:
        """Copy to the host, let `network` change the lanes there, and copy them back.

        The copy back may still be under way at the return: wait for `stream`. The next copy to the
        host comes behind it on the same stream, so one buffer is enough.
        """
        with torch.cuda.stream(self.stream):
            self.stream.wait_event(ready)
            host = self._host(tensor)
            host.copy_(tensor.detach(), non_blocking=True)
            self.stream.synchronize()
            network(host.view(-1))
            tensor.detach().copy_(host, non_blocking=True)

    def _host(self, tensor: torch.Tensor) -> torch.Tensor:
        """Pinned memory in the shape of the tensor."""
        needed = tensor.numel() * tensor.element_size()
        if self._buffer.numel() < needed:
            self._buffer = torch.empty(needed, dtype=torch.uint8, pin_memory=True)
        return self._buffer[:needed].view(tensor.dtype).view(tensor.shape)
