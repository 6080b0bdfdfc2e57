"""The backend `olaf` under torchrun: what torch's own tests ask of a backend's collectives."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from summing import outcomes, sum_switch, torchrun

pytestmark = [pytest.mark.torch, pytest.mark.timeout(200), pytest.mark.xdist_group("collectives")]

PROGRAMS = Path(__file__).parent / "programs"
RANKS = 4
CHECKS = [
    (program, check)
    for program in ("collectives", "parts_of_torch")
    for check in re.findall(
        r"^@check\ndef (\w+)", (PROGRAMS / f"{program}.py").read_text("utf-8"), re.MULTILINE
    )
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[dict[str, str]]]:
    """The outcome of every check of a program at every rank: empty, or a traceback."""

    @functools.cache
    def of(program: str) -> list[dict[str, str]]:
        folder = tmp_path_factory.mktemp(program)
        with sum_switch() as switch:
            ran = torchrun(
                PROGRAMS / f"{program}.py", str(folder), ranks=RANKS, switch=switch.address
            )
        assert len(list(folder.glob("*.json"))) == RANKS, ran.stderr[-3000:]
        return outcomes(folder, RANKS)

    return of


@pytest.mark.parametrize(("program", "check"), CHECKS)
def test_collective(
    program: str, check: str, results: Callable[[str], list[dict[str, str]]]
) -> None:
    for rank, of_rank in enumerate(results(program)):
        assert of_rank.get(check, "did not run") == "", f"rank {rank}: {of_rank.get(check)}"
