"""FSDP (`fully_shard`) on the CPU, once through the switch and once by gloo. Writes the losses."""

import itertools
import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

import olaf.torch

dist: Any = torch.distributed

STEPS = 12


def losses(group: Any) -> list[float]:
    """Train from the same weights on this rank's own data."""
    torch.manual_seed(1)
    # An odd width: the parts of the ranks are padded.
    sizes = [7, 33, 33, 1]
    layers = [torch.nn.Linear(*ends) for ends in itertools.pairwise(sizes)]
    model = torch.nn.Sequential(*(each for layer in layers for each in (layer, torch.nn.Tanh())))
    mesh = DeviceMesh.from_group(group, "cpu", mesh_dim_names=("ranks",))
    for layer in layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    chance = torch.Generator().manual_seed(100 + dist.get_rank())
    found = []
    for _ in range(STEPS):
        inputs = torch.randn(64, 7, generator=chance)
        wanted = inputs[:, :3].sum(1, keepdim=True).tanh()
        loss: Any = torch.nn.functional.mse_loss(model(inputs), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(float(loss))
    return found


def sums() -> int:
    """Sums that this rank has begun through the switch."""
    return len(dist.group.WORLD._sums()._connection.operations())


def main() -> None:
    """Both trainings, of the same data."""
    assert olaf.torch  # the import registers the backend
    dist.init_process_group("olaf", init_method="env://", timeout=timedelta(seconds=60))
    gloo = dist.new_group(backend="gloo", timeout=timedelta(seconds=60))
    before = sums()
    found: dict[str, Any] = {"olaf": losses(dist.group.WORLD)}
    found["sums"] = sums() - before
    found["gloo"] = losses(gloo)
    rank = dist.get_rank()
    (Path(sys.argv[1]) / f"{rank}.json").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
