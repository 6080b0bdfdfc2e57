"""DDP whose gradients are summed in the switch. Two lines differ from an ordinary program.

olaf switch --engines reduce --listen 127.0.0.1:5555 &
OLAF_SWITCH=127.0.0.1:5555 torchrun --standalone --nproc-per-node 4 ddp_sum.py
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import olaf.torch  # noqa: F401 - registers the backend


def main(steps: int = 200) -> None:
    dist.init_process_group("olaf", init_method="env://")
    torch.manual_seed(0)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 1)),
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    torch.manual_seed(1 + dist.get_rank())  # every rank draws its own samples
    for _ in range(steps):
        points = torch.rand(64, 2) * 2 - 1
        wanted = torch.sin(3 * points[:, :1]) * points[:, 1:]
        loss = nn.functional.mse_loss(model(points), wanted)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    mean = loss.detach()
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    if dist.get_rank() == 0:
        print(f"loss {mean.item():.4f} after {steps} steps on {dist.get_world_size()} ranks")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
