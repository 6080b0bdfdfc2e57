"""A step with `olaf.torch.DistributedOptimizer` against DDP over gloo, and against no wrapper.

    python benchmarks/optimizer.py [--workers 4] [--rate 1e9] [--passes 5]

Four workers and a switch have a network namespace each, with links of 1 Gbit/s (`sum_network.py`).
The models have 3.3 and 6.4 MB, as A2C and DQN of iSwitch's Table 1. DDP and the wrapper take turns
in the same processes. A step is `zero_grad`, forward, `backward` and the step of SGD. Then the
same in one process without a switch: the bare optimizer against `through=None`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from sum_network import Link, allowed, loopback, shaped
from sum_switches import started

WIDTHS = {3_300_000: 509, 6_400_000: 715}
"""Bytes of a model -> the width of its layers: three hidden ones, 84 inputs, 6 outputs."""
WARM_UP = 3


def main() -> None:
    """Start the workers, or be one of them."""
    given = arguments()
    if "RANK" in os.environ:
        work(given)
        return
    if given.only_alone:
        alone(given)
        return
    refused = allowed()
    print(
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {given.passes} passes in turns"
    )
    if refused:
        print(f"unshaped loopback: network namespaces are not allowed here ({refused})")
    place = nullcontext(loopback(given.workers))
    link = Link(given.rate, 10_000, 9000)
    with (
        place if refused else shaped(given.workers, link) as network,
        started(network, {"engines": ["reduce"]}, show=False) as switches,
    ):
        processes = [
            subprocess.Popen(
                worker.command(sys.executable, str(Path(__file__)), *sys.argv[1:]),
                env=os.environ
                | {
                    "RANK": str(rank),
                    "WORLD_SIZE": str(given.workers),
                    "MASTER_ADDR": network.workers[0].address,
                    "MASTER_PORT": "29500",
                    "GLOO_SOCKET_IFNAME": worker.interface,
                    "OMP_NUM_THREADS": "1",
                    "OLAF_SWITCH": switches.addresses[0],
                },
            )
            for rank, worker in enumerate(network.workers)
        ]
        try:
            codes = [process.wait(given.timeout) for process in processes]
        finally:
            for process in processes:
                process.kill()
    if any(codes):
        sys.exit(f"workers ended with {codes}")
    alone(given)


def work(given: argparse.Namespace) -> None:
    """One worker: rank 0 prints a row for each size."""
    import torch
    import torch.distributed as dist

    import olaf
    from olaf.torch import DistributedOptimizer

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="env://")
    rank, size = dist.get_rank(), dist.get_world_size()
    with olaf.connect_sum(os.environ["OLAF_SWITCH"], workers=size, rank=rank) as job:
        for model_bytes, width in WIDTHS.items():
            plain, under_ddp, wrapped = (network(width) for _ in range(3))
            ddp = torch.nn.parallel.DistributedDataParallel(under_ddp)
            bare = [torch.optim.SGD(m.parameters(), lr=1e-3) for m in (plain, under_ddp, wrapped)]
            steps = {
                "no sum": stepper(plain, bare[0], given.batch),
                "ddp": stepper(ddp, bare[1], given.batch),
                "olaf": stepper(wrapped, DistributedOptimizer(bare[2], through=job), given.batch),
            }
            times: dict[str, list[float]] = {name: [] for name in steps}
            for _ in range(given.passes):
                for name, step in steps.items():
                    dist.barrier()
                    times[name] += timed(step, given.steps)
            every: list[Any] = [None] * size
            dist.all_gather_object(every, times)
            if rank == 0:
                print_row(model_bytes, every)
        dist.barrier()
    dist.destroy_process_group()


def print_row(model_bytes: int, every: list[dict[str, list[float]]]) -> None:
    """Milliseconds of a step at the slowest worker: median, and the 10th and 90th percentile."""
    row: dict[str, Any] = {"bytes": model_bytes}
    for name in every[0]:
        slowest = max((times[name] for times in every), key=statistics.median)
        low, *_, high = statistics.quantiles(slowest, n=10)
        row[name] = [round(1e3 * t, 2) for t in (statistics.median(slowest), low, high)]
    row["ddp / olaf"] = round(row["ddp"][0] / row["olaf"][0], 3)
    print(json.dumps(row), flush=True)


def alone(given: argparse.Namespace) -> None:
    """A world of one: the bare optimizer and the wrapped one, in turns."""
    import torch

    from olaf.torch import DistributedOptimizer

    torch.set_num_threads(1)
    for width in (32, *WIDTHS.values()):
        bare_model, model = network(width), network(width)
        bare = torch.optim.Adam(bare_model.parameters())
        wrapped = DistributedOptimizer(torch.optim.Adam(model.parameters()), through=None)
        whole = {
            "bare": stepper(bare_model, bare, given.batch),
            "wrapped": stepper(model, wrapped, given.batch),
        }
        for what, steps in (
            ("step()", {"bare": bare.step, "wrapped": wrapped.step}),
            ("all", whole),
        ):
            for step in whole.values():
                step()  # makes the gradients
            times: dict[str, list[float]] = {name: [] for name in steps}
            for _ in range(20 * given.passes):
                for name, step in steps.items():
                    times[name] += timed(step, given.steps)
            middle = {name: statistics.median(found) for name, found in times.items()}
            cost = middle["wrapped"] / middle["bare"] - 1
            us = {name: round(1e6 * t, 1) for name, t in middle.items()}
            print(json.dumps({"alone": what, "width": width, "us": us, "cost": f"{cost:+.2%}"}))


def network(width: int) -> Any:
    """A model of three hidden layers."""
    from torch import nn

    layers: list[Any] = [nn.Linear(84, width), nn.ReLU()]
    for _ in range(3):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 6))


def stepper(model: Any, optimizer: Any, batch: int) -> Callable[[], object]:
    """One step of training."""
    import torch

    inputs = torch.randn(batch, 84, generator=torch.Generator().manual_seed(1))

    def step() -> None:
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()

    return step


def timed(step: Callable[[], object], steps: int) -> list[float]:
    """Seconds of each step."""
    taken = []
    for at in range(WARM_UP + steps):
        began = time.perf_counter()
        step()
        if at >= WARM_UP:
            taken.append(time.perf_counter() - began)
    return taken


def arguments() -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--rate", type=float, default=1e9, help="bits per second of each link")
    parser.add_argument("--batch", type=int, default=64, help="rows of a worker's batch")
    parser.add_argument("--passes", type=int, default=5, help="turns of each")
    parser.add_argument("--steps", type=int, default=8, help="steps of a turn")
    parser.add_argument("--only-alone", action="store_true", help="no network")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for all workers")
    return parser.parse_args()


if __name__ == "__main__":
    main()
