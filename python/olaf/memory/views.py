"""The memory of the arrays and tensors that a switch sums."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LANES = {"<f4": "f32", "<f2": "f16", "<i4": "i32", "<i8": "i64"}
"""The types that a switch sums, by numpy's names. A tensor may also be bfloat16 (`bf16`)."""


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
        """Write a copy to the caller's array."""
        if self.written_to is None:
            return
        if isinstance(self.written_to, np.ndarray):
            self.written_to[...] = self.array
        else:
            import torch

            copy = torch.from_numpy(self.array)
            target = self.written_to.detach()
            target.copy_(copy.view(target.dtype))


def view_of(array: Any) -> View:
    """The memory of an array or a tensor. Raises ValueError and TypeError."""
    if isinstance(array, np.ndarray):
        lanes = LANES.get(array.dtype.str)
        if lanes is None:
            raise ValueError(_unknown_type(array.dtype))
        if array.flags.c_contiguous:
            return View(array, lanes, None)
        if not array.flags.writeable:
            raise ValueError("the array is read-only: pass a writable one")
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
        dense = dense.contiguous()
    # Numpy has no bfloat16; the memory is the same.
    array = (dense.view(torch.int16) if lanes == "bf16" else dense).numpy()
    return View(array, lanes, tensor if copied else None)


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
