"""PyTorch's own distributed tests pass with the backend `olaf` where they pass with gloo.

`make test-torch-peers` runs this. `torch_exceptions.csv` has the tests that need not, each with its
reason. A test that passes must not stand there.
"""

from __future__ import annotations

import csv
import importlib.util
import os
from pathlib import Path

import pytest
from summing import outcomes, ranks_of, sum_switch

pytestmark = [
    pytest.mark.torch,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        not os.environ.get("OLAF_TORCH_PEERS"),
        reason="several minutes: `make test-torch-peers` runs PyTorch's own tests",
    ),
]

HERE = Path(__file__).parent
PROGRAM = HERE / "programs" / "torch_suite.py"
EXCEPTIONS = HERE / "torch_exceptions.csv"
RANKS = 3
LEAST = 90
"""Tests that gloo passes at least. With fewer the suite itself did not run."""


def passed(backend: str, folder: Path) -> dict[str, bool]:
    """Whether each test passed at every rank. Those that skip are left out."""
    folder.mkdir()
    with (
        sum_switch("--set", "switch.reduce.jobs=64") as switch,
        ranks_of(
            *(PROGRAM, backend, str(folder)),
            ranks=RANKS,
            switch=switch.address,
            TEMP_DIR=str(folder),
        ) as processes,
    ):
        for rank, process in enumerate(processes):
            assert process.wait(800) == 0, (folder / f"{rank}.log").read_text()[-3000:]
    every = outcomes(folder, RANKS)
    ran = [name for name in every[0] if not any(of[name].startswith("skipped") for of in every)]
    return {name: not any(of[name] for of in every) for name in ran}


def test_what_passes_with_gloo_passes_with_olaf(tmp_path: Path) -> None:
    assert importlib.util.find_spec("expecttest"), "torch's tests import it"
    gloo, olaf = passed("gloo", tmp_path / "gloo"), passed("olaf", tmp_path / "olaf")
    assert sum(gloo.values()) >= LEAST
    with EXCEPTIONS.open(encoding="utf-8") as file:
        reasons = {row["test"]: row["reason"] for row in csv.DictReader(file)}
    assert all(reasons.values())
    failed = {name for name, passes in gloo.items() if passes and not olaf.get(name, False)}
    print(
        f"gloo passes {sum(gloo.values())}, olaf {sum(olaf[name] for name in gloo if gloo[name])}"
    )
    assert failed == set(reasons)
