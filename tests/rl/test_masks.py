"""Masks of allowed actions, from ``info`` or from the environment's method."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from olaf.rl.collecting import Collector
from olaf.rl.environments import FaultyEnvironmentError
from olaf.rl.learner import LearnerConfig
from olaf.rl.making import make_learner
from olaf.runs.evaluation import play


class Masked(gym.Env[Any, Any]):
    """Allows one action in each state: the number of steps so far, mod 3."""

    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Discrete(3)
    steps = 0

    def mask(self) -> Any:
        return np.arange(3) == self.steps % 3

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.steps = 0
        return np.zeros(1, np.float32), {"action_mask": self.mask().astype(np.int8)}

    def step(self, action: Any) -> Any:
        assert action == self.steps % 3
        self.steps += 1
        return np.zeros(1, np.float32), 1.0, False, self.steps == 4, {"action_mask": self.mask()}


class ByMethod(Masked):
    def reset(self, **_: Any) -> Any:
        return super().reset()[0], {}

    def step(self, action: Any) -> Any:
        return *super().step(action)[:4], {}

    def action_masks(self) -> Any:
        return self.mask()


class Short(Masked):
    def mask(self) -> Any:
        return np.ones(2)


class Nothing(Masked):
    def mask(self) -> Any:
        return np.zeros(3)


def allowed(turn: int, seen: Any, masks: Any) -> list[int]:
    assert masks.shape == (2, 3)
    return [int(row.argmax()) for row in masks]


@pytest.mark.parametrize("kind", [Masked, ByMethod])
def test_masks_of_the_present_states_reach_the_policy_and_the_rollout(kind: type[Masked]) -> None:
    collector = Collector(f"{__name__}:{kind.__name__}", 2, [0, 1])
    rollout = collector.collect(allowed, 6)
    assert rollout.masks is not None
    assert rollout.masks.argmax(axis=2).tolist() == [[0, 0], [1, 1], [2, 2], [0, 0], [0, 0], [1, 1]]
    assert rollout.masks.sum() == 12
    following = collector.collect(allowed, 1).masks
    assert following is not None
    assert following.argmax(axis=2).tolist() == [[2, 2]]


@pytest.mark.parametrize(("kind", "what"), [(Short, "has 2 flags"), (Nothing, "allows no action")])
def test_a_mask_that_fits_no_action_is_refused(kind: type[Masked], what: str) -> None:
    with pytest.raises(FaultyEnvironmentError, match=f"reset: action_mask {what}"):
        Collector(f"{__name__}:{kind.__name__}", 1, [0])


@pytest.mark.parametrize("is_sampled", [False, True])
def test_an_evaluation_takes_only_allowed_actions(is_sampled: bool) -> None:
    name = f"{__name__}:Masked"  # whose step asserts that the action was allowed
    learner = make_learner(LearnerConfig(environment=name, environments=1))
    played = play(learner, name, episodes=20, seed=0, is_sampled=is_sampled)
    assert [episode.steps for episode in played] == [4] * 20


def test_environments_without_masks_have_none() -> None:
    assert Collector("CartPole-v1", 1, [0]).collect(lambda *_: [0], 3).masks is None
