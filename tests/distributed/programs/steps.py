"""Sums in a loop, until the last rank stops, the switch fails, or the steps are done.

    python steps.py FOLDER STEPS [--stop-after STEP] [--fails-after STEP] [--ddp]

A rank creates `FOLDER/RANK.begun` after a few steps, and writes `FOLDER/RANK.json` at its end.
"""

import argparse
import hashlib
import json
import os
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed

import olaf.torch
from olaf.torch import connecting as module

dist: Any = torch.distributed


BEGUN = 5
"""Steps after which a rank says that it runs."""


class SilentError(RuntimeError):
    """What a connection raises when the switch is silent."""

    reason = "silent"
    culprit = None


class LosesLastResult:
    """A connection that takes part in every sum, but loses the result of one, and then the rest."""

    def __init__(self, connection: Any, after: int) -> None:
        self._connection = connection
        self._left = after
        self.rank = connection.rank

    def all_reduce(self, lanes: torch.Tensor, *operation: Any, **options: Any) -> None:
        self._left -= 1
        taken = lanes if self._left > 0 else lanes.clone()
        self._connection.all_reduce(taken, *operation, **options)
        if self._left <= 0:
            lanes.fill_(float("nan"))
            raise SilentError("the switch is silent")

    def broadcast(self, *call: Any, **options: Any) -> None:
        self._connection.broadcast(*call, **options)

    def close(self) -> None:
        self._connection.close()


def lose_results(after: int) -> None:
    """From now on connections lose the result of that sum."""
    connecting: Any = module
    real = connecting.connect_sum
    connecting.connect_sum = lambda *args, **options: LosesLastResult(real(*args, **options), after)


def sums(given: argparse.Namespace, folder: Path, said: dict[str, Any]) -> None:
    """One all-reduce and one broadcast a step."""
    rank, size = dist.get_rank(), dist.get_world_size()
    digest = hashlib.sha256()
    for step in range(given.steps):
        if rank == size - 1 and step == given.stop_after:
            os.kill(os.getpid(), signal.SIGKILL)
        generator = torch.Generator().manual_seed(1000 * step + rank)
        values = torch.randn(10_007, generator=generator)
        mine = values.clone()
        dist.all_reduce(mine)
        exact = sum(
            torch.randn(10_007, generator=torch.Generator().manual_seed(1000 * step + other))
            for other in range(size)
        )
        torch.testing.assert_close(mine, exact, rtol=1e-5, atol=1e-5)
        dist.broadcast(values, step % size)
        digest.update(mine.numpy().tobytes() + values.numpy().tobytes())
        said |= {"steps": step + 1, "digest": digest.hexdigest()}
        if step == BEGUN:
            (folder / f"{rank}.begun").touch()


def training(given: argparse.Namespace, folder: Path, said: dict[str, Any]) -> None:
    """Backward passes of DDP: an error has to come out of `backward`."""
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(200, 200))
    for step in range(given.steps):
        if rank == size - 1 and step == given.stop_after:
            os.kill(os.getpid(), signal.SIGKILL)
        model(torch.randn(8, 200)).sum().backward()
        said["steps"] = step + 1
        if step == BEGUN:
            (folder / f"{rank}.begun").touch()


def main() -> None:
    """Run the steps, and write how they ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("steps", type=int)
    parser.add_argument("--stop-after", type=int)
    parser.add_argument("--fails-after", type=int)
    parser.add_argument("--ddp", action="store_true")
    given = parser.parse_args()
    rank = int(os.environ["RANK"])
    if given.fails_after is not None and rank == 1:
        lose_results(given.fails_after)
    said: dict[str, Any] = {"error": "", "kind": "", "steps": 0}
    began = time.monotonic()
    try:
        dist.init_process_group("olaf", init_method="env://", timeout=timedelta(seconds=20))
        began = time.monotonic()
        (training if given.ddp else sums)(given, given.folder, said)
        dist.barrier()
        dist.destroy_process_group()
    except Exception as error:
        said |= {"error": str(error), "kind": type(error).__name__}
    said["ended_at"] = time.monotonic()
    said["began_at"] = began
    (given.folder / f"{rank}.json").write_text(json.dumps(said))


if __name__ == "__main__":
    assert olaf.torch  # the import registers the backend
    main()
