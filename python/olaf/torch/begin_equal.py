"""Weights, buffers and the state of an optimizer become those of one worker."""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore,untyped-decorator"

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from olaf.sums.state import broadcast_bytes, check_root, of_all

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from olaf.sums.collective import SumConnection


@torch.no_grad()
def broadcast_parameters(
    values: torch.nn.Module | Mapping[str, Any],
    through: SumConnection | None,
    root: int = 0,
    *,
    timeout_s: float | None = None,
) -> None:
    """Give every worker the parameters and buffers of the worker ``root``, bit for bit.

    values: a module, or its `state_dict`; each tensor is overwritten in place, whatever its type
    and device. Entries that are no tensors are left alone.
    through: the worker's connection; None does nothing. All workers call it.
    timeout_s: time limit; None uses ``operation_timeout_ms``.

    With the protocols iswitch, trio and atp it is a sum of eight times the bytes. Raises ValueError
    at all workers if names, types or shapes of one are others than those of the root, and as
    `SumConnection.broadcast` does.
    """
    if through is None or through.is_alone:
        return
    check_root(root, through)
    named = values.state_dict() if isinstance(values, torch.nn.Module) else values
    tensors = {name: value for name, value in named.items() if isinstance(value, torch.Tensor)}
    if not tensors:
        raise ValueError("values has no tensors: pass a module, or its state_dict()")
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided:
            raise ValueError(f"{name!r} is {tensor.layout}: only dense tensors are broadcast")
    layout = repr([(name, str(t.dtype), tuple(t.shape)) for name, t in tensors.items()])
    every = of_all(np.uint32(zlib.crc32(layout.encode())), through, timeout_s)
    differ = [rank for rank in range(len(every)) if every[rank] != every[root]]
    if differ:
        raise ValueError(
            f"the tensors of rank {differ[0]} have other names, types or shapes than those of rank "
            f"{root}: all workers need the same model (this worker is rank {through.rank})"
        )
    hosted = [tensor.detach().cpu().contiguous() for tensor in tensors.values()]
    data = np.concatenate([_bytes_of(tensor) for tensor in hosted])
    broadcast_bytes(data, through, root, timeout_s=timeout_s)
    at = 0
    for tensor, host in zip(tensors.values(), hosted, strict=True):
        size = host.numel() * host.element_size()
        if through.rank != root and size:
            found = torch.from_numpy(data[at : at + size].copy()).view(host.dtype)
            tensor.copy_(found.view(host.shape))
        at += size


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer,
    through: SumConnection | None,
    root: int = 0,
    *,
    timeout_s: float | None = None,
) -> None:
    """Give every worker's optimizer the state and the groups' options of the worker ``root``.

    optimizer: wrapped or not. Its state may be missing, as at a worker that has just begun.
    through: the worker's connection; None does nothing. All workers call it.
    timeout_s: time limit of each of two operations; None uses ``operation_timeout_ms``.

    Raises ValueError if the groups do not fit, as `load_state_dict` does, and as
    `SumConnection.broadcast` does.
    """
    if through is None or through.is_alone:
        return
    sends = through.rank == root
    file = io.BytesIO()
    if sends:
        torch.save(optimizer.state_dict(), file)
    size = np.array([len(file.getvalue())], np.int64)
    broadcast_bytes(size.view(np.uint8), through, root, timeout_s=timeout_s)
    data = np.frombuffer(file.getvalue(), np.uint8).copy() if sends else np.zeros(size[0], np.uint8)
    broadcast_bytes(data, through, root, timeout_s=timeout_s)
    if not sends:
        # weights_only: another worker's bytes run no code here.
        state = torch.load(io.BytesIO(data.tobytes()), map_location="cpu", weights_only=True)
        optimizer.load_state_dict(state)


def _bytes_of(tensor: torch.Tensor) -> NDArray[np.uint8]:
    array: NDArray[np.uint8] = tensor.reshape(-1).view(torch.uint8).numpy()
    return array
