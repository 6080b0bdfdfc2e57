"""Environments and networks of the user's own, in the folder where the user types the command."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from olaf.checkpoint import load

DOT = '''
"""A dot appears left or right (-1 or 1) and wants the action of its side: ten times an episode."""
import gymnasium
import numpy as np
from helper import SIDES


class Dot(gymnasium.Env):
    def __init__(self):
        self.observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.turn = 0
        return self.look(), {}

    def look(self):
        self.side = int(self.np_random.integers(SIDES))
        return np.array([2 * self.side - 1], np.float32)

    def step(self, action):
        self.turn += 1
        reward = float(action == self.side)
        return self.look(), reward, self.turn == 10, False, {}


class Picture(Dot):
    """The same dot as a bright half of an image of 6 x 8 pixels."""

    def __init__(self):
        super().__init__()
        self.observation_space = gymnasium.spaces.Box(0, 255, (6, 8, 1), np.uint8)

    def look(self):
        image = np.zeros((6, 8, 1), np.uint8)
        side = int(super().look()[0] > 0)
        image[:, 4 * side : 4 * side + 4] = 255
        return image


gymnasium.register("lab/Dot-v0", Dot, reward_threshold=9.5)
'''

NETWORK = """
import torch
from torch import nn


class Convolutional(nn.Module):
    def __init__(self, shape, actions):
        super().__init__()
        height, width, channels = shape
        self.eye = nn.Sequential(nn.Conv2d(channels, 4, 3, stride=2), nn.Tanh(), nn.Flatten())
        with torch.no_grad():
            size = self.eye(torch.zeros(1, channels, height, width)).shape[1]
        self.policy, self.value = nn.Linear(size, actions), nn.Linear(size, 1)

    def forward(self, images):
        seen = self.eye(images.permute(0, 3, 1, 2) / 255)
        return self.policy(seen), self.value(seen)


def network(observations, actions, continuous):
    return Convolutional(observations, actions)
"""

QUICK = [
    "--workers=1",
    "--json",
    "--set=learner.environments=2",
    "--set=learner.steps_per_update=200",
    "--set=learner.learning_rate=1e-2",
    "--set=train.every_s=0.1",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(DOT)
    (tmp_path / "helper.py").write_text("SIDES = 2\n")
    (tmp_path / "nets.py").write_text(NETWORK)
    (tmp_path / "broken.py").write_text("import helper\nvalue = 1 / 0\n")
    (tmp_path / "needy.py").write_text("import no_such_package\n")
    (tmp_path / "wrong.py").write_text("def Thing():\n    return 5\n\ndef Bad():\n    int('x')\n")
    return tmp_path


def olaf(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """The program that a user types: its own folder, not the current one, is on Python's path."""
    program = Path(sys.executable).with_name("olaf")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(program), *argv],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def result_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.slow
def test_an_environment_in_the_current_folder_is_found_and_solved_by_one_worker(
    folder: Path,
) -> None:
    """`--workers 1` needs no second option, and `solved` is the threshold that the id declares."""
    result = result_of(olaf(folder, "train", "--env=mine:lab/Dot-v0", *QUICK))
    assert result["outcome"] == "reached"
    assert result["reward"]["mean"] >= 9.5


@pytest.mark.slow
def test_a_class_needs_no_registration(folder: Path) -> None:
    result = result_of(olaf(folder, "train", "--env=mine:Dot", "--until-reward=9", *QUICK))
    assert result["outcome"] == "reached"


@pytest.mark.torch
@pytest.mark.skipif(
    importlib.util.find_spec("torchrl") is None and not os.environ.get("OLAF_REQUIRE_TORCH"),
    reason="torch not installed",
)
@pytest.mark.timeout(300)  # most of it is importing torch, twice
def test_a_convolutional_network_of_ones_own_learns_from_images(folder: Path) -> None:
    network = ["--learner=torch", "--set=learner.module=nets:network"]
    argv = ("train", "--env=mine:Picture", "--until-reward=9.2", *network)
    result = result_of(olaf(folder, *argv, *QUICK))
    assert result["outcome"] == "reached"
    # The kernel has kept its four axes on the way through switch and server.
    assert load(folder / "runs/latest/model.npz").arrays["eye.0.weight"].shape == (4, 1, 3, 3)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--env=nowhere:Dot-v0", ["no module 'nowhere'", "{folder}", "PYTHONPATH"]),
        ("--env=mine.py:Dot", ["without '.py'", "'mine'"]),
        ("--env=mine:Dott", ["has no class or function 'Dott'", "did you mean Dot?"]),
        ("--env=broken:Dot-v0", ["ZeroDivisionError", "broken.py:2"]),
        ("--env=needy:Dot-v0", ["'no_such_package'", "needy.py:1"]),
        ("--env=wrong:Thing", ["gave int, not a gymnasium.Env"]),
        ("--env=wrong:Bad", ["cannot be made: ValueError", "wrong.py:5"]),
        ("--env=mine:Picture", ["images of shape (6, 8, 1)", "--learner torch"]),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_place(
    folder: Path, option: str, says: list[str]
) -> None:
    done = olaf(folder, "train", option, *QUICK)
    assert done.returncode == 2, done.stderr
    message = " ".join(done.stderr.replace("\n", " ").split())
    for words in says:
        assert words.format(folder=folder) in message
    assert "Traceback" not in message


def test_the_default_of_clusters_follows_workers_and_leaves(folder: Path) -> None:
    def clusters(*argv: str) -> int:
        printed = olaf(folder, "train", *argv, "--print-config").stdout
        # A comment: the number follows the workers as long as nobody gives one.
        found = re.search(r"^# clusters = (\d+)$", printed, re.MULTILINE)
        assert found is not None, printed
        return int(found[1])

    assert clusters("--workers=1") == 1
    assert clusters("--leaves=4") == 4
    assert clusters() == 2
