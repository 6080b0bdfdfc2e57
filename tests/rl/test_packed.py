"""Environments given as classes, functions and specs; options and numbers of their copies."""

import threading
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from olaf.rl.collecting import Collector
from olaf.rl.environments import (
    UnusableEnvironmentError,
    known_reward_scale,
    make_environment,
    reward_threshold,
)
from olaf.rl.learner import LearnerConfig
from olaf.rl.making import make_learner
from olaf.rl.options import filled
from olaf.rl.packed import UnpackableError, pack, shown
from olaf.runs.evaluation import play


class Sized(gym.Env[Any, Any]):
    """Shows its size and port."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, size: int = 1, port: Any = 0) -> None:
        self.seen = np.array([size, port], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self.seen, {}

    def step(self, action: Any) -> Any:
        return self.seen, 1.0, False, False, {}


def first(name: str, **how: Any) -> list[float]:
    env = make_environment(name, **how)
    seen: list[float] = env.reset()[0].tolist()
    env.close()
    return seen


def test_a_class_a_function_a_partial_and_a_spec_are_made(tmp_path: Path) -> None:
    size = 5
    named = {
        "Sized": (Sized, [1, 0]),
        "environment": (lambda: Sized(size=size), [5, 0]),
    }
    for shown_as, (given, seen) in named.items():
        name = pack(given, tmp_path / shown_as)
        assert (shown(name), first(name)) == (shown_as, seen)
        assert reward_threshold(name) is None
    assert first(pack(partial(Sized, size=3), tmp_path / "partial")) == [3, 0]
    assert first(pack(Sized, tmp_path / "options"), options={"size": 7}) == [7, 0]
    how: Any = {"kwargs": {"size": 2}, "reward_threshold": 9, "max_episode_steps": 4}
    made: Any = Sized
    gym.register("olaf/Packed-v3", made, **how)
    spec = gym.spec("olaf/Packed-v3")
    del gym.registry["olaf/Packed-v3"]
    name = pack(spec, tmp_path / "spec")
    assert first(name) == [2, 0]
    assert (shown(name), reward_threshold(name)) == ("olaf/Packed-v3", 9)
    collector = Collector(name, 1, [0])
    assert collector.collect(lambda *_: [0], 9).episode_steps == [4, 4]
    collector.close()


def test_an_environment_of_a_known_name_has_its_scale() -> None:
    assert known_reward_scale("/tmp/run/environment.pkl:CartPole-v1") == 0.1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Sized(), "is an environment .*Sized.* already: give what makes it"),
        (7, "env = 7: must be the id of an environment, its class, or a function"),
        (
            partial(Sized, port=threading.Lock()),
            "Sized: cannot be handed to the workers.*lock",
        ),
    ],
)
def test_what_makes_no_environment_elsewhere_is_refused(
    given: Any, words: str, tmp_path: Path
) -> None:
    with pytest.raises(UnpackableError, match=words):
        pack(given, tmp_path)


def test_a_file_that_is_gone_or_another_is_named(tmp_path: Path) -> None:
    name = pack(Sized, tmp_path)
    (tmp_path / "environment.pkl").write_bytes(b"no")
    with pytest.raises(UnpackableError, match="not an environment written by Olaf"):
        make_environment(name)
    (tmp_path / "environment.pkl").unlink()
    with pytest.raises(UnpackableError, match="No such file"):
        make_environment(name)


def test_a_function_that_makes_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableEnvironmentError, match="gave int, not a gymnasium"):
        make_environment(pack(lambda: 3, tmp_path))


def test_every_copy_of_every_worker_gets_another_port() -> None:
    def ports(worker: int) -> list[float]:
        options = {"size": 2, "port": "{index+9000}"}
        collector = Collector(f"{__name__}:Sized", 3, range(3), options=options, worker=worker)
        seen = collector.collect(lambda *_: [0] * 3, 1).observations[0]
        collector.close()
        assert seen[:, 0].tolist() == [2, 2, 2]
        return [float(port) for port in seen[:, 1]]

    assert ports(0) + ports(1) == [9000, 9001, 9002, 9003, 9004, 9005]


def test_numbers_are_filled_into_texts_and_lists() -> None:
    options = {"at": "host:{index + 80}", "both": ["{worker}", {"c": "{copy}"}], "size": 3}
    assert filled(options, worker=2, copy=1, copies=4) == {
        "at": "host:89",
        "both": [2, {"c": 1}],
        "size": 3,
    }
    assert (
        filled({"text": "{other} {index"}, worker=1, copy=1, copies=1)["text"] == "{other} {index"
    )


def test_an_option_that_the_constructor_lacks_is_named() -> None:
    with pytest.raises(UnusableEnvironmentError, match="unexpected keyword argument 'color'"):
        make_environment(f"{__name__}:Sized", options={"color": 1})
    with pytest.raises(UnusableEnvironmentError, match="unexpected keyword argument 'color'"):
        make_environment("CartPole-v1", options={"color": 1})


def test_training_episodes_are_cut_and_evaluations_have_the_options() -> None:
    config = LearnerConfig(
        environment=f"{__name__}:Sized",
        environment_options={"size": 4},
        max_episode_steps=5,
        environments=2,
        steps_per_update=22,
    )
    hash(config)
    learner: Any = make_learner(config)
    turn = learner.iterate()
    assert turn.episode_steps == (5, 5, 5, 5)
    [episode] = play(learner, config.environment, episodes=1, seed=0, most_steps=8)
    assert (episode.steps, episode.is_cut) == (8, True)
    learner.close()


def test_an_evaluation_during_training_takes_no_number_of_a_worker() -> None:
    config = LearnerConfig(
        environment=f"{__name__}:Sized",
        environment_options={"port": "{index+9000}"},
        environments=1,
    )
    workers, copies = 3, 4
    evaluator: Any = make_learner(config, workers * copies)
    seen: list[float] = []

    def greedy(observations: Any, *_: Any) -> list[int]:
        seen.extend(observations[:, 1].tolist())
        return [0] * len(observations)

    evaluator.greedy = greedy
    list(play(evaluator, config.environment, episodes=20, seed=0, most_steps=2))
    assert min(seen) >= 9000 + workers * copies
    assert len(set(seen)) == 16
    evaluator.close()
