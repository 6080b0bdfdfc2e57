"""Makes and destroys the group many times, with a sum in it and without.

Each rank writes the longest time of a round, in seconds, to ``FOLDER/RANK.json``.
"""

import json
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed

import olaf.torch

dist: Any = torch.distributed

ROUNDS = 8


def main(folder: Path) -> None:
    longest = 0.0
    for at in range(2 * ROUNDS):
        began = time.monotonic()
        dist.init_process_group("olaf", init_method="env://", timeout=timedelta(seconds=60))
        rank, size = dist.get_rank(), dist.get_world_size()
        if at % 2:
            tensor = torch.ones(10)
            dist.all_reduce(tensor)
            assert (tensor == size).all()
        dist.destroy_process_group()
        longest = max(longest, time.monotonic() - began)
    (folder / f"{rank}.json").write_text(json.dumps(longest))


if __name__ == "__main__":
    assert olaf.torch  # the import registers the backend
    main(Path(sys.argv[1]))
