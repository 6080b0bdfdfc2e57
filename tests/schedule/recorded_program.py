"""One of two processes that train together and record what they do: STORE RANK OUT."""

# mypy: disable-error-code="attr-defined,no-untyped-call"

import json
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from olaf.torch.recording import Recorder


def through_ddp(rank: int) -> Recorder:
    torch.manual_seed(0)
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 1)), bucket_cap_mb=0.0001
    )
    recorder = Recorder(steps=3, warmup=2)
    recorder.watch(model)
    while not recorder.complete:
        model.zero_grad()
        model(torch.full((1, 64), float(rank))).sum().backward()
    gradient = model.module[0].weight.grad
    assert gradient is not None
    mean = model.module[1].weight.detach().T.expand(64, 64) / 2
    assert torch.allclose(gradient, mean), "the mean of inputs 0 and 1"
    return recorder


def through_calls(rank: int) -> Recorder:
    recorder = Recorder(steps=3, warmup=1)
    with recorder.calls():
        while not recorder.complete:
            sums = [torch.full((100,), float(rank)), torch.full((7,), float(rank))]
            works = [dist.all_reduce(each, async_op=True) for each in sums]
            for work in works:
                assert work is not None
                work.wait()
            assert all(bool((each == 1).all()) for each in sums)
            recorder.step()
    return recorder


def main(store: str, rank: int, out: str) -> None:
    dist.init_process_group("gloo", store=dist.FileStore(store, 2), rank=rank, world_size=2)
    told = {}
    for name, program in (("ddp", through_ddp), ("calls", through_calls)):
        recorder = program(rank)
        told[name] = recorder.pattern().document(**recorder.circumstances())
    with open(out, "w", encoding="utf-8") as file:
        json.dump(told, file)
    # gloo aborts a process whose peer closes its connections first.
    dist.barrier()
    dist.destroy_process_group()
    # Where a program used DDP, gloo's threads outlive the group: also without a recorder. One that
    # frees a tensor while the interpreter ends aborts the process, so it ends without that.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
