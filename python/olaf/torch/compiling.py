"""Methods into which torch's compiler does not look: it calls them as it calls those of gloo."""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import torch
from torch._C._dynamo import eval_frame

Method = TypeVar("Method", bound=Callable[..., Any])

_FILE = str(Path(torch.__file__).with_name("olaf.py"))


def uncompiled(method: Method) -> Method:
    """The same as `torch.compiler.disable`, which would import the compiler: that takes seconds.

    A compiled program breaks its graph at the call, and goes on behind it. Nothing that the method
    calls is compiled. Otherwise the compiler would read attributes of the group, which it knows as
    an opaque object, and fail.
    """

    @functools.wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        compiler = eval_frame.set_eval_frame(None)
        try:
            return method(*args, **options)
        finally:
            if compiler is not None:
                eval_frame.set_eval_frame(compiler)

    # The compiler leaves torch's own files alone, and the name of this one is not there for a
    # traceback to quote. Otherwise it would compile this function.
    marked: Any = call
    marked.__code__ = marked.__code__.replace(co_filename=_FILE)
    marked._torchdynamo_disable = True
    marked._torchdynamo_disable_msg = "olaf sums through a switch"
    marked._torchdynamo_disable_recursive = True
    return cast("Method", marked)
