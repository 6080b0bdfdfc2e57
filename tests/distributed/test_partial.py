"""A sum that lacks a rank: an error, or by option the mean of those that were in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from summing import outcomes, ranks_of, sum_switch

pytestmark = [pytest.mark.torch, pytest.mark.timeout(150)]

PROGRAM = Path(__file__).parent / "programs" / "straggler.py"
RANKS = 3


def with_a_straggler(folder: Path, **environment: str) -> list[dict[str, Any]]:
    """What each rank got, with a deadline that the last rank misses."""
    deadline = {"OLAF_DEADLINE_S": "0.3", **environment}
    with (
        sum_switch() as switch,
        ranks_of(PROGRAM, str(folder), ranks=RANKS, switch=switch.address, **deadline) as processes,
    ):
        for process in processes:
            _, error = process.communicate(timeout=100)
            assert process.returncode == 0, error[-3000:]
    return outcomes(folder, RANKS)


def test_without_the_option_a_partial_sum_is_an_error_at_every_rank(tmp_path: Path) -> None:
    for said in with_a_straggler(tmp_path):
        assert said["first"] == [RANKS] * 5
        assert "2 of the 3" in said["error"]


def test_by_option_every_rank_takes_the_mean_of_those_in_time(tmp_path: Path) -> None:
    for said in with_a_straggler(tmp_path, OLAF_PARTIAL="1"):
        assert said["error"] == ""
        # Ranks 0 and 1 have 1 and 2: their mean, times three ranks.
        assert said["second"] == [4.5] * 5
