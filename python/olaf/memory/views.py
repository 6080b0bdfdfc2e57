"""The memory of the arrays and tensors that a switch sums."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LANES = {"<f4": "f32", "<f2": "f16", "<i4": "i32", "<i8": "i64"}
"""The types that a switch sums, by numpy's names. A tensor may also be bfloat16 (`bf16`)."""

HALVES = ("f16", "bf16")
READ_ONLY = "the array is read-only: pass a writable one"


class View(NamedTuple):
    """The memory that an operation works on."""

    array: NDArray[Any]
    """Contiguous: the caller's own memory, or a copy."""
    lanes: str
    """Name of the type, as the core has it."""
    written_to: Any
    """The caller's array, if `array` is a copy."""

    @property
    def size(self) -> int:
        """Number of values."""
        return self.array.size

    def write_back(self) -> None:
        """Write a copy to the caller's array, rounded to its type."""
        if self.written_to is None:
            return
        if isinstance(self.written_to, np.ndarray):
            self.written_to[...] = self.array
        else:
            self.written_to.detach().copy_(_tensor_of(self))

    def widened(self, array: Any) -> View:
        """The same values as float32, as a copy; itself if they are no halves. array: its own."""
        if self.lanes not in HALVES:
            return self
        if isinstance(array, np.ndarray) and not array.flags.writeable:
            raise ValueError(READ_ONLY)
        if self.lanes == "f16":
            wide = self.array.astype(np.float32)
        else:
            wide = _tensor_of(self).float().numpy()
        return View(wide, "f32", array)


def view_of(array: Any) -> View:
    """The memory of an array or a tensor. Raises ValueError and TypeError."""
    if isinstance(array, np.ndarray):
        if isinstance(array, np.ma.MaskedArray):
            raise ValueError(
                "the array is masked, and the switch would sum its masked values: pass "
                "array.filled(0), for example"
            )
        lanes = LANES.get(array.dtype.str)
        if lanes is None:
            raise ValueError(_unknown_type(array.dtype))
        if array.flags.c_contiguous:
            return View(array, lanes, None)
        if not array.flags.writeable:
            raise ValueError(READ_ONLY)
        if _repeats(array.shape, array.strides):
            raise ValueError("several elements of the array share memory: pass array.copy()")
        return View(array.copy(order="C"), lanes, array)
    if type(array).__module__.partition(".")[0] != "torch" or not hasattr(array, "detach"):
        raise TypeError(
            f"expected a numpy array or a torch tensor, not {type(array).__name__}: the result is "
            "written into it"
        )
    return _of_tensor(array)


def _of_tensor(tensor: Any) -> View:
    import torch

    if tensor.device.type != "cpu":
        raise ValueError(
            f"the tensor is on {tensor.device}: copy it to the CPU, or use the torch.distributed "
            "backend `olaf`"
        )
    if tensor.layout != torch.strided:
        raise ValueError(f"the tensor is {tensor.layout}: pass a dense one")
    lanes = _tensor_lanes().get(tensor.dtype)
    if lanes is None:
        raise ValueError(_unknown_type(tensor.dtype))
    # Gradients have no gradient of their own: most tensors are spared the view.
    dense = tensor.detach() if tensor.requires_grad else tensor
    copied = not dense.is_contiguous()
    if copied:
        refuse_repeated(dense)
        dense = dense.contiguous()
    # Numpy has no bfloat16; the memory is the same.
    array = (dense.view(torch.int16) if lanes == "bf16" else dense).numpy()
    return View(array, lanes, tensor if copied else None)


def _repeats(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """An element stands in several places, so that no result can be written into all of them."""
    return all(shape) and any(
        size > 1 and stride == 0 for size, stride in zip(shape, strides, strict=True)
    )


def _tensor_of(view: View) -> Any:
    """The memory of the view as a tensor of its type."""
    import torch

    copy = torch.from_numpy(view.array)
    return copy.view(torch.bfloat16) if view.lanes == "bf16" else copy


def refuse_repeated(tensor: Any) -> None:
    """Raise ValueError if several elements of the tensor share memory."""
    if not tensor.is_contiguous() and _repeats(tensor.shape, tensor.stride()):
        raise ValueError(
            "several elements of the tensor share memory, as after expand(): pass "
            "tensor.contiguous()"
        )


@functools.cache
def _tensor_lanes() -> dict[Any, str]:
    """The types of tensors that a switch sums."""
    import torch

    return {
        torch.float32: "f32",
        torch.float16: "f16",
        torch.bfloat16: "bf16",
        torch.int32: "i32",
        torch.int64: "i64",
    }


def _unknown_type(found: object) -> str:
    return (
        f"the array holds {found}: the switch sums float32, float16, int32 and int64 (in this "
        "machine's byte order), and bfloat16 of tensors; convert the array"
    )
