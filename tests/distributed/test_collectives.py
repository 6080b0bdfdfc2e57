"""The backend `olaf` under torchrun: what torch's own tests ask of a backend's collectives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from summing import outcomes, sum_switch, torchrun

pytestmark = [pytest.mark.torch, pytest.mark.timeout(200), pytest.mark.xdist_group("collectives")]

PROGRAM = Path(__file__).parent / "programs" / "collectives.py"
RANKS = 4
CHECKS = re.findall(r"^@check\ndef (\w+)", PROGRAM.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """The outcome of every check at every rank: empty, or a traceback."""
    folder = tmp_path_factory.mktemp("collectives")
    with sum_switch() as switch:
        ran = torchrun(PROGRAM, str(folder), ranks=RANKS, switch=switch.address)
    assert len(list(folder.iterdir())) == RANKS, ran.stderr[-3000:]
    return outcomes(folder, RANKS)


@pytest.mark.parametrize("check", CHECKS)
def test_collective(check: str, results: list[dict[str, str]]) -> None:
    for rank, of_rank in enumerate(results):
        assert of_rank.get(check, "did not run") == "", f"rank {rank}: {of_rank.get(check)}"
