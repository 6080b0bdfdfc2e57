"""Copies that step at once: in processes, inside a vector environment, or inside a pool."""

import os
import time
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from olaf.jobs.faults import fault_of
from olaf.rl.collecting import Collector, Rollout
from olaf.rl.environments import FaultyEnvironmentError, UnusableEnvironmentError
from olaf.rl.learner import LearnerConfig, LearnerError
from olaf.rl.making import make_learner
from olaf.rl.own import RaisedElsewhereError

HERE = __name__


class Slow(gym.Env[Any, Any]):
    """A simulator that takes 20 ms for a step."""

    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        time.sleep(0.02)
        return np.zeros(1, np.float32), 1.0, False, False, {}


class Counting(gym.Env[Any, Any]):
    """Shows the copy's number and its steps; ends after 3, or is cut after 4."""

    observation_space = spaces.Box(-99, 99, (2,), np.float64)
    action_space = spaces.Discrete(3, start=5)

    def __init__(self, number: int = 0, bad: bool = False) -> None:
        self.number, self.bad, self.all = number, bad, 0

    def seen(self) -> Any:
        return np.array([self.number, self.steps], np.float64)

    def mask(self) -> Any:
        return {"action_mask": np.arange(3) == self.steps % 3, "steps": self.steps}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.steps = 0
        return self.seen(), self.mask()

    def step(self, action: Any) -> Any:
        assert action == 5 + self.steps % 3, action
        assert type(action) is int
        self.steps += 1
        self.all += 1
        reward = float("nan") if self.bad and self.all == 6 else 0.5 * self.steps
        over, cut = self.number == 0 and self.steps == 3, self.steps == 4
        return self.seen(), reward, over, cut, {**self.mask(), "is_success": over}


def allowed(turn: int, seen: Any, masks: Any) -> list[int]:
    return [5 + int(row.argmax()) for row in masks]


def first_allowed(turn: int, seen: Any, masks: Any) -> Any:
    return masks.argmax(axis=1)


def rollouts(parallel: Any) -> list[Rollout]:
    options = {"number": "{copy}"}
    name = f"{HERE}:Counting"
    collector = Collector(name, 2, [3, 4], parallel=parallel, options=options)
    try:
        return [collector.collect(allowed, 7) for _ in range(2)]
    finally:
        collector.close()


def test_copies_in_processes_give_what_copies_in_turn_give() -> None:
    for here, there in zip(rollouts("off"), rollouts("processes"), strict=True):
        for field in ("observations", "rewards", "terminated", "truncated", "masks"):
            assert (getattr(here, field) == getattr(there, field)).all(), field
        assert there.skipped is None
        assert here.episode_rewards == there.episode_rewards
        assert here.episode_steps == there.episode_steps
        assert here.episode_numbers == there.episode_numbers
        for (turn, copy, seen), (at, index, last) in zip(here.final, there.final, strict=True):
            assert (turn, copy, seen.tolist()) == (at, index, last.tolist())


def test_slow_environments_step_at_once() -> None:
    def seconds(parallel: Any) -> float:
        collector = Collector(f"{HERE}:Slow", 4, range(4), parallel=parallel)
        collector.collect(lambda *_: [0] * 4, 1)
        begin = time.perf_counter()
        collector.collect(lambda *_: [0] * 4, 8)
        took = time.perf_counter() - begin
        collector.close()
        return took

    assert seconds("processes") < seconds("off") / 2


def test_a_fault_in_a_process_names_its_copy_and_the_processes_end() -> None:
    options = {"number": "{copy}", "bad": True}
    collector = Collector(f"{HERE}:Counting", 2, [0, 1], parallel="processes", options=options)
    processes = collector._copies._env.processes  # type: ignore[attr-defined]
    with pytest.raises(FaultyEnvironmentError, match=r"step 6: the reward is nan \(copy . of 2"):
        collector.collect(allowed, 7)
    collector.close()
    assert not any(process.is_alive() for process in processes)


class Raising(Slow):
    def step(self, action: Any) -> Any:
        return dict[str, Any]()["speed"]


def test_an_error_in_a_process_has_the_frames_of_the_users_code() -> None:
    collector = Collector(f"{HERE}:Raising", 2, [0, 1], parallel="processes")
    with pytest.raises(RaisedElsewhereError) as raised:
        collector.collect(lambda *_: [0, 0], 3)
    collector.close()
    fault = fault_of(raised.value)
    assert fault["error"] == "KeyError: 'speed'"
    assert fault["where"].endswith(", in step")
    assert '["speed"]' in fault["frames"]
    assert "gymnasium" not in fault["frames"]


class Dying(Slow):
    def step(self, action: Any) -> Any:
        os._exit(7)


def test_a_process_that_has_ended_is_named() -> None:
    collector = Collector(f"{HERE}:Dying", 2, [0, 1], parallel="processes")
    with pytest.raises(FaultyEnvironmentError, match=r"step 1: the process of copy .*exit code 7"):
        collector.collect(lambda *_: [0, 0], 3)
    processes = collector._copies._env.processes  # type: ignore[attr-defined]
    collector.close()
    assert not any(process.is_alive() for process in processes)


class Pool:
    """As EnvPool: batches, no class of gymnasium's, an episode begins in the step after its end."""

    observation_space = spaces.Box(-99, 99, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, num_envs: int, length: int = 3) -> None:
        self.length = length
        self.steps = np.zeros(num_envs, np.int64)
        self.actions: list[Any] = []

    def __len__(self) -> int:
        return len(self.steps)

    def seen(self) -> Any:
        return np.stack([np.arange(len(self)), self.steps], axis=1).astype(np.float32)

    def reset(self) -> Any:
        return self.seen(), {}

    def step(self, actions: Any) -> Any:
        again = self.steps == self.length + np.arange(len(self))
        self.steps = np.where(again, 0, self.steps + 1)
        over = self.steps == self.length + np.arange(len(self))
        return self.seen(), np.where(again, 77.0, 1.0), over, np.zeros_like(over), {}

    def close(self) -> None:
        self.steps = None  # type: ignore[assignment]


def cartpoles(num_envs: int, mode: str) -> VectorEnv[Any, Any, Any]:
    make = [lambda: gym.make("CartPole-v1", max_episode_steps=15)] * num_envs
    return SyncVectorEnv(make, autoreset_mode=AutoresetMode[mode])


def test_rows_in_which_a_pool_begins_an_episode_are_skipped() -> None:
    collector = Collector(f"{HERE}:Pool", 2, [0, 1], parallel="vector")
    rollout = collector.collect(lambda *_: [0, 1], 10)
    assert rollout.skipped is not None
    # Three steps and a reset; four steps and a reset.
    assert rollout.skipped.T.astype(int).tolist() == [
        [0, 0, 0, 1, 0, 0, 0, 1, 0, 0],
        [0, 0, 0, 0, 1, 0, 0, 0, 0, 1],
    ]
    assert rollout.rewards.T.tolist() == (1.0 - rollout.skipped.T).tolist()
    assert rollout.steps == 16
    assert (rollout.episode_steps, rollout.episode_rewards) == ([3, 4, 3, 4], [3, 4, 3, 4])
    assert rollout.observations[3:5, 0, 1].tolist() == [3, 0]
    collector.close()


@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP"])
def test_every_row_that_is_learnt_from_is_a_step_of_the_environment(mode: str) -> None:
    how: Any = {"parallel": "vector", "options": {"mode": mode}}
    collector = Collector(f"{HERE}:cartpoles", 3, [0, 1, 2], **how)
    rollout = collector.collect(lambda turn, *_: [turn % 2] * 3, 60)
    collector.close()
    skipped = np.zeros((60, 3), bool) if rollout.skipped is None else rollout.skipped
    ended = rollout.terminated | rollout.truncated
    assert (rollout.skipped is None) == (mode == "SAME_STEP")
    if mode == "NEXT_STEP":
        assert (skipped[1:] == ended[:-1]).all()
    assert rollout.truncated.any()
    model: Any = gym.make("CartPole-v1").unwrapped
    final = {(turn, copy): seen for turn, copy, seen in rollout.final}
    for turn, copy in zip(*np.nonzero(~skipped), strict=True):
        if rollout.terminated[turn, copy]:
            continue  # the state after the end is in no row, and its value is 0
        model.reset()
        model.state = rollout.observations[turn, copy].astype(np.float64)
        expected = model.step(turn % 2)[0]
        seen = final.get((turn, copy), rollout.observations[turn + 1, copy])
        np.testing.assert_allclose(seen, expected, atol=1e-4)


@pytest.mark.parametrize("parallel", ["processes", "vector"])
def test_a_learner_learns_from_copies_that_step_at_once(parallel: Any) -> None:
    config = LearnerConfig(
        environment="CartPole-v1",
        parallel=parallel,
        environments=4,
        steps_per_update=120,
        normalise="off",
    )
    learner: Any = make_learner(config)
    turns = [learner.iterate() for _ in range(2)]
    learner.close()
    if parallel == "processes":
        alone: Any = make_learner(config.replaced(parallel="off"))
        for turn in turns:
            assert turn.episode_rewards == alone.iterate().episode_rewards
        assert (alone.weights == learner.weights).all()
    else:
        assert all(100 <= turn.steps < 120 for turn in turns)
        assert sum(turns[0].episode_steps) <= turns[0].steps


def test_what_does_not_fit_a_vector_is_said() -> None:
    with pytest.raises(LearnerError, match="does not go with recurrent"):
        LearnerConfig(parallel="vector", recurrent="lstm", learner="torch").check()

    def refused(words: str, name: str, **how: Any) -> None:
        with pytest.raises(UnusableEnvironmentError, match=words):
            Collector(name, 2, [0, 1], **{"parallel": "vector", **how})

    refused("max_episode_steps does not go with parallel = vector", "CartPole-v1", max_steps=3)
    refused("DISABLED", f"{HERE}:cartpoles", options={"mode": "DISABLED"})
    refused(
        "train on it with learner.parallel = vector",
        f"{HERE}:cartpoles",
        parallel="off",
        options={"mode": "SAME_STEP", "num_envs": 2},
    )
    refused("has 3 copies, but learner.environments = 2", f"{HERE}:Pool", options={"num_envs": 3})


class Ending(gym.Env[Any, Any]):
    """Allows no action in its last state, after 3 steps; writes into one ``info``."""

    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.info: dict[str, Any] = {}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self.now(0)

    def step(self, action: Any) -> Any:
        assert action == 1
        seen, info = self.now(self.steps + 1)
        return seen, np.random.random(), self.steps == 3, False, info

    def now(self, steps: int) -> Any:
        self.steps = self.info["steps"] = steps
        self.info["action_mask"] = np.array([False, steps < 3])
        return np.zeros(1, np.float32), self.info


def endings(num_envs: int) -> VectorEnv[Any, Any, Any]:
    return SyncVectorEnv([Ending] * num_envs)


@pytest.mark.parametrize(
    ("parallel", "what"), [("off", "Ending"), ("processes", "Ending"), ("vector", "endings")]
)
def test_an_end_may_allow_no_action_and_its_numbers_are_those_of_the_end(
    parallel: Any, what: str
) -> None:
    collector = Collector(f"{HERE}:{what}", 2, [3, 4], parallel=parallel)
    try:
        rollout = collector.collect(first_allowed, 8)
    finally:
        collector.close()
    assert [each["steps"] for each in rollout.episode_numbers] == [3.0] * 4


def test_processes_draw_from_the_seed() -> None:
    def rewards() -> list[float]:
        collector = Collector(f"{HERE}:Ending", 2, [3, 4], parallel="processes")
        found = collector.collect(first_allowed, 2).rewards
        collector.close()
        return [float(reward) for reward in found.ravel()]

    first = rewards()
    assert first == rewards()
    assert len(set(first)) == 4


def test_a_turn_in_which_episodes_only_begin_goes_on() -> None:
    config = LearnerConfig(
        environment=f"{HERE}:endings",
        parallel="vector",
        environments=2,
        steps_per_update=2,
        normalise="off",
    )
    learner = make_learner(config)
    turns = [learner.iterate() for _ in range(8)]
    learner.close()
    assert [turn.steps for turn in turns] == [2] * 8


class ByMethod(Ending):
    def now(self, steps: int) -> Any:
        seen, info = super().now(steps)
        self.mask = info["action_mask"]
        return seen, {}

    def action_masks(self) -> Any:
        return self.mask


def by_method(num_envs: int, later: bool = True) -> VectorEnv[Any, Any, Any]:
    mode = AutoresetMode.NEXT_STEP if later else AutoresetMode.SAME_STEP
    return SyncVectorEnv([ByMethod] * num_envs, autoreset_mode=mode)


@pytest.mark.parametrize("later", [True, False])
def test_a_vector_s_copies_may_have_masks_as_a_method(later: bool) -> None:
    options = {"later": later}
    collector = Collector(f"{HERE}:by_method", 2, [0, 1], parallel="vector", options=options)
    rollout = collector.collect(first_allowed, 8)
    assert rollout.episode_steps == [3] * 4
    collector.close()


class Picture(Ending):
    observation_space: Any = spaces.Box(0, 255, (8, 8, 3), np.uint8)

    def now(self, steps: int) -> Any:
        return np.zeros((8, 8, 3), np.uint8), super().now(steps)[1]


def pictures(num_envs: int) -> VectorEnv[Any, Any, Any]:
    return SyncVectorEnv([Picture] * num_envs)


def test_images_of_a_vector_are_images() -> None:
    name = f"{HERE}:pictures"
    with pytest.raises(UnusableEnvironmentError, match=r"images of shape \(8, 8, 3\)"):
        Collector(name, 2, [0, 1], parallel="vector")
    collector = Collector(name, 2, [0, 1], parallel="vector", images=True)
    assert collector.spaces.seen == (8, 8, 3)
    seen = collector.collect(first_allowed, 1).observations
    assert seen.shape == (2, 2, 8, 8, 3)
    collector.close()
