"""The flight recorder of the backend: each group is a job, and each call has its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import olaf
from summing import PATIENCE_S, ranks_of, sum_switch

pytestmark = [pytest.mark.torch, pytest.mark.timeout(150)]

PROGRAM = Path(__file__).parent / "programs" / "flight.py"
RANKS = 3


def test_sums_in_another_order_are_shown_with_their_lines(tmp_path: Path) -> None:
    recorded = {"OLAF_FLIGHT": str(tmp_path), "OLAF_CHECK": "1"}
    with (
        sum_switch() as switch,
        ranks_of(PROGRAM, ranks=RANKS, switch=switch.address, **recorded) as ranks,
    ):
        for rank in ranks:
            _, said = rank.communicate(timeout=PATIENCE_S)
            assert rank.returncode == 0, said
    ran = olaf("flight", str(tmp_path), "--json")
    assert ran.returncode == 1, ran.stderr
    world, pair = json.loads(ran.stdout)["jobs"]
    assert (world["job"], world["workers"], world["absent"], world["stale"]) == (1, RANKS, [], [])
    assert world["difference"]["number"] == 3
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    for of_rank in world["difference"]["calls"]:
        file, _, line = of_rank["place"].partition(":")
        assert file == PROGRAM.name
        tensor = "biases" if of_rank["ranks"] == [0] else "weights"
        assert lines[int(line) - 1].strip() == f"dist.all_reduce({tensor})"
    assert (pair["workers"], pair["good"]) == (2, True)
    said = olaf("flight", str(tmp_path), "--no-ask").stdout
    assert "broadcast(root=0) of float32[6]" in said
    assert "all_reduce(max) of float32[6]" in said
