"""Checks of the backend `olaf`. Each rank writes the outcome of each check."""

import json
import sys
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed

import olaf.torch

dist: Any = torch.distributed

Check = Callable[[Any], None]
CHECKS: dict[str, Check] = {}

TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float32: 1e-5}


def check(function: Check) -> Check:
    """A check, under its name."""
    CHECKS[function.__name__] = function
    return function


def mine(size: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    """This rank's values: small enough that no type overflows."""
    generator = torch.Generator().manual_seed(1000 * seed + dist.get_rank())
    if dtype.is_floating_point:
        return torch.randn(size, generator=generator).to(dtype)
    return torch.randint(0, 4, (size,), generator=generator).to(dtype)


def same(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """Equal within the rounding of the type: gloo adds in another order."""
    tolerance = TOLERANCE.get(ours.dtype, 0.0)
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


def alike(tensor: torch.Tensor) -> None:
    """Bit for bit the same at all ranks."""
    every: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(every, tensor.view(torch.uint8).numpy().tobytes())
    assert all(other == every[0] for other in every), "the ranks have different results"


def main() -> None:
    """Run the checks. One that fails at a rank fails at the others too, or at their time-out."""
    assert olaf.torch  # the import registers the backend
    folder = Path(sys.argv[1])
    dist.init_process_group("olaf", init_method="env://", timeout=timedelta(seconds=30))
    assert dist.get_backend() == "olaf"
    gloo = dist.new_group(backend="gloo", timeout=timedelta(seconds=30))
    rank = dist.get_rank()
    outcome: dict[str, str] = {}
    for name, run in CHECKS.items():
        try:
            run(gloo)
            outcome[name] = ""
        except Exception:
            outcome[name] = traceback.format_exc()
        (folder / f"{rank}.json").write_text(json.dumps(outcome))
    dist.destroy_process_group()
