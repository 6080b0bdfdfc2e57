"""The single-file PPO through a real switch and server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.torch
@pytest.mark.timeout(300)
def test_two_workers_of_the_single_file_ppo_reach_200(train: Callable[..., list[float]]) -> None:
    assert min(train("cleanrl_ppo.py")) >= 200


@pytest.mark.parametrize("name", sorted(file.name for file in EXAMPLES.glob("*.py")))
def test_an_example_is_read_in_a_minute(name: str) -> None:
    assert len((EXAMPLES / name).read_text().splitlines()) < 66
