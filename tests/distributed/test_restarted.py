"""torchrun restarts the ranks after one was killed, and the same switch sums for them again."""

from __future__ import annotations

from pathlib import Path

import pytest
from summing import outcomes, sum_switch, torchrun

pytestmark = [pytest.mark.torch, pytest.mark.timeout(150)]

PROGRAM = Path(__file__).parent / "programs" / "restarted.py"
RANKS, STEPS, KILLED_AT = 3, 12, 5


def test_the_ranks_go_on_after_one_was_killed(tmp_path: Path) -> None:
    with sum_switch() as switch:
        ran = torchrun(
            PROGRAM,
            str(tmp_path),
            ranks=RANKS,
            switch=switch.address,
            torchrun_options=("--max-restarts", "2"),
        )
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = outcomes(tmp_path, RANKS)
    assert {of_rank["life"] for of_rank in told} == {1}, "one restart was enough"
    assert {of_rank["began"] for of_rank in told} == {KILLED_AT}
    # 0 + 1 + 2 + .. of all ranks and steps.
    assert {of_rank["total"] for of_rank in told} == {sum(range(RANKS * STEPS))}
    # Rank 0 of each life says where it sums, and what to expect.
    assert ran.stderr.count(f"olaf: 3 ranks sum through the switch {switch.address}") == 2
    assert ran.stderr.count("olaf: how long 25 MiB") == 2
