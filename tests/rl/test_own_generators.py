"""Environments that draw from `random`, `np.random` and their spaces; and that must be closed."""

import random
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from olaf.rl.collecting import Collector
from olaf.rl.compute import Steady
from olaf.rl.learner import LearnerConfig, LearnerError
from olaf.rl.making import make_learner
from olaf.rl.recorded import record
from olaf.rl.seeding import seed_everything
from olaf.rl.virtual_job import Alone, JobConfig, LocalJob
from olaf.runs.evaluation import play


class Drawing(gym.Env[Any, Any]):
    """Its observations come from everywhere but its own generator. Counts what is open."""

    observation_space = spaces.Box(-1, 1, (4,), np.float32)
    action_space: Any
    steps = 0
    opened: ClassVar[list[str]] = []

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(5)
        self.opened.append("open")

    def seen(self) -> Any:
        drawn = [random.random(), np.random.random(), self.action_space.sample(), 0]
        drawn[3] = float(self.observation_space.sample()[0])
        return np.array(drawn, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.steps = 0
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.seen(), random.random(), False, self.steps == 5, {}

    def close(self) -> None:
        self.opened.remove("open")


class Broken(Drawing):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        raise RuntimeError("no simulator")


class Second(Drawing):
    def __init__(self) -> None:
        super().__init__()
        if len(self.opened) > 1:
            self.close()
            raise RuntimeError("only one")


NAME = f"{__name__}:Drawing"
SMALL = LearnerConfig(environment=NAME, environments=2, steps_per_update=10, minibatch=10)


@pytest.fixture(autouse=True)
def none_open() -> None:
    Drawing.opened.clear()


def rollout(seed: int, worker: int) -> Any:
    seed_everything(seed, worker)
    collector = Collector(NAME, 2, [seed, seed + 1])
    observations = collector.collect(lambda *_: [0, 0], 12).observations
    collector.close()
    return observations


def test_all_generators_follow_the_seed_and_the_worker() -> None:
    first = rollout(3, 1)
    assert (first == rollout(3, 1)).all()
    assert (first[..., :2] != rollout(3, 2)[..., :2]).mean() > 0.9
    assert (first[..., :2] != rollout(4, 1)[..., :2]).mean() > 0.9
    assert len(set(first[:, 0, 0].tolist())) == 13


def test_an_evaluation_repeats_itself() -> None:
    learner = make_learner(SMALL)
    one, two = ([each.reward for each in play(learner, NAME, episodes=4, seed=7)] for _ in range(2))
    assert one == two
    assert len(set(one)) == 4
    learner.close()
    assert not Drawing.opened


def test_a_job_in_virtual_time_repeats_itself_and_closes_its_environments() -> None:
    config = JobConfig(learner=SMALL, workers=2, clusters=2, compute=Steady())
    for kind in (LocalJob, Alone):
        one, two = kind(config).run(4), kind(config).run(4)
        assert one.weights.tobytes() == two.weights.tobytes()
        assert not Drawing.opened


def test_what_is_made_is_closed_if_the_rest_fails() -> None:
    with pytest.raises(RuntimeError, match="no simulator"):
        Collector(f"{__name__}:Broken", 2, [0, 1])
    assert not Drawing.opened
    with pytest.raises(LearnerError, match="only one"):
        Collector(f"{__name__}:Second", 2, [0, 1])
    assert not Drawing.opened


def test_timed_learners_are_closed() -> None:
    record([SMALL], turns=1)
    assert not Drawing.opened
