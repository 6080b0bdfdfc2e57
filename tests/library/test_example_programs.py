"""What an example learns from: steps that its environments took, and what a time limit cut off.

gymnasium's vector environments reset in a step of their own unless told otherwise: the action of
that row is ignored, and a loop that does not know learns from it.
"""

from __future__ import annotations

import difflib
import importlib
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import olaf

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
STRANGER = EXAMPLES / "stranger"
VECTORS = [
    str(file.relative_to(EXAMPLES))
    for file in sorted(EXAMPLES.rglob("*.py"))
    if "gym.vector" in file.read_text(encoding="utf-8")
]
TURNS = 2


class Short(gymnasium.Env[Any, Any]):
    """CartPole's spaces; pays nothing; over after a few steps, in one of two ways."""

    observation_space = gymnasium.spaces.Box(-9.0, 9.0, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    steps_taken = closed = 0
    seeds: ClassVar[list[int]] = []
    cut = False

    def reset(self, *, seed: int | None = None, **_: Any) -> tuple[Any, dict[str, Any]]:
        self.age = 0
        if seed is not None:
            self.seeds.append(seed)
        return np.zeros(4, np.float32), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        type(self).steps_taken += 1
        self.age += 1
        over = self.age == 7
        state = np.full(4, 9.0 if over else 1.0, np.float32)
        return state, 0.0, over and not self.cut, over and self.cut, {}

    def close(self) -> None:
        type(self).closed += 1


Play = Callable[..., tuple[dict[str, Any], type[Short]]]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Play:
    """Run a few turns of an example in such environments; its variables, and their class."""
    pytest.importorskip("torch")

    def run(name: str, *, cut: bool = False, seed: int = 1) -> tuple[dict[str, Any], type[Short]]:
        kind = type("Kind", (Short,), {"cut": cut, "steps_taken": 0, "closed": 0, "seeds": []})
        monkeypatch.setattr(gymnasium, "make", lambda *_, **__: kind())
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        # The example itself, for two turns: the budget of steps ends within the second.
        text, found = re.subn(r"\b[23]00_000\b", "600", text)
        assert found == 1
        file = tmp_path / "example.py"
        file.write_text(text, encoding="utf-8")
        with olaf.local() as job:
            order = [job.address, str(seed)] if "argv[2])" in text else [str(seed), job.address]
            monkeypatch.setattr("sys.argv", [str(file), *order])
            return runpy.run_path(str(file)), kind

    return run


def last_turn(names: dict[str, Any]) -> tuple[Any, Any]:
    """What the last turn counts as rewards, and where an episode was over."""
    if "overs" in names:
        return names["rewards"], names["overs"].bool()
    import torch

    rewards, overs = (torch.stack([row[column] for row in names["steps"]]) for column in (4, 5))
    return rewards, overs.bool()


def test_there_are_examples_with_vector_environments() -> None:
    assert {"cleanrl_ppo.py", "stranger/ppo_before.py", "stranger/ppo_with_olaf.py"} <= {*VECTORS}


@pytest.mark.torch
@pytest.mark.parametrize("name", VECTORS)
def test_every_row_is_a_step_that_an_environment_took(name: str, play: Play) -> None:
    names, kind = play(name, cut=False)
    rewards, overs = last_turn(names)
    rows = TURNS * names["ENVS"] * names["STEPS"]
    assert kind.steps_taken == rows
    assert kind.closed == names["ENVS"]
    assert overs.sum() > 0
    assert not rewards.any(), "an episode that ended has no more rewards"


@pytest.mark.torch
@pytest.mark.parametrize("name", VECTORS)
def test_a_time_limit_adds_the_worth_of_the_state_that_it_cut_off(name: str, play: Play) -> None:
    names, _ = play(name, cut=True)
    rewards, overs = last_turn(names)
    assert overs.sum() > 0
    assert (rewards[overs] != 0).all()
    assert not rewards[~overs].any()


@pytest.mark.torch
@pytest.mark.parametrize("name", VECTORS)
def test_no_two_environments_of_two_workers_have_one_seed(name: str, play: Play) -> None:
    seeds = [seed for worker in (1, 2) for seed in play(name, seed=worker)[1].seeds]
    assert len(seeds) >= 8
    assert len(seeds) == len({*seeds})


def test_the_example_of_an_environment_is_one_and_learns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    mine = importlib.import_module("mine")
    check_env(mine.Dot(), skip_render_check=True)
    command = "train --env mine:Dot --workers 1 --until-reward 0.5 --time-limit 60s --out"
    ran = subprocess.run(
        [sys.executable, "-m", "olaf", *command.split(), str(tmp_path / "run")],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_page_shows_the_difference_of_the_two_files() -> None:
    page = (ROOT / "docs/training.md").read_text(encoding="utf-8")
    before, after = (
        (STRANGER / f"ppo_{name}.py").read_text(encoding="utf-8").splitlines()
        for name in ("before", "with_olaf")
    )
    shown = re.search(r"^```diff\n(@@.*?)\n```$", page, re.MULTILINE | re.DOTALL)
    assert shown is not None
    difference = list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]
    assert shown[1].splitlines() == difference
    assert f"one file of {len(before)} lines" in page
