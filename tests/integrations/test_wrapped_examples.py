"""Programs of other styles with a wrapped optimizer, as their users start them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import environ
from pathlib import Path

import pytest

pytest.importorskip("torch")

from sum_threads import switch_of

import olaf

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]

EXAMPLES = Path(__file__).parents[2] / "examples"
ENVIRONMENT = {**environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


@contextmanager
def network(mode: str) -> Iterator[str]:
    """The address of the switch that a mode needs."""
    if mode == "push":
        with olaf.local() as job:
            yield job.address
        return
    with switch_of("iswitch" if mode == "pipeline" else "reduce") as switch:
        yield switch.address


def run(example: str, mode: str, *argv: str) -> list[str]:
    """What two workers printed last."""
    with network(mode) as address:
        workers = [
            subprocess.Popen(
                [sys.executable, str(EXAMPLES / example), address, str(seed), *argv],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=ENVIRONMENT,
            )
            for seed in range(2)
        ]
        try:
            said = [worker.communicate(timeout=280) for worker in workers]
        finally:
            for worker in workers:
                worker.kill()
    for worker, (_, error) in zip(workers, said, strict=True):
        assert worker.returncode == 0, error[-3000:]
    return [out.splitlines()[-1] for out, _ in said]


@pytest.mark.parametrize("mode", ["sum", "pipeline", "push"])
def test_the_single_file_a2c_learns_in_each_mode(mode: str) -> None:
    said = run("cleanrl_a2c.py", mode, mode, "60_000")
    rewards = [float(re.findall(r"mean reward (\S+) after", line)[0]) for line in said]
    assert min(rewards) > 60, said  # a policy that has learnt nothing reaches about 20
    weights = {line.split()[-1] for line in said}
    if mode != "push":
        assert len(weights) == 1, said


def test_torchrls_ppo_learns() -> None:
    pytest.importorskip("torchrl")
    said = run("torchrl_ppo.py", "sum", "6")
    rewards = [float(re.findall(r"mean reward (\S+) after", line)[0]) for line in said]
    assert min(rewards) > 40, said
