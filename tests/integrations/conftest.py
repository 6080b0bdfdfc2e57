"""Jobs for the integrations' tests, and which of their frameworks are here.

`make test-torch` installs torch, Stable-Baselines3 and Lightning and insists on them
(OLAF_REQUIRE_TORCH); `make test-ray` does the same for RLlib (OLAF_REQUIRE_RAY).
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

import olaf

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as a worker's process has it; read by torch

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
WANTED = {
    "torch": (("torch", "stable_baselines3", "lightning"), "OLAF_REQUIRE_TORCH"),
    "ray": (("ray", "tree", "torch"), "OLAF_REQUIRE_RAY"),
}


def missing(marker: str) -> list[str]:
    return [name for name in WANTED[marker][0] if importlib.util.find_spec(name) is None]


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    for item in items:
        if HERE not in item.path.parents:
            continue
        for marker, (_, required) in WANTED.items():
            if item.get_closest_marker(marker) and missing(marker):
                reason = f"{' and '.join(missing(marker))} not installed"
                if os.environ.get(required):
                    raise pytest.UsageError(f"{required} is set, but {reason}")
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def job() -> Iterator[olaf.LocalJob]:
    """A switch and a server, processes of their own."""
    with olaf.local() as job:
        yield job


@pytest.fixture
def train(job: olaf.LocalJob) -> Callable[..., list[float]]:
    """Run an example as so many workers of the job at once; the mean rewards that they print."""

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
