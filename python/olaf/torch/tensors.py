"""Torch models as lists of float32 numpy arrays that share their memory.

`olaf.connect` takes tensors and modules, and copies them if it must. These helpers are for loops
that want the arrays themselves, once, outside the loop, with the guarantee of no copy: a push reads
the tensors' memory, and a pull writes it.

    parts = olaf.torch.parameters(module)
    version = connection.pull(into=parts)   # the module has the new weights, if there were any
"""

# mypy checks this file with and without torch; without it everything of torch is Any.
# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["gradients", "parameters", "step", "views"]

Parts = list[NDArray[np.float32]]


def views(tensors: Iterable[torch.Tensor]) -> Parts:
    """Arrays on the tensors' own memory, same shapes, float32, C-contiguous.

    Raises ValueError, which names the tensor, for one that cannot be shared: not float32, not on
    the CPU, not contiguous. `olaf.connect` takes such tensors and copies them.
    """
    return [_view(f"tensor {index}", tensor) for index, tensor in enumerate(tensors)]


def parameters(module: torch.nn.Module, *, trainable: bool = True) -> Parts:
    """Views on a module's parameters in the order of ``named_parameters``.

    They stay valid as long as the parameters keep their memory: an optimiser's step and
    ``load_state_dict`` keep it, ``module.to(..)`` and ``parameter.data = ..`` do not.
    trainable: leave out parameters without ``requires_grad``. Buffers are never included.
    """
    return [
        _view(f"parameter {name!r}", parameter)
        for name, parameter in module.named_parameters()
        if parameter.requires_grad or not trainable
    ]


def gradients(module: torch.nn.Module) -> Parts:
    """Views on the gradients of a module's trainable parameters; zeros for missing ones.

    Call it again after each ``zero_grad()``, which by default frees the tensors. Use the result
    with ``connection.push_gradient(gradients(module), learning_rate=..)``; ``push`` would add it to
    the model, which increases the loss. Raises ValueError if no parameter has a gradient.
    """
    found: Parts = []
    any_there = False
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            continue
        if parameter.grad is None:
            found.append(np.zeros(tuple(parameter.shape), np.float32))
        else:
            any_there = True
            found.append(_view(f"gradient of {name!r}", parameter.grad))
    if not any_there:
        raise ValueError("the module has no gradients: call backward() first")
    return found


def step(before: Parts, module: torch.nn.Module, gamma: float = 1.0) -> Parts:
    """The change by local training divided by the server's factor. If the factor is 1,
    ``connection.push_delta`` is shorter.

    before: copies of ``parameters(module)`` from before the local training. gamma: the server's
    factor, ``connection.rule.factor``: the server then applies the whole change.
    """
    scale = np.float32(gamma)
    return [(now - old) / scale for now, old in zip(parameters(module), before, strict=True)]


def _view(name: str, tensor: torch.Tensor) -> NDArray[np.float32]:
    if tensor.dtype != torch.float32 or tensor.device.type != "cpu" or not tensor.is_contiguous():
        kind = "contiguous" if tensor.is_contiguous() else "not contiguous"
        raise ValueError(
            f"{name} is {tensor.dtype} on {tensor.device}, {kind}: only contiguous float32 "
            f"tensors on the CPU can be shared; olaf.connect() copies the others"
        )
    array: NDArray[np.float32] = tensor.detach().numpy()
    return array
