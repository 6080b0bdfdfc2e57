"""Environments: their spaces for a policy, and the messages for unsuitable ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from olaf.rl import LearnerConfig, make_learner
from olaf.rl.collecting import Collector, numbers_of
from olaf.rl.environments import (
    UnusableEnvironmentError,
    describe,
    known_reward_scale,
    make_environment,
)


class Odd(gym.Env[Any, Any]):
    """Four steps of reward 1, 2, 3, 4, then cut; spaces are the test's."""

    def __init__(self, observations: Any = None, actions: Any = None) -> None:
        self.observation_space = observations or spaces.Box(-1, 1, (2,), np.float32)
        self.action_space = actions or spaces.Discrete(2)
        self.turn = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.turn = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.turn += 1
        seen = np.full(2, self.turn, np.float32)
        info = {"is_success": True, "turn": np.int64(self.turn), "name": "odd"}
        return seen, float(self.turn), False, self.turn == 4, info


@pytest.fixture(autouse=True)
def odd() -> Iterator[None]:
    made: dict[str, tuple[Any, Any]] = {
        "OlafOdd-v0": (None, None),
        "OlafSequence-v0": (spaces.Sequence(spaces.Discrete(2)), None),
        "OlafMany-v0": (None, spaces.Tuple([spaces.Discrete(2)])),
    }

    def maker(observations: Any, actions: Any) -> Any:
        return lambda **kwargs: Odd(observations, actions)

    for name, chosen in made.items():
        gym.register(name, maker(*chosen))
    yield
    for name in made:
        del gym.registry[name]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("LunarLandr-v3", "LunarLander-v3"),
        ("lunarlander-v3", "LunarLander-v3"),
        ("Pendulun-v1", "Pendulum-v1"),
    ],
)
def test_an_unknown_environment_suggests_the_near_one(name: str, near: str) -> None:
    with pytest.raises(UnusableEnvironmentError, match=f"unknown environment.*{near}"):
        make_environment(name)


def test_an_environment_like_no_other_is_told_how_to_name_its_own() -> None:
    with pytest.raises(UnusableEnvironmentError, match="module:id"):
        make_environment("zzzzqqqq")


def test_an_outdated_version_names_the_one_to_use() -> None:
    with pytest.raises(UnusableEnvironmentError, match="LunarLander-v3"):
        make_environment("LunarLander-v2")


def test_a_class_that_a_module_lacks_is_named_with_those_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lacking.py").write_text("import gymnasium\nclass Dot(gymnasium.Env): pass\n")
    with pytest.raises(UnusableEnvironmentError) as error:
        make_environment("lacking:Line")
    assert f"{tmp_path}/lacking.py has no class or function 'Line'" in str(error.value)
    assert str(error.value).endswith("it has Dot")
    with pytest.raises(UnusableEnvironmentError, match="did you mean Dot"):
        make_environment("lacking:Dott")


def test_a_missing_module_is_named() -> None:
    with pytest.raises(UnusableEnvironmentError, match="no_such_module"):
        make_environment("no_such_module:Thing-v0")


def test_unsupported_spaces_are_named() -> None:
    with pytest.raises(UnusableEnvironmentError, match=r"observation space.*Sequence"):
        make_learner(LearnerConfig(environment="OlafSequence-v0"))
    with pytest.raises(UnusableEnvironmentError, match=r"action space Tuple.*MultiBinary actions"):
        make_learner(LearnerConfig(environment="OlafMany-v0"))


def test_discrete_observations_become_one_hot() -> None:
    env = make_environment("FrozenLake-v1")
    assert describe("FrozenLake-v1", env).observation == 16
    assert float(np.sum(env.reset(seed=1)[0])) == 1.0


def test_lunar_lander_is_as_documented() -> None:
    found = describe("LunarLander-v3", make_environment("LunarLander-v3"))
    assert (found.observation, found.actions, found.continuous) == (8, 4, False)


def test_a_rollout_cuts_episodes_and_keeps_what_came_after() -> None:
    collector = Collector("OlafOdd-v0", 1, [0])
    rollout = collector.collect(lambda turn, seen, masks: [0], 6)
    assert rollout.episode_rewards == [10.0]
    assert rollout.truncated[:, 0].tolist() == [False, False, False, True, False, False]
    assert not rollout.terminated.any()
    assert rollout.observations[:, 0, 0].tolist() == [0, 1, 2, 3, 0, 1, 2]
    [(turn, index, observation)] = rollout.final
    assert (turn, index, observation.tolist()) == (3, 0, [4, 4])
    assert collector.running_rewards() == [3.0]
    assert collector.longest_episode() == 2
    following = collector.collect(lambda turn, seen, masks: [0], 2)
    assert following.episode_rewards == [10.0]


def test_episodes_have_lengths_and_the_numbers_of_their_last_info() -> None:
    collector = Collector("OlafOdd-v0", 1, [0])
    assert collector.collect(lambda turn, seen, masks: [0], 3).episode_steps == []
    rollout = collector.collect(lambda turn, seen, masks: [0], 6)
    assert rollout.episode_steps == [4, 4]
    assert rollout.episode_numbers == [{"success": 1.0, "turn": 4.0}] * 2
    learner = make_learner(
        LearnerConfig(environment="OlafOdd-v0", environments=2, steps_per_update=12, minibatch=8)
    )
    turn = learner.iterate()
    assert (turn.episode_rewards, turn.episode_steps) == ((10.0, 10.0), (4, 4))
    assert [each["success"] for each in turn.episode_numbers] == [1.0, 1.0]


def test_only_finite_numbers_of_info_are_kept_and_not_too_many() -> None:
    info = {"a": float("nan"), "b": np.array(2.5), "c": [1], "d": {"r": 1}, 5: True}
    assert numbers_of(info) == {"b": 2.5, "5": 1.0}
    assert len(numbers_of({str(index): index for index in range(100)})) == 16
    assert numbers_of({**{str(index): index for index in range(100)}, "success": True})["success"]
    assert numbers_of({"a": 10**400, "b": np.float32(np.inf), "c": np.float32(0.5)}) == {"c": 0.5}
    assert numbers_of(None) == {}


def test_each_row_of_steps_is_told_and_an_exception_passes_through() -> None:
    collector, told = Collector("OlafOdd-v0", 2, [0, 1]), list[int]()
    collector.on_steps = told.append
    collector.collect(lambda turn, seen, masks: [0, 0], 2)
    collector.collect(lambda turn, seen, masks: [0, 0], 1)
    assert told == [2, 4, 6]

    def stop(steps: int) -> None:
        raise KeyboardInterrupt

    learner = make_learner(LearnerConfig(environment="OlafOdd-v0"))
    learner.watch(stop)  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        learner.collect()


def test_a_rollout_by_episodes_grows_as_far_as_it_takes() -> None:
    rollout = Collector("OlafOdd-v0", 1, [0]).collect(
        lambda turn, seen, masks: [0], 1, episodes=600
    )
    assert len(rollout.episode_rewards) == 600
    assert rollout.rewards.shape == (2400, 1)
    assert rollout.observations[2399, 0, 0] == 3


def test_known_scales_go_by_name_whatever_the_version() -> None:
    assert known_reward_scale("LunarLander-v3") == 0.02
    assert known_reward_scale("some.module:CartPole-v0") == 0.1
    assert known_reward_scale("MountainCar-v0") is None
