"""Programs that train one network: each has data of its own, and all have the same weights.

python examples/distributed_optimizer.py --workers 4      # a switch and four processes, here
olaf switch --engines reduce --listen 127.0.0.1:5555      # or the switch in one terminal,
python examples/distributed_optimizer.py --workers 2 --switch 127.0.0.1:5555  # and this in two
"""

import argparse
import json
import subprocess
import sys

import torch
from torch import nn

import olaf
import olaf.torch


def train(job: olaf.SumConnection, steps: int = 200) -> None:
    model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    olaf.torch.broadcast_parameters(model, job)
    optimizer = olaf.torch.DistributedOptimizer(optimizer, through=job)
    torch.manual_seed(1 + job.rank)
    for _ in range(steps):
        points = torch.rand(64, 2) * 2 - 1
        wanted = torch.sin(3 * points[:, :1]) * points[:, 1:]
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(points), wanted)
        loss.backward()
        optimizer.step()
    weights = sum(float(parameter.detach().sum()) for parameter in model.parameters())
    print(f"rank {job.rank}: loss {loss.item():.4f} after {steps} steps, sum of weights {weights}")


def start_all(workers: int) -> int:
    """A switch and all workers as processes of this machine; the worst exit code."""
    argv = [sys.executable, "-m", "olaf", "switch", "--engines", "reduce", "--json"]
    argv += ["--listen", "127.0.0.1:0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as switch:
        try:
            assert switch.stdout is not None
            address = json.loads(switch.stdout.readline())["address"]
            own = [sys.executable, __file__, "--workers", str(workers), "--switch", address]
            started = [subprocess.Popen(own) for _ in range(workers)]
            return max(abs(process.wait()) for process in started)
        finally:
            switch.terminate()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--switch", help="host:port; without it everything is started here")
    given = parser.parse_args()
    if given.switch is None:
        return start_all(given.workers)
    with olaf.connect_sum(given.switch, workers=given.workers) as job:
        train(job)
    return 0


if __name__ == "__main__":
    sys.exit(main())
