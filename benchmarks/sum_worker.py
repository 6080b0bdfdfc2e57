"""One worker of `benchmarks/sum.py`: measures collectives of gloo and of Olaf, in turns.

Started by `sum.py` with its rank and the plan in the environment. Rank 0 prints the times of all
ranks, one JSON object a line.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

WARM_UP = 2
"""Calls before each measured series."""


def main() -> None:
    """Measure each step of the plan."""
    plan: dict[str, Any] = json.loads(os.environ["OLAF_BENCH_PLAN"])
    torch.set_num_threads(1)
    patience = timedelta(seconds=plan["timeout_s"])
    groups: dict[str, Any] = {}
    options: Any = None
    if "olaf" in plan["backends"]:
        from olaf.torch import SumOptions

        options = SumOptions(connection=plan["connection"], protocol=plan["protocol"])
    if plan["protocol"] == "reduce":
        dist.init_process_group("gloo", init_method="env://", timeout=patience)
        if "gloo" in plan["backends"]:
            groups["gloo"] = dist.group.WORLD
        if "olaf" in plan["backends"]:
            groups["olaf"] = dist.new_group(backend="olaf", timeout=patience, pg_options=options)
    else:
        # Some of the papers' protocols carry the whole world alone.
        dist.init_process_group("olaf", init_method="env://", timeout=patience, pg_options=options)
        groups["olaf"] = dist.group.WORLD
    for step in plan["steps"]:
        report(step, measure(step, groups))
    dist.destroy_process_group()


def measure(step: dict[str, Any], groups: dict[str, Any]) -> dict[str, list[float]]:
    """Seconds of each call, by backend. The backends take turns, a pass each."""
    values = torch.rand(step["bytes"] // 4, generator=torch.Generator().manual_seed(step["seed"]))
    times: dict[str, list[float]] = {name: [] for name in groups}
    for _ in range(step["passes"]):
        for name, group in groups.items():
            times[name] += SERIES[step["collective"]](values, group, step["rounds"])
    return times


def all_reduces(values: torch.Tensor, group: Any, rounds: int) -> list[float]:
    """Calls back to back: an all-reduce keeps the workers in step by itself.

    Zeros stay zeros, so nothing is copied between two calls. A copy would count as time in which
    the other workers wait. The values are summed and checked afterwards.
    """
    zeros = torch.zeros_like(values)
    taken = []
    dist.barrier()
    for at in range(WARM_UP + rounds):
        began = time.perf_counter()
        dist.all_reduce(zeros, group=group)
        if at >= WARM_UP:
            taken.append(time.perf_counter() - began)
    mine = values.clone()
    dist.all_reduce(mine, group=group)
    torch.testing.assert_close(mine, values * dist.get_world_size(), rtol=1e-5, atol=1e-5)
    return taken


def broadcasts(values: torch.Tensor, group: Any, rounds: int) -> list[float]:
    """Each call starts together; it ends when this worker has the values."""
    root = dist.get_rank() == 0
    taken = []
    for at in range(WARM_UP + rounds):
        mine = values.clone() if root else torch.zeros_like(values)
        dist.barrier()
        began = time.perf_counter()
        dist.broadcast(mine, 0, group=group)
        if at >= WARM_UP:
            taken.append(time.perf_counter() - began)
        assert torch.equal(mine, values), "a broadcast brought other values"
    return taken


def reduce_scatters(values: torch.Tensor, group: Any, rounds: int) -> list[float]:
    """Calls back to back: each rank gets its part of the sum. Every rank sends all values."""
    size, rank = dist.get_world_size(), dist.get_rank()
    values = values[: values.numel() // size * size]
    part = torch.empty(values.numel() // size)
    taken = []
    dist.barrier()
    for at in range(WARM_UP + rounds):
        began = time.perf_counter()
        dist.reduce_scatter_tensor(part, values, group=group)
        if at >= WARM_UP:
            taken.append(time.perf_counter() - began)
    torch.testing.assert_close(part, values.chunk(size)[rank] * size, rtol=1e-5, atol=1e-5)
    return taken


def all_gathers(values: torch.Tensor, group: Any, rounds: int) -> list[float]:
    """Calls back to back: all ranks get the parts of all."""
    size, rank = dist.get_world_size(), dist.get_rank()
    values = values[: values.numel() // size * size]
    mine, whole = values.chunk(size)[rank].clone(), torch.empty_like(values)
    taken = []
    dist.barrier()
    for at in range(WARM_UP + rounds):
        began = time.perf_counter()
        dist.all_gather_into_tensor(whole, mine, group=group)
        if at >= WARM_UP:
            taken.append(time.perf_counter() - began)
    assert torch.equal(whole, values), "an all-gather brought other values"
    return taken


SERIES: dict[str, Callable[[torch.Tensor, Any, int], list[float]]] = {
    "all_reduce": all_reduces,
    "broadcast": broadcasts,
    "reduce_scatter": reduce_scatters,
    "all_gather": all_gathers,
}


def report(step: dict[str, Any], times: dict[str, list[float]]) -> None:
    """Gather the times of all ranks; rank 0 prints those of the slowest rank."""
    every: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(every, times)
    if dist.get_rank() != 0:
        return
    slowest = {
        name: max((of_rank[name] for of_rank in every), key=statistics.median) for name in times
    }
    print(json.dumps({"step": step, "seconds": slowest}), flush=True)


if __name__ == "__main__":
    main()
