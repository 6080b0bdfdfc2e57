"""Events for `torch.profiler`: one for each call that goes through the switch."""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

_NOTHING: AbstractContextManager[None] = nullcontext()


def event(name: str, tensors: list[torch.Tensor]) -> AbstractContextManager[Any]:
    """An event as long as the call, with the sizes of its tensors, if a profiler listens.

    The event of an asynchronous call ends when the sum has begun.
    """
    if not torch._C._autograd._profiler_enabled():
        return _NOTHING
    recorded: AbstractContextManager[Any] = torch._C._profiler._RecordFunctionFast(
        name, list(tensors), {}
    )
    return recorded
