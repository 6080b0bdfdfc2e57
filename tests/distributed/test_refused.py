"""A refusal is an answer with its reason: calls that differ, a switch that has no room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from summing import outcomes, ranks_of, sum_switch

pytestmark = [pytest.mark.torch, pytest.mark.timeout(150)]

PROGRAM = Path(__file__).parent / "programs" / "refused.py"
RANKS = 2


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("refused")
    with (
        sum_switch("--set", "switch.reduce.jobs=2") as switch,
        ranks_of(
            *(PROGRAM, str(folder)),
            ranks=RANKS,
            switch=switch.address,
            TORCH_DISTRIBUTED_DEBUG="DETAIL",
        ) as processes,
    ):
        for process in processes:
            _, error = process.communicate(timeout=100)
            assert process.returncode == 0, error[-3000:]
    return outcomes(folder, RANKS)


@pytest.mark.parametrize(
    ("call", "each"),
    [
        ("operation", ("all_reduce (max) of float32 (3,)", "all_reduce (sum) of float32 (3,)")),
        ("shape", ("all_reduce (sum) of float32 (3,)", "all_reduce (sum) of float32 (4,)")),
        (
            "root",
            (
                "broadcast (from rank 0) of float32 (3,)",
                "broadcast (from rank 1) of float32 (3,)",
            ),
        ),
    ],
)
def test_detail_names_the_ranks_that_differ(
    call: str, each: tuple[str, str], said: list[dict[str, Any]]
) -> None:
    for of_rank in said:
        assert of_rank[call].startswith("DistBackendError: olaf: the ranks differ in call")
        for rank, description in enumerate(each):
            assert f"rank {rank}: {description}" in of_rank[call]
        assert of_rank["equal"] == ""


def test_a_group_without_room_is_told_how_to_make_room(said: list[dict[str, Any]]) -> None:
    for of_rank in said:
        assert of_rank["first group"] == ""
        for refused in ("second group", "late group", "late group again"):
            assert "--set switch.reduce.jobs=64" in of_rank[refused]
