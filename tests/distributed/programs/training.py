"""Trains two small models with DDP, over gloo and through the switch, from the same seeds.

Each rank writes the losses of all steps, by model and by path, to ``FOLDER/RANK.json``.
"""

# mypy: disable-error-code="misc,unused-ignore"
# Without torch, its classes are Any.

import json
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import olaf
import olaf.torch

dist: Any = torch.distributed


STEPS = 12
CLASSES = 5


class Residual(nn.Module):
    """Two convolutions and a short cut, as in a ResNet."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.relu(images + self.path(images))


def conv_net() -> nn.Module:
    first = nn.Conv2d(3, 16, 3, padding=1)
    last = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, CLASSES))
    return nn.Sequential(first, nn.BatchNorm2d(16), nn.ReLU(), Residual(16), Residual(16), last)


class Transformer(nn.Module):
    """Tokens in, a class out."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.last = nn.Linear(32, CLASSES)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(self.layers(self.embedding(tokens)).mean(1))
        return logits


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[torch.Generator], torch.Tensor]]] = {
    "conv net": (conv_net, lambda chance: torch.randn(8, 3, 12, 12, generator=chance)),
    "transformer": (Transformer, lambda chance: torch.randint(0, 50, (8, 10), generator=chance)),
}


def losses(name: str, group: Any, state: olaf.torch.SumState | None = None) -> list[float]:
    """The loss of each step, averaged over the ranks."""
    torch.manual_seed(7)
    make, draw = MODELS[name]
    model = DistributedDataParallel(make(), process_group=group, bucket_cap_mb=0.02)
    if state is not None:
        model.register_comm_hook(state, olaf.torch.sum_hook)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    chance = torch.Generator().manual_seed(100 + dist.get_rank())
    inputs, wanted = draw(chance), torch.randint(0, CLASSES, (8,), generator=chance)
    taken = []
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss: Any = nn.functional.cross_entropy(model(inputs), wanted)
        loss.backward()
        optimiser.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG, group=group)
        taken.append(float(mean))
    return taken


def main(folder: Path, switch: str) -> None:
    """Train over both paths, and with the hook in a program that keeps gloo."""
    dist.init_process_group("olaf", init_method="env://", timeout=timedelta(seconds=60))
    gloo = dist.new_group(backend="gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    found: dict[str, dict[str, list[float]]] = {}
    with olaf.connect_sum(switch, job=9, workers=size, rank=rank) as connection:
        hook = olaf.torch.SumState(connection)
        exact = olaf.torch.SumState(connection, exact=True)
        for name in MODELS:
            found[name] = {
                "gloo": losses(name, gloo),
                "olaf": losses(name, dist.group.WORLD),
                "hook": losses(name, gloo, hook),
                "exact": losses(name, gloo, exact),
                "exact again": losses(name, gloo, exact),
            }
        dist.barrier()
    (folder / f"{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
