"""Rank 0 makes two sums in another order than the other ranks."""

from datetime import timedelta
from typing import Any

import torch
import torch.distributed

import olaf.torch

dist: Any = torch.distributed


def main() -> None:
    """Some sums, one of them of a subgroup and one asynchronous; then the fault."""
    assert olaf.torch  # the import registers the backend
    dist.init_process_group("olaf", init_method="env://", timeout=timedelta(seconds=30))
    pair = dist.new_group([0, 1])
    weights, biases = torch.ones(6), torch.ones(6)
    dist.broadcast(weights, 0)
    dist.all_reduce(weights, async_op=True).wait()
    if dist.get_rank() < 2:
        dist.all_reduce(biases, dist.ReduceOp.MAX, group=pair)
    try:
        if dist.get_rank() == 0:
            dist.all_reduce(biases)
            dist.all_reduce(weights)
        else:
            dist.all_reduce(weights)
            dist.all_reduce(biases)
    except dist.DistBackendError:
        return
    raise AssertionError("no error")


if __name__ == "__main__":
    main()
