"""A DDP program that keeps its own process group. The gradients alone go through the switch.

olaf switch --engines reduce --listen 127.0.0.1:5555 &
OLAF_SWITCH=127.0.0.1:5555 torchrun --standalone --nproc-per-node 4 ddp_hook.py
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import olaf
import olaf.torch


def main(steps: int = 200) -> None:
    dist.init_process_group("gloo", init_method="env://")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 1)))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    torch.manual_seed(1 + rank)
    with olaf.connect_sum(os.environ["OLAF_SWITCH"], workers=size, rank=rank) as connection:
        model.register_comm_hook(olaf.torch.SumState(connection), olaf.torch.sum_hook)
        for _ in range(steps):
            points = torch.rand(64, 2) * 2 - 1
            wanted = torch.sin(3 * points[:, :1]) * points[:, 1:]
            optimiser.zero_grad()
            loss = nn.functional.mse_loss(model(points), wanted)
            loss.backward()
            optimiser.step()
    print(f"rank {rank}: loss {loss.item():.4f} after {steps} steps")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
