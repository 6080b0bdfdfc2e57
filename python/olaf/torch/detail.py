"""``TORCH_DISTRIBUTED_DEBUG=DETAIL``: the ranks compare each operation before they begin it."""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch

from olaf.torch.distributed import Gloo, dist

SIGNATURE_BYTES = 512


def is_wanted() -> bool:
    """The program asks for it."""
    return bool(dist.get_debug_level() == dist.DebugLevel.DETAIL)


class Comparison:
    """Compares the calls of a group's ranks over gloo. It costs two meetings for each call.

    Torch's own wrapper does so for gloo and NCCL. It takes no group that is written in Python.
    """

    def __init__(self, gloo: Gloo) -> None:
        """gloo: a group of the same ranks that nobody else uses."""
        self._gloo = gloo
        self._calls = 0

    def check(self, call: str, timeout: timedelta) -> None:
        """Raise DistBackendError if another rank makes another call, or none in time."""
        self._calls += 1
        try:
            self._gloo.monitored_barrier(timeout, True)
        except RuntimeError as error:
            raise dist.DistBackendError(
                f"olaf: call {self._calls} of rank {self._gloo.rank()} is {call}, and not every "
                f"rank has made one: {error}"
            ) from error
        calls = self._exchanged(call)
        if len(set(calls)) > 1:
            every = "; ".join(f"rank {rank}: {each}" for rank, each in enumerate(calls))
            raise dist.DistBackendError(
                f"olaf: the ranks differ in call {self._calls} of their group: {every}"
            )

    def _exchanged(self, call: str) -> list[str]:
        mine = torch.zeros(SIGNATURE_BYTES, dtype=torch.uint8)
        text = call.encode()[:SIGNATURE_BYTES]
        mine[: len(text)] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        every = [torch.empty_like(mine) for _ in range(self._gloo.size())]
        self._gloo.allgather([every], [mine]).wait()
        return [bytes(each.tolist()).rstrip(b"\0").decode() for each in every]


def signature(kind: str, which: Any, tensors: list[torch.Tensor]) -> str:
    """A call in words, with all in which the ranks have to agree."""
    shapes = ", ".join(f"{tuple(tensor.shape)}" for tensor in tensors)
    types = ", ".join(sorted({str(tensor.dtype).removeprefix("torch.") for tensor in tensors}))
    return f"{kind} ({which}) of {types} {shapes}"
