"""Training with checkpoints. In its first life the last rank kills itself in the middle.

torchrun restarts all ranks: they go on from the checkpoint, in a new group of the same name.
"""

import json
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed

import olaf.torch

dist: Any = torch.distributed

STEPS, KILLED_AT = 12, 5


def main(folder: Path) -> None:
    """Each step adds the sum of all ranks' values. Rank 0 writes the checkpoint."""
    dist.init_process_group("olaf", init_method="env://", timeout=timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    life = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    checkpoint = folder / "checkpoint.json"
    at, total = json.loads(checkpoint.read_text()) if checkpoint.exists() else (0, 0.0)
    began = at
    while at < STEPS:
        if life == 0 and at == KILLED_AT and rank == size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        values = torch.full((1_000,), float(at * size + rank))
        dist.all_reduce(values)
        at, total = at + 1, total + values[0].item()
        if rank == 0:
            half = folder / "checkpoint.part"
            half.write_text(json.dumps([at, total]))
            half.replace(checkpoint)
    told = {"life": life, "began": began, "total": total}
    (folder / f"{rank}.json").write_text(json.dumps(told))
    dist.destroy_process_group()


if __name__ == "__main__":
    assert olaf.torch  # the import registers the backend
    main(Path(sys.argv[1]))
