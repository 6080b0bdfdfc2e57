"""Turns a caller's model, gradient or update into arrays that the core can use.

Copies are avoided: float32 arrays and CPU tensors are read and written in place; other dtypes,
devices and layouts go through one float32 copy. This module looks torch up in ``sys.modules`` and
never imports it, so a program without tensors pays nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from olaf._olaf import Client
    from olaf.memory.staging import Staging

Parts = list[NDArray[np.float32]]

Parameters = Any
"""An array, a torch tensor, a sequence of them, or a torch module."""

EXPECTED = "expected an array, a torch tensor, a sequence of them or a torch module"


def snapshot(values: Parameters) -> Parts:
    """Copy the present model: the ``before`` of a later ``push_delta(before, after)``.

    values: an array, a torch tensor, a sequence of them, or a torch module. Returns new float32
    arrays, one per parameter, in order.
    """
    # Tensors on a GPU come through pinned memory of this call, hence the second copy.
    return [
        np.array(_array(item), np.float32, order="C") for item in Scratch().hosted(items(values))
    ]


def readable(values: Parameters) -> Parts:
    """The values as contiguous float32 arrays, without a copy if they are that already."""
    return [_contiguous(item) for item in items(values)]


def items(values: Parameters) -> Sequence[Any]:
    """The arrays and tensors in ``values``, in order; for a module its parameters."""
    if is_module(values):
        return list(values.parameters())
    if _is_tensor(values) or isinstance(values, np.ndarray):
        return [values]
    if isinstance(values, dict):
        raise ValueError(
            f"{EXPECTED}, not dict: pass the module itself, or list(values.values()) if every "
            "value is a parameter"
        )
    if isinstance(values, Iterable) and not isinstance(values, str | bytes):
        found = list(values)
        if found and all(_is_tensor(item) or isinstance(item, np.ndarray) for item in found):
            return found
    raise ValueError(f"{EXPECTED}, not {type(values).__name__}")


def gradients(values: Parameters) -> Sequence[Any]:
    """The gradients in ``values``: the ``.grad`` of a module or of torch parameters.

    A parameter without a gradient counts as zeros. Raises ValueError if no parameter has one.
    """
    found = items(values)
    owners = [item for item in found if is_parameter(item)]
    if not owners:
        return found
    if all(owner.grad is None for owner in owners):
        raise ValueError("the module has no gradients: call backward() before push_gradient()")
    return [_gradient(item) if is_parameter(item) else item for item in found]


def _gradient(parameter: Any) -> Any:
    if parameter.grad is None:
        return np.zeros(tuple(parameter.shape), np.float32)
    return parameter.grad


def layout(values: Parameters, parts: Parts) -> str:
    """The names and shapes of a model's arrays, as the core takes them.

    A module has the names of its parameters; otherwise ``array_0``, ``array_1``, ..
    """
    if is_module(values):
        names = [name for name, _ in values.named_parameters()]
    else:
        names = [f"array_{index}" for index in range(len(parts))]
    named = zip(names, parts, strict=True)
    return json.dumps([{"name": name, "shape": list(part.shape)} for name, part in named])


class Scratch:
    """Float32 arrays that are allocated once and reused while their shapes stay the same.

    For tensors of a GPU also their pinned host memory, see `olaf.memory.staging`.
    """

    def __init__(self) -> None:
        self._parts: Parts = []
        self._staging: Staging | None = None

    def hosted(self, found: Sequence[Any]) -> Sequence[Any]:
        """The items, with those on a GPU copied to the host together; see `Staging.hosted`."""
        if not any(_is_remote(item) for item in found):
            return found
        return self.staging().hosted(found)

    def staging(self) -> Staging:
        """The pinned buffers, allocated at first use."""
        if self._staging is None:
            from olaf.memory.staging import Staging

            self._staging = Staging()
        return self._staging

    def difference(self, before: Parameters, after: Parameters) -> Parts:
        """``after - before``, part by part. Raises ValueError if the two do not match.

        The next call overwrites the arrays.
        """
        old, new = items(before), items(after)
        if len(old) != len(new):
            raise ValueError(
                f"before has {len(old)} arrays, after has {len(new)}: both must be the same model"
            )
        parts, hosted = self._like(new), self.hosted(new)
        for index, (was, now) in enumerate(zip(old, new, strict=True)):
            if tuple(was.shape) != tuple(now.shape):
                raise ValueError(
                    f"array {index}: before has the shape {tuple(was.shape)}, after "
                    f"{tuple(now.shape)}: both must be the same model"
                )
            if _is_same_memory(was, now):
                raise ValueError(
                    f"array {index}: before and after are the same memory, so nothing would be "
                    "pushed; copy the model before you train: before = olaf.snapshot(model)"
                )
            one, other = _array(hosted[index]), _array(was)
            wide = np.result_type(one, other, np.float32)  # integers and halves are not exact
            np.subtract(one, other, out=parts[index], dtype=wide, casting="same_kind")
        return parts

    def scaled(self, values: Sequence[Any], factor: float) -> Parts:
        """``factor * values``, part by part. The next call overwrites the arrays."""
        parts = self._like(values)
        for part, item in zip(parts, self.hosted(values), strict=True):
            array = _array(item)
            wide = np.result_type(array, np.float32)
            np.multiply(array, factor, out=part, dtype=wide, casting="same_kind")
        return parts

    def _like(self, values: Sequence[Any]) -> Parts:
        shapes = [tuple(item.shape) for item in values]
        if [part.shape for part in self._parts] != shapes:
            self._parts = [np.empty(shape, np.float32) for shape in shapes]
        return self._parts


class Targets:
    """The destination of a model: arrays in place, and copies for everything else."""

    def __init__(self, parts: Parts, copies: list[Callable[[], object]]) -> None:
        self.parts = parts
        self._copies = copies

    @classmethod
    def of(cls, into: Parameters, scratch: Scratch) -> Targets | None:
        """The targets in ``into``, or None if one of them cannot be written."""
        parts: Parts = []
        copies: list[Callable[[], object]] = []
        remote: dict[int, Any] = {}
        for index, item in enumerate(items(into)):
            if _is_remote(item):
                remote[index] = item
                parts.append(scratch.staging().receiving(index, item))
                continue
            array = _shared(item)
            if array is not None and _is_plain(array):
                if not array.flags.writeable:
                    return None
                parts.append(array)
                continue
            # Another dtype, device or layout: receive float32 here, then convert.
            staging = np.empty(tuple(item.shape), np.float32)
            parts.append(staging)
            if _is_tensor(item):
                copies.append(partial(_copy_to_tensor, item, staging))
            elif item.flags.writeable:
                copies.append(partial(np.copyto, item, staging, "unsafe"))
            else:
                return None
        if remote:
            copies.append(partial(scratch.staging().send, remote))
        return cls(parts, copies)

    def fill(self, client: Client, newer_than: int) -> int | None:
        """Write the newest model, if it is newer; return its version or None."""
        version = client.pull(self.parts, newer_than)
        if version is not None:
            for copy in self._copies:
                copy()
        return version


def is_module(value: object) -> bool:
    """True for a torch module."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def is_parameter(value: object) -> bool:
    """True for a torch parameter, which has a ``.grad``."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Parameter)


def _is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_remote(value: object) -> bool:
    """True for a tensor on a device that the host cannot read."""
    return _is_tensor(value) and not value.is_cpu  # type: ignore[attr-defined]


def _contiguous(item: Any) -> NDArray[np.float32]:
    array = _array(item)
    return array if _is_plain(array) else np.ascontiguousarray(array, np.float32)


def _array(item: Any) -> NDArray[Any]:
    """The real numbers of an array or tensor as numpy sees them, without a copy if possible."""
    array = _shared(item)
    if array is None:  # numpy cannot see this tensor: another device, or bfloat16
        array = item.detach().float().cpu().numpy()
    if array.dtype.kind not in "fiu":
        raise ValueError(f"parameters must be real numbers, not {array.dtype}")
    return array


def _shared(item: Any) -> NDArray[Any] | None:
    """The memory of an array or CPU tensor as numpy sees it, or None if numpy cannot."""
    if isinstance(item, np.ndarray):
        return item
    try:
        array: NDArray[Any] = item.detach().numpy()
    except (TypeError, RuntimeError):
        return None
    return array


def _is_plain(array: NDArray[Any]) -> bool:
    return array.dtype == np.float32 and array.flags.c_contiguous and array.dtype.isnative


def _is_same_memory(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if _is_tensor(one) and _is_tensor(other) and one.device == other.device:
        return bool(one.numel() and one.data_ptr() == other.data_ptr())
    first, second = _shared(one), _shared(other)
    if first is None or second is None or not first.size:
        return False
    return bool(first.ctypes.data == second.ctypes.data)


def _copy_to_tensor(tensor: Any, staging: NDArray[np.float32]) -> None:
    torch = sys.modules["torch"]
    tensor.detach().copy_(torch.from_numpy(staging))
