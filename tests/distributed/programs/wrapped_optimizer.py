"""A worker whose optimizer is wrapped: SWITCH WORKERS RANK HANGS_AT.

It goes on after the death of another worker, with one in its place. WORKERS = 0: an elastic job,
which goes on without. At step HANGS_AT it says so and waits to be killed, before its sum.
"""

# The types of torch differ between releases, and without it there are none.
# mypy: disable-error-code="no-untyped-call,unused-ignore"

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import olaf
import olaf.torch

STEPS = 120
PATIENCE_S = 60.0


def train(
    address: str, workers: int, rank: int, say: Callable[..., object], hangs_at: int = -1
) -> None:
    """Says where it begins, each error, and at the end the weights."""
    model = nn.Linear(20, 1)
    with torch.no_grad():
        model.weight.fill_(rank)
    optimizer: Any = torch.optim.Adam(model.parameters(), lr=0.02)
    done, is_equal, began = 0, False, time.monotonic()
    with olaf.connect_sum(address, workers=workers or None, rank=rank, timeout_s=100) as job:
        while job.workers < 3:  # in an elastic job the first one begins alone
            assert time.monotonic() - began < PATIENCE_S, "the others do not come"
            time.sleep(0.01)
        optimizer = olaf.torch.DistributedOptimizer(optimizer, through=job)
        while done < STEPS:
            try:
                if not is_equal:
                    done = begin_equal(model, optimizer, job, done)
                    is_equal = True
                    say(began=done)
                optimizer.zero_grad()
                with optimizer.no_sync():
                    loss_of(model, done, rank).backward()
                if done == hangs_at:
                    say(hangs=done)
                    signal.pause()
                optimizer.step()
                done += 1
            except olaf.SumError as error:
                say(error=str(error), reason=error.reason, culprit=error.culprit, done=done)
                assert time.monotonic() - began < PATIENCE_S, "nobody came in its place"
                is_equal = workers == 0
        job.all_reduce(torch.zeros(1))  # a worker that leaves ends the job for the others
        say(ended=done, weights=model.weight[0].tolist())


def begin_equal(model: nn.Module, optimizer: Any, job: olaf.SumConnection, done: int) -> int:
    """All take the state of the worker that has done the most steps; returns their number."""
    root = olaf.torch.furthest(job, done)
    steps = torch.tensor(done)
    olaf.torch.broadcast_parameters({"steps": steps, **model.state_dict()}, job, root)
    olaf.torch.broadcast_optimizer_state(optimizer, job, root)
    return int(steps)


def loss_of(model: nn.Module, step: int, rank: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * rank + step)
    inputs = torch.randn(16, 20, generator=generator)
    return nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True))


if __name__ == "__main__":
    train(
        sys.argv[1],
        workers=int(sys.argv[2]),
        rank=int(sys.argv[3]),
        say=lambda **fields: print(json.dumps(fields), flush=True),
        hangs_at=int(sys.argv[4]),
    )
