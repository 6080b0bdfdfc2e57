"""Jobs for the integrations' tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import olaf

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"


@pytest.fixture
def job() -> Iterator[olaf.LocalJob]:
    """A switch and a server, processes of their own."""
    with olaf.local() as job:
        yield job


@pytest.fixture
def train(job: olaf.LocalJob) -> Callable[..., list[float]]:
    """Run an example as several workers of a job at once; return the mean rewards they print."""

    def run(example: str, *more: str, workers: int = 2, timeout_s: float = 280) -> list[float]:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        running = [
            subprocess.Popen(
                [sys.executable, str(EXAMPLES / example), job.address, str(seed), *more],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
            )
            for seed in range(1, workers + 1)
        ]
        try:
            said = [worker.communicate(timeout=timeout_s) for worker in running]
        finally:
            for worker in running:
                worker.kill()
        for worker, (_, error) in zip(running, said, strict=True):
            assert worker.returncode == 0, error[-3000:]
        found = [re.search(r"mean reward (\S+) after", out) for out, _ in said]
        return [float(match[1]) if match else float("nan") for match in found]

    return run
