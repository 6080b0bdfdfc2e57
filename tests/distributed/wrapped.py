"""Workers whose optimizers are wrapped: their networks and their data."""

from __future__ import annotations

import torch
from sum_threads import ENGINES, PATIENCE_S, switch_of, together
from torch import nn

from olaf import SumConnection

__all__ = [
    "ENGINES",
    "PATIENCE_S",
    "batch",
    "flat",
    "flat_gradient",
    "network",
    "share",
    "switch_of",
    "together",
]


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
