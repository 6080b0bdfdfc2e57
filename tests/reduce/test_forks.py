"""A connection belongs to its process: the copy of a forked child is inert."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from workers import switch_here

WORKER = Path(__file__).parent / "forking_worker.py"
PATIENCE_S = 60


@pytest.mark.parametrize("with_second", [False, True], ids=["one switch", "two switches"])
def test_a_child_that_exits_leaves_its_parent_in_the_job(*, with_second: bool) -> None:
    with switch_here() as switch, switch_here() as second:
        addresses = [second.address] if with_second else []
        workers = [
            subprocess.Popen(
                [sys.executable, str(WORKER), switch.address, str(rank), *addresses],
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        try:
            for worker in workers:
                output, _ = worker.communicate(timeout=PATIENCE_S)
                assert worker.returncode == 0
                answer = json.loads(output)
                assert answer["status"] == 0, "the child exits normally"
                assert answer["sums"] == [3.0, 2.0, 3.0]
                for said in answer["said"]:
                    assert f"belongs to process {worker.pid}" in said, answer
                    assert f"this is process {answer['child']}" in said
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
