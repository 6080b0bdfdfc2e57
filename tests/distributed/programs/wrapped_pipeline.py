"""A worker whose optimizer is wrapped in mode "pipeline": SWITCH WORKERS RANK HANGS_AT.

It goes on after the death of another worker, with one in its place. From iteration HANGS_AT on it
says so and waits to be killed, before its `step`.
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

ITERATIONS = 600
COMPUTES_S = 0.005
PATIENCE_S = 60.0


def train(
    address: str, workers: int, rank: int, say: Callable[..., object], hangs_at: int = -1
) -> None:
    """Says where it begins, each error, and at the end the weights."""
    model = nn.Linear(20, 1)
    with torch.no_grad():
        model.weight.fill_(rank)
    bare: Any = torch.optim.Adam(model.parameters(), lr=0.02)
    done, steps, began = 0, 0, time.monotonic()
    with olaf.connect_sum(
        address, workers=workers, rank=rank, protocol="iswitch", timeout_s=100
    ) as job:
        while done < ITERATIONS:
            try:
                optimizer: Any = olaf.torch.DistributedOptimizer(
                    bare, through=job, mode="pipeline", iterations=ITERATIONS, iteration=done
                )
                say(began=optimizer.iteration)
                while not optimizer.is_over:
                    optimizer.zero_grad()
                    time.sleep(COMPUTES_S)  # a death is noticed before the others are through
                    loss_of(model, steps, rank).backward()
                    if 0 <= hangs_at <= optimizer.iteration:
                        say(hangs=optimizer.iteration)
                        signal.pause()
                    optimizer.step()
                    steps += 1
                done = optimizer.iteration
            except olaf.SumError as error:
                done = max(done, optimizer.iteration)
                say(error=str(error), reason=error.reason, culprit=error.culprit, done=done)
                assert time.monotonic() - began < PATIENCE_S, "nobody came in its place"
        job.all_reduce(torch.zeros(1))  # a worker that leaves ends the job for the others
        moments = [entry["exp_avg"].reshape(-1).tolist() for entry in bare.state.values()]
        say(ended=done, weights=model.weight[0].tolist(), moments=moments)


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
