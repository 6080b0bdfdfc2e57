"""The page's table of calls, types and protocols is what the code does."""

from __future__ import annotations

import importlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

PAGE = Path(__file__).parents[2] / "docs" / "torch-distributed.md"


def test_the_table_of_the_page_is_what_the_backend_asks() -> None:
    from olaf.torch.paths import table

    assert "\n".join(table()) in PAGE.read_text(encoding="utf-8"), "\n".join(table())


def test_gloo_does_and_refuses_what_the_table_says() -> None:
    from olaf.torch import paths

    torch: Any = importlib.import_module("torch")
    dist: Any = importlib.import_module("torch.distributed")
    gloo = dist.ProcessGroupGloo(dist.HashStore(), 0, 1, timedelta(seconds=30))
    for reduction in (*paths.REDUCTIONS, None):
        for dtype in paths.TYPES:
            tensor = torch.ones(3).to(dtype)
            try:
                if reduction is None:
                    gloo.broadcast(tensor, 0).wait()
                else:
                    options = dist.AllreduceOptions()
                    options.reduceOp = getattr(dist.ReduceOp, reduction)
                    gloo.allreduce([tensor], options).wait()
                found = paths.GLOO
            except (RuntimeError, ValueError):
                found = paths.REFUSED
            assert found == paths.by_gloo(reduction, dtype), (reduction, dtype)


def test_the_first_line_names_switch_protocol_and_types() -> None:
    from olaf.torch.paths import announcement

    said = announcement(4, "10.0.0.1:5555", 7, "trio")
    assert said == (
        "olaf: 4 ranks sum through the switch 10.0.0.1:5555 (protocol trio, job 7): all_reduce of "
        "float32; all else goes by gloo"
    )
