"""Runs with large observations: trained, evaluated, exported and resumed with their moments."""

from pathlib import Path

import numpy as np
import pytest
from small_runs import Olaf, apart

from olaf import checkpoint

LARGE = """
import gymnasium as gym
import numpy as np


class Large(gym.ObservationWrapper):
    def __init__(self):
        super().__init__(gym.make("CartPole-v1"))
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)

    def observation(self, observation):
        return 1000 * observation


gym.register("Large-v0", Large)
"""
TRAIN = ("train", "--env=olaf_large:Large-v0", "--set=learner.steps_per_update=200")


def moments(folder: Path) -> np.ndarray:
    arrays = checkpoint.load(folder / "model.npz").arrays
    assert arrays["rewards.moments"].shape == (3,)
    return arrays["observations.moments"]


def test_moments_go_on_when_a_run_is_resumed_and_play_with_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "olaf_large.py").write_text(LARGE)
    olaf = Olaf(tmp_path)
    limits = ("--until-reward=off", "--out=run", "--local")
    said = apart(tmp_path, *TRAIN, *limits, "--updates=20").stdout
    assert "observations" in said
    assert "normalised by the moments" in said
    first = moments(tmp_path / "run")
    assert first[:, 4].min() > 10  # the rough spread of the largest features was measured
    assert olaf.json("evaluate", "run", "--episodes=3")["episodes"] == 3
    file = str(tmp_path / "run" / "model.npz")
    alone = olaf.json("evaluate", file, "--env=olaf_large:Large-v0", "--episodes=3")
    assert alone["mean"] == olaf.json("evaluate", "run", "--episodes=3")["mean"]
    assert "difference" in olaf("export", "run", "--to=npz").stdout
    apart(tmp_path, "train", "--resume=run", "--updates=40", "--until-reward=off")
    again = moments(tmp_path / "run")
    assert (again[:, 3:] == first[:, 3:]).all()
    np.testing.assert_allclose(again[:, 0], 2 * first[:, 0], rtol=1e-3)
    said = apart(tmp_path, "train", "--resume=run", "--set=learner.normalise=off", code=2).stderr
    assert "learner.normalise cannot change" in said


@pytest.mark.slow
def test_features_of_a_thousand_are_learnt_over_the_network(tmp_path: Path) -> None:
    (tmp_path / "olaf_large.py").write_text(LARGE)
    limits = ("--until-reward=200", "--updates=1500", "--workers=2", "--out=run")
    done = apart(tmp_path, *TRAIN, *limits)
    assert "reached" in done.stdout
    assert moments(tmp_path / "run")[:, 0].min() > 0
