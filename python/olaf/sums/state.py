"""State beside the gradients: equal at the beginning of a training, averaged in its course."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from olaf.memory.parameters import is_module
from olaf.sums.protocols import protocol

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from olaf.sums.collective import SumConnection

BYTES_AT_ONCE = 1 << 19
"""Bytes that a root sends in one sum where the protocol cannot broadcast them."""


def furthest(through: SumConnection, steps: int, *, timeout_s: float | None = None) -> int:
    """The rank of the worker that has done the most steps; the lowest rank of several.

    steps: of this worker, from 0 to 2^63 - 1. All workers call it, for example after a death: the
    worker in the place of the dead one has done none. timeout_s: time limit; None uses
    ``operation_timeout_ms``. Raises ValueError, and as `SumConnection.all_reduce` does.
    """
    if not 0 <= steps < 2**63:
        raise ValueError(f"steps = {steps}: must be from 0 to 2^63 - 1")
    every = of_all(np.int64(steps), through, timeout_s)
    return int(every.argmax())


def of_all(value: np.generic, through: SumConnection, timeout_s: float | None) -> NDArray[Any]:
    """The value of each worker, by rank: exact, whatever the protocol."""
    every = np.zeros(through.workers, value.dtype)
    every[through.rank] = value
    _sum_of_bytes(every.view(np.uint8), through, timeout_s)
    return every


def check_root(root: int, through: SumConnection) -> None:
    """Raise ValueError for a rank that the job does not have."""
    if not 0 <= root < through.workers:
        raise ValueError(f"root = {root}: must be a rank, from 0 to {through.workers - 1}")


def broadcast_bytes(
    data: NDArray[np.uint8], through: SumConnection, root: int, *, timeout_s: float | None = None
) -> None:
    """Overwrite the bytes with those of the worker ``root``. The size is the same at all workers.

    With ``reduce`` it is a broadcast, with the other protocols a sum of eight times the bytes (see
    `_sum_of_bytes`) to which the others add zeros.
    """
    check_root(root, through)
    if protocol(through.protocol).engine == "reduce":
        words = np.zeros(-(-data.size // 4), np.int32)
        words.view(np.uint8)[: data.size] = data
        through.broadcast(words, root, timeout_s=timeout_s)
        data[:] = words.view(np.uint8)[: data.size]
        return
    for at in range(0, data.size, BYTES_AT_ONCE):
        part = data[at : at + BYTES_AT_ONCE]
        if through.rank != root:
            part[:] = 0
        _sum_of_bytes(part, through, timeout_s)


def _sum_of_bytes(data: NDArray[np.uint8], through: SumConnection, timeout_s: float | None) -> None:
    """Sum the bytes of all workers, in place and exactly.

    At each place one worker alone may have a byte above 0. Each half of a byte is a float of the
    sum: the papers' protocols carry float32 alone, and those of integers no value above 21.
    """
    halves = np.stack([data >> 4, data & 15]).astype(np.float32)
    through.all_reduce(halves, timeout_s=timeout_s)
    high, low = np.rint(halves).astype(np.uint8)
    data[:] = high << 4 | low


def average_state(state: Any, through: SumConnection, *, timeout_s: float | None = None) -> None:
    """Replace running statistics by their means over all workers, in place.

    state: a torch module, whose floating-point buffers are averaged (the running means of a batch
    norm); an array, a tensor, a list or a dict of them (floating point); or an object with
    ``mean``, ``var`` and ``count``, such as ``VecNormalize.obs_rms`` of Stable-Baselines3: the
    result has the moments of all workers' values together, and their mean count.
    timeout_s: time limit of each sum; None uses ``operation_timeout_ms``.

    Integer buffers, such as the number of batches, stay as they are. Values travel as float32.
    All workers call it with the same sizes. Raises ValueError for a state without such values,
    TypeError for another object, OverflowError for a value that the protocol cannot
    carry, and as `SumConnection.all_reduce` does.
    """
    if all(hasattr(state, name) for name in ("mean", "var", "count")) and not _is_array(state):
        _average_moments(state, through, timeout_s)
        return
    values = [value for value in _values(state) if _is_floating(value)]
    if not values:
        if is_module(state):
            return  # no layer keeps statistics
        raise ValueError("the state has no values of floating point: there is nothing to average")
    lanes = np.concatenate([_numbers(value).ravel() for value in values], dtype=np.float32)
    _mean(lanes, through, timeout_s)
    at = 0
    for value in values:
        size = _numbers(value).size
        _write(value, lanes[at : at + size])
        at += size


def _average_moments(state: Any, through: SumConnection, timeout_s: float | None) -> None:
    mean = np.asarray(state.mean, np.float64)
    variance, count = np.asarray(state.var, np.float64), float(state.count)
    counts = of_all(np.float64(count), through, timeout_s)
    # The mean of weighted values: the weights are 1 on average.
    weight = count / counts.mean()
    center = (weight * mean).astype(np.float32).reshape(-1)
    _mean(center, through, timeout_s)
    whole = center.astype(np.float64).reshape(mean.shape)
    # About the mean of all: E[x^2] - E[x]^2 would lose a small variance beside a large mean.
    spread = (weight * (variance + (mean - whole) ** 2)).astype(np.float32).reshape(-1)
    _mean(spread, through, timeout_s)
    state.mean = whole
    state.var = spread.astype(np.float64).reshape(mean.shape)
    state.count = float(counts.mean())


def _mean(lanes: NDArray[np.float32], through: SumConnection, timeout_s: float | None) -> None:
    future = through.all_reduce_async(lanes, "mean", timeout_s=timeout_s)
    future.wait()
    if future.counts is not None and future.counts.not_finite:
        raise OverflowError(
            "a value of the state, or a sum, is not finite or leaves the range of the protocol "
            f'{through.protocol}: average it with protocol="reduce"'
        )


def _values(state: Any) -> Iterable[Any]:
    """The arrays and tensors of a state, in order."""
    if is_module(state):
        return list(state.buffers())
    if _is_array(state):
        return [state]
    if isinstance(state, Mapping):
        return list(state.values())
    if isinstance(state, list | tuple):
        return state
    raise TypeError(
        f"the state is {type(state).__name__}: must be a module, arrays or tensors, or an object "
        "with mean, var and count"
    )


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or hasattr(value, "detach")


def _is_floating(value: Any) -> bool:
    if not _is_array(value):
        raise TypeError(f"the state has a {type(value).__name__}: must be an array or a tensor")
    if isinstance(value, np.ndarray):
        return bool(np.issubdtype(value.dtype, np.floating))
    return bool(value.is_floating_point())


def _numbers(value: Any) -> NDArray[Any]:
    """The values as float32."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float32)
    array: NDArray[Any] = value.detach().float().cpu().numpy()
    return array


def _write(value: Any, lanes: NDArray[np.float32]) -> None:
    if isinstance(value, np.ndarray):
        value[...] = lanes.reshape(value.shape)
        return
    import torch

    with torch.no_grad():
        value.copy_(torch.from_numpy(lanes).reshape(value.shape))
