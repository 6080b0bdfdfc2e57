"""PyTorch's own distributed tests, in ranks that stay: each test makes the world anew.

    WORLD_SIZE=3 RANK=0 TEMP_DIR=.. python torch_suite.py BACKEND FOLDER [TEST..]

Each rank writes the outcome of each test to ``FOLDER/RANK.json``: empty, ``skipped: ..`` or a
traceback. Torch starts new processes for each test, which takes most of the time.
"""

# mypy: disable-error-code="import-untyped,import-not-found,misc,unused-ignore,no-untyped-call"

import faulthandler
import json
import os
import sys
import time
import traceback
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from torch.testing._internal import common_distributed

import olaf.torch

dist: Any = torch.distributed

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
TIMEOUT = timedelta(seconds=15)
LONGEST_S = 90
"""A test that takes longer ends the rank, and names where it stood."""

# The tests know the names of torch's own backends alone. They are to do what they do with gloo.
os.environ["BACKEND"] = "gloo"

from torch.testing._internal.distributed import distributed_test  # noqa: E402

EXITS = {skip.exit_code: skip.message for skip in common_distributed.TEST_SKIPS.values()}


class Suite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """Torch's tests of a backend."""

    def setUp(self) -> None:
        """Nothing: the ranks are there."""

    def tearDown(self) -> None:
        """Nothing: they stay."""

    @classmethod
    def _barrier(cls, wait_for: int | None = None, timeout: float = 20) -> None:
        """A meeting without a collective. Torch's own counts the process ids of all tests."""
        cls.meetings = getattr(cls, "meetings", 0) + 1
        _meet(f"meeting/{cls.meetings}", wait_for or dist.get_world_size(), timeout)


def _meet(key: str, ranks: int, timeout_s: float) -> None:
    store = dist.distributed_c10d._get_default_store()
    store.add(key, 1)
    until = time.monotonic() + timeout_s
    while int(store.add(key, 0)) < ranks:
        if time.monotonic() > until:
            raise RuntimeError(f"not all ranks have come within {timeout_s} s")
        time.sleep(0.01)


def names() -> list[str]:
    return list(unittest.TestLoader().getTestCaseNames(Suite))


def outcome(name: str, backend: str, folder: Path) -> str:
    """Run a test in a world of its own."""
    Suite.meetings = 0
    os.environ["OLAF_JOB"] = str(1 + names().index(name))
    suite = Suite(name)
    suite.rank, suite.file_name = RANK, str(folder / f"{name}.store")
    faulthandler.dump_traceback_later(LONGEST_S, exit=True)
    try:
        dist.init_process_group(
            backend,
            init_method=f"file://{suite.file_name}",
            world_size=SIZE,
            rank=RANK,
            timeout=TIMEOUT,
        )
        # As in a process that has just begun: some tests compare random values of two ranks.
        torch.manual_seed(0)
        try:
            getattr(suite, name)()
        finally:
            # Those that run longer must not find this rank gone.
            _meet("ended", SIZE, TIMEOUT.total_seconds())
    except SystemExit as exit_:
        return f"skipped: {EXITS.get(int(exit_.code or 0), exit_.code)}"
    except unittest.SkipTest as skip:
        return f"skipped: {skip}"
    except BaseException:
        return traceback.format_exc()
    finally:
        faulthandler.cancel_dump_traceback_later()
        if dist.is_initialized():
            dist.destroy_process_group()
    return ""


def main(backend: str, folder: Path, chosen: list[str]) -> None:
    # What the tests print is more than a pipe holds that nobody reads.
    with (folder / f"{RANK}.log").open("w") as log:
        for stream in (1, 2):
            os.dup2(log.fileno(), stream)
    outcomes: dict[str, str] = {}
    for name in chosen or names():
        outcomes[name] = "ended the process"
        (folder / f"{RANK}.json").write_text(json.dumps(outcomes, indent=1))
        outcomes[name] = outcome(name, backend, folder)
        (folder / f"{RANK}.json").write_text(json.dumps(outcomes, indent=1))


if __name__ == "__main__":
    assert olaf.torch  # the import registers the backend
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
