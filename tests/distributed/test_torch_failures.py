"""A rank or the switch dies: an error with a name within seconds, or the fall-back."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from summing import SumSwitch, outcomes, ranks_of, sum_switch
from waiting import until

pytestmark = [pytest.mark.torch, pytest.mark.timeout(150)]

PROGRAM = Path(__file__).parent / "programs" / "steps.py"
RANKS = 3
MANY = "1000000"
"""Steps that nobody reaches before the failure."""
SECONDS = 30.0
"""Most time from the failure to the error at all ranks, on a busy machine."""


@contextmanager
def running(
    folder: Path, *arguments: str, **environment: str
) -> Iterator[tuple[SumSwitch, list[subprocess.Popen[str]]]]:
    """A switch, and the ranks that run the steps."""
    with sum_switch() as switch:
        command = (str(folder), *arguments)
        with ranks_of(
            PROGRAM, *command, ranks=RANKS, switch=switch.address, **environment
        ) as processes:
            yield switch, processes


def ended(processes: list[subprocess.Popen[str]]) -> list[str]:
    """What the ranks wrote to standard error until their end."""
    return [process.communicate(timeout=SECONDS * 2)[1] for process in processes]


def begun(folder: Path) -> None:
    """Wait until every rank is in the middle of its steps."""
    until(lambda: len(list(folder.glob("*.begun"))) == RANKS, "the ranks to begin")


@pytest.mark.parametrize("how", [(), ("--ddp",)], ids=["sums", "training"])
def test_a_rank_that_dies_is_named_by_the_others(tmp_path: Path, how: tuple[str, ...]) -> None:
    with running(tmp_path, MANY, "--stop-after", "20", *how) as (_, processes):
        ended(processes)
    for rank, said in enumerate(outcomes(tmp_path, RANKS - 1)):
        assert said["steps"] == 20, (rank, said)
        assert f"rank {RANKS - 1}" in said["error"], (rank, said)
        assert said["ended_at"] - said["began_at"] < SECONDS


def test_a_switch_that_dies_is_named_by_all_ranks(tmp_path: Path) -> None:
    with running(tmp_path, MANY) as (switch, processes):
        begun(tmp_path)
        switch.kill()
        ended(processes)
    for said in outcomes(tmp_path, RANKS):
        assert said["kind"] == "DistBackendError"
        assert switch.address in said["error"]


def test_with_a_fall_back_the_ranks_go_on_over_gloo(tmp_path: Path) -> None:
    with running(tmp_path, "400", OLAF_FALL_BACK="gloo") as (switch, processes):
        begun(tmp_path)
        switch.kill()
        errors = ended(processes)
    went_on(outcomes(tmp_path, RANKS), errors, steps=400)


def test_a_rank_that_lost_a_result_takes_the_one_that_the_others_have(tmp_path: Path) -> None:
    fall_back = {"OLAF_FALL_BACK": "gloo"}
    with running(tmp_path, "12", "--fails-after", "7", **fall_back) as (_, processes):
        errors = ended(processes)
    went_on(outcomes(tmp_path, RANKS), errors, steps=12)


def test_the_fall_back_names_a_rank_that_is_gone(tmp_path: Path) -> None:
    fall_back = {"OLAF_FALL_BACK": "gloo"}
    with running(tmp_path, MANY, "--stop-after", "20", **fall_back) as (_, processes):
        ended(processes)
    for said in outcomes(tmp_path, RANKS - 1):
        assert f"rank {RANKS - 1}" in said["error"]


def went_on(said: list[dict[str, Any]], errors: list[str], steps: int) -> None:
    """All ranks did all steps with the same results, and each said once that it fell back."""
    assert [of_rank["error"] for of_rank in said] == [""] * RANKS
    assert [of_rank["steps"] for of_rank in said] == [steps] * RANKS
    assert len({of_rank["digest"] for of_rank in said}) == 1
    for error in errors:
        assert error.count("THE SUM THROUGH THE SWITCH") == 1, error[-2000:]
