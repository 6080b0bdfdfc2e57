"""Workers whose optimizers are wrapped: threads of this process around a switch of this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import nn

import olaf
from olaf import SumConnection, _olaf

T = TypeVar("T")

PATIENCE_S = 60.0
ENGINES = {
    "reduce": ["reduce"],
    "iswitch": ["iswitch"],
    "trio": ["trio"],
    "atp": ["atp", "atp_server"],
}
"""Protocol -> engines of its switch."""


@contextmanager
def switch_of(protocol: str = "reduce", **config: Any) -> Iterator[_olaf.Switch]:
    """A switch in this process. config: keys of the protocol's table."""
    told = {"engines": ENGINES[protocol], "listen": "127.0.0.1:0", protocol: config}
    switch = _olaf.Switch(json.dumps(told))
    switch.start()
    try:
        yield switch
    finally:
        switch.stop()


def together(
    work: Callable[[SumConnection], T],
    *,
    workers: int = 2,
    protocol: str = "reduce",
    elastic: bool = False,
) -> list[T]:
    """What each worker returns, by rank. Each is a thread with a connection of its own."""
    results: dict[int, T] = {}
    errors: list[BaseException] = []
    meeting = threading.Barrier(workers)

    def one(address: str) -> None:
        try:
            with olaf.connect_sum(
                address, workers=None if elastic else workers, protocol=protocol
            ) as job:
                rank = job.rank
                results[rank] = work(job)
                meeting.wait(PATIENCE_S)  # a worker that leaves ends the job for the others
        except BaseException as error:
            meeting.abort()
            errors.append(error)

    with switch_of(protocol) as switch:
        threads = [
            threading.Thread(target=one, args=(switch.address,), daemon=True)
            for _ in range(workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a worker hangs"
    real = [error for error in errors if not isinstance(error, threading.BrokenBarrierError)]
    if errors:
        raise (real or errors)[0]
    return [results[rank] for rank in range(workers)]


def network(seed: int = 0) -> nn.Sequential:
    """A small network, the same for each seed whatever the other threads draw."""
    generator = torch.Generator().manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 3))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 4)
    return model


def batch(step: int, size: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    """The inputs and wanted outputs of a step: those of all workers together."""
    generator = torch.Generator().manual_seed(100 + step)
    return torch.randn(size, 5, generator=generator), torch.randn(size, 3, generator=generator)


def share(job: SumConnection, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """This worker's part of the batch."""
    inputs, wanted = batch(step)
    return inputs[job.rank :: job.workers], wanted[job.rank :: job.workers]


def flat(model: nn.Module) -> torch.Tensor:
    """All weights."""
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


def flat_gradient(model: nn.Module) -> torch.Tensor:
    """All gradients; each parameter has one."""
    found = [parameter.grad for parameter in model.parameters()]
    return torch.cat([gradient.reshape(-1).clone() for gradient in found if gradient is not None])
