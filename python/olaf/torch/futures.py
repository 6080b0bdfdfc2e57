"""Futures whose type C++ code knows: `list[Tensor]`, and not any Python object."""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

_SOURCE = """
def _after(gate: Future[Tensor], tensors: List[Tensor]) -> List[Tensor]:
    torch.jit.wait(gate)
    return tensors

def begin(gate: Future[Tensor], tensors: List[Tensor]) -> Future[List[Tensor]]:
    return torch.jit.fork(_after, gate, tensors)
"""


def of_tensors(gate: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """A future of CPU tensors that ends with `gate`, well or not. No thread waits meanwhile.

    A future that Python makes has the type of a Python object, whatever is in it. Code of torch in
    C++ that checks the type refuses such a future. Only TorchScript makes others.
    """
    return _script().begin(gate, list(tensors))


@functools.cache
def _script() -> Any:
    return torch.jit.CompilationUnit(_SOURCE)
