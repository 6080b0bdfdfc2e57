"""What an environment gives is checked against its spaces; a fault names its place and field."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from olaf.rl import LearnerConfig, make_learner
from olaf.rl.collecting import Collector
from olaf.rl.environments import FaultyEnvironmentError


class Sound(gym.Env[Any, Any]):
    """A sound environment of three numbers; episodes of five steps. Faults are in subclasses."""

    observation_space: Any = spaces.Box(-1, 1, (3,), np.float32)
    action_space: Any = spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.zeros(3, np.float32), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.seen(), self.reward(), False, self.steps % 5 == 0, {}

    def seen(self) -> Any:
        return np.zeros(3, np.float32)

    def reward(self) -> Any:
        return 1.0


class ScalarReset(Sound):
    def reset(self, **_: Any) -> Any:
        return 0.5, {}


class OldReset(Sound):
    observation_space = spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, **_: Any) -> Any:
        return np.array([0.25, 0.5], np.float32)


class TwoNumbers(Sound):
    observation_space = spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, **_: Any) -> Any:
        return 0.25, 0.5


class WithoutInfo(Sound):
    def reset(self, **_: Any) -> Any:
        return np.zeros(3, np.float32)


class WithoutSeed(Sound):
    def reset(self) -> Any:  # type: ignore[override]
        return np.zeros(3, np.float32), {}


class NanReset(Sound):
    def reset(self, **_: Any) -> Any:
        return np.array([0, np.nan, 0]), {}


class Text(Sound):
    def reset(self, **_: Any) -> Any:
        return "left", {}


class FourValues(Sound):
    def step(self, action: Any) -> Any:
        return np.zeros(3), 1.0, False, {}


class NoFlags(Sound):
    def step(self, action: Any) -> Any:
        return np.zeros(3), 1.0, "no", False, {}


class Swapped(Sound):
    def step(self, action: Any) -> Any:
        return np.zeros(3), 1.0, False, {}, False


class WrongShape(Sound):
    def seen(self) -> Any:
        return np.zeros((3, 2), np.float32)


class ScalarLater(Sound):
    def seen(self) -> Any:
        return 0.5 if self.steps == 7 else np.zeros(3, np.float32)


class Longer(Sound):
    def seen(self) -> Any:
        return np.zeros(4 if self.steps == 7 else 3, np.float32)


class Standing(Sound):
    def seen(self) -> Any:
        return np.zeros((3, 1) if self.steps == 7 else 3, np.float32)


class NoReward(Sound):
    def reward(self) -> Any:
        return None if self.steps == 7 else 1.0


class ManyRewards(Sound):
    def reward(self) -> Any:
        return np.ones(2)


class Nan(Sound):
    def seen(self) -> Any:
        return np.array([0, 0, np.nan if self.steps == 7 else 0], np.float32)


class Infinite(Sound):
    def seen(self) -> Any:
        return np.array([0, np.inf if self.steps == 7 else 0, 0], np.float32)


class CutAtNan(Sound):
    def seen(self) -> Any:
        return np.array([0, np.nan if self.steps == 10 else 0, 0], np.float32)


class NanAgain(Sound):
    def reset(self, **_: Any) -> Any:
        return np.array([0, np.nan if self.steps == 10 else 0, 0], np.float32), {}


class NanReward(Sound):
    def reward(self) -> Any:
        return float("nan") if self.steps == 7 else 1.0


class EndlessReward(Sound):
    def reward(self) -> Any:
        return float("-inf")


class Dictionary(Sound):
    observation_space = spaces.Dict({"near": spaces.Box(-1, 1, (2,)), "gear": spaces.Discrete(3)})

    def reset(self, **_: Any) -> Any:
        return {"near": np.zeros(2, np.float32), "gear": 1}, {}

    def seen(self) -> Any:
        return {"near": np.zeros(2, np.float32), "gear": 3}


class DictionaryNan(Dictionary):
    def seen(self) -> Any:
        return {"near": np.array([0, np.nan], np.float32), "gear": 2}


FAULTS: list[tuple[type[Sound], str]] = [
    (ScalarReset, r", reset: observation has no shape \(it is a single number\), but .*\(3,\)"),
    (OldReset, r", reset: reset\(\) gave an array of shape \(2,\), but must return \(observation"),
    (TwoNumbers, r", reset: reset\(\) gave 2 values \(0.25, 0.5\), but must return"),
    (WithoutInfo, r", reset: reset\(\) gave an array of shape \(3,\), but must return"),
    (WithoutSeed, r", reset: .*unexpected keyword argument 'seed'.*def reset\(self, \*, seed"),
    (NanReset, r", reset: observation\[1\] is nan"),
    (Text, r", reset: observation is a str, not numbers"),
    (
        FourValues,
        r", step 1: step\(\) gave 4 values .*must return \(observation, reward.*0.26",
    ),
    (NoFlags, r", step 1: terminated is a str, not True or False"),
    (Swapped, r", step 1: step\(\) gave 5 values"),
    (
        WrongShape,
        r", step 1: observation has the shape \(3, 2\), but .* Box.*\(3,\)",
    ),
    (ScalarLater, r", step 7: observation has no shape"),
    (Longer, r", step 7: observation has the shape \(4,\)"),
    (Standing, r", step 7: observation has the shape \(3, 1\)"),
    (NoReward, r", step 7: the reward is None, not a number"),
    (ManyRewards, r", step 1: the reward is an array of shape \(2,\), not a number"),
    (Nan, r", step 7: observation\[2\] is nan"),
    (Infinite, r", step 7: observation\[1\] is inf"),
    (CutAtNan, r", step 10: observation\[1\] is nan"),
    (NanAgain, r", reset after step 10: observation\[1\] is nan"),
    (NanReward, r", step 7: the reward is nan"),
    (EndlessReward, r", step 1: the reward is -inf"),
    (Dictionary, r", step 1: observation\['gear'\] is 3, which is not in Discrete\(3\)"),
    (DictionaryNan, r", step 1: observation\['near'\]\[1\] is nan"),
]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    kinds: list[Any] = [Sound, *(kind for kind, _ in FAULTS)]
    for kind in kinds:
        gym.register(f"Olaf{kind.__name__}-v0", kind, max_episode_steps=100)
    yield
    for kind in kinds:
        del gym.registry[f"Olaf{kind.__name__}-v0"]


def run(name: str, copies: int = 1, rollouts: int = 1) -> Any:
    collector = Collector(name, copies, range(copies))
    try:
        for _ in range(rollouts):
            rollout = collector.collect(lambda turn, seen, masks: [0] * copies, 12)
    finally:
        collector.close()
    return rollout


@pytest.mark.parametrize(("kind", "message"), FAULTS)
def test_a_fault_names_environment_step_and_field(kind: type[Sound], message: str) -> None:
    for name in (f"Olaf{kind.__name__}-v0", f"{__name__}:{kind.__name__}"):
        with pytest.raises(FaultyEnvironmentError, match=f"environment '{name}'{message}"):
            run(name)


def test_the_copy_is_named_if_there_are_several() -> None:
    class Late(Sound):
        made = 0

        def __init__(self) -> None:
            Late.made += 1
            self.is_second = Late.made == 2

        def reward(self) -> Any:
            return float("nan") if self.is_second and self.steps == 14 else 1.0

    gym.register("OlafLate-v0", lambda **_: Late())
    try:
        with pytest.raises(FaultyEnvironmentError, match=r"step 14: .*reward is nan \(copy 2 of 3"):
            run("OlafLate-v0", copies=3, rollouts=2)
    finally:
        del gym.registry["OlafLate-v0"]


def test_what_fails_because_of_a_nan_is_told_as_the_nan() -> None:
    collector = Collector("OlafNan-v0", 1, [0])

    def act(turn: int, seen: Any, masks: Any) -> list[int]:
        return [int(seen[0, 2])]  # int(nan) raises

    with pytest.raises(FaultyEnvironmentError, match=r"step 7: observation\[2\] is nan") as raised:
        collector.collect(act, 12)
    assert isinstance(raised.value.__cause__, ValueError)


def test_a_reward_of_one_number_in_an_array_counts() -> None:
    class Shaped(Sound):
        def reward(self) -> Any:
            return np.array([1.5]) if self.steps % 2 else np.float32(0.5)

    gym.register("OlafShaped-v0", lambda **_: Shaped())
    try:
        assert run("OlafShaped-v0").episode_rewards == [5.5, 4.5]
    finally:
        del gym.registry["OlafShaped-v0"]


def test_a_learner_refuses_a_fault_before_it_learns_from_it() -> None:
    config = LearnerConfig(
        environment="OlafNan-v0", environments=2, steps_per_update=20, normalise="off"
    )
    learner: Any = make_learner(config)
    before = learner.weights.copy()
    with pytest.raises(FaultyEnvironmentError, match=r"observation\[2\] is nan"):
        learner.iterate()
    assert (learner.weights == before).all()


def test_a_sound_environment_passes() -> None:
    assert run("OlafSound-v0", copies=2, rollouts=3).episode_steps == [5] * 6
