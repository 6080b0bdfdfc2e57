"""Calls in which the ranks differ, under DETAIL, and a group for which the switch has no room.

Each rank writes what it was told to ``FOLDER/RANK.json``.
"""

import json
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed

import olaf.torch

dist: Any = torch.distributed


def told(call: Callable[[], object]) -> str:
    try:
        call()
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main(folder: Path) -> None:
    dist.init_process_group("olaf", init_method="env://", timeout=timedelta(seconds=30))
    rank = dist.get_rank()
    tensor = torch.ones(3)
    said = {
        "operation": told(
            lambda: dist.all_reduce(tensor, dist.ReduceOp.SUM if rank else dist.ReduceOp.MAX)
        ),
        "shape": told(lambda: dist.all_reduce(torch.ones(3 + rank))),
        "root": told(lambda: dist.broadcast(tensor, rank)),
        "equal": told(lambda: dist.all_reduce(tensor)),
    }
    assert (tensor == dist.get_world_size()).all()
    for name in ("first group", "second group"):
        group = dist.new_group()
        said[name] = told(partial(dist.all_reduce, tensor, group=group))
    group = dist.new_group()
    for name in ("late group", "late group again"):
        # The call comes back at once, and its handle says why nothing came of it.
        work = dist.all_reduce(tensor, group=group, async_op=True)
        said[name] = told(work.wait)
    (folder / f"{rank}.json").write_text(json.dumps(said))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    assert olaf.torch  # the import registers the backend
    main(Path(sys.argv[1]))
