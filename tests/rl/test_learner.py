"""Learners by their protocol: the same for every kind, discrete and continuous."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from olaf.rl import Learner, LearnerConfig, LearnerError, make_learner
from olaf.rl.environments import UnusableEnvironmentError

KINDS = ["numpy", pytest.param("torch", marks=pytest.mark.torch)]
SMALL = LearnerConfig(environment="CartPole-v1", steps_per_update=128, minibatch=64, epochs=2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["CartPole-v1", "Acrobot-v1", "Pendulum-v1", "LunarLander-v3"])
def test_weights_move_by_gamma_times_the_update(kind: str, name: str) -> None:
    learner = make_learner(SMALL.replaced(learner=kind, environment=name, gamma=0.5))
    assert isinstance(learner, Learner)
    before = [part.copy() for part in learner.parts()]
    turn = learner.iterate()
    assert turn.steps == 128
    assert sum(part.size for part in learner.parts()) == learner.parameters
    for old, new, update in zip(before, learner.parts(), turn.update, strict=True):
        assert update.dtype == np.float32
        assert update.shape == new.shape
        assert update.flags.c_contiguous
        np.testing.assert_allclose(old + 0.5 * update, new, atol=1e-6)
    assert sum(float(np.abs(update).sum()) for update in turn.update) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_raw_gradient_leaves_the_weights_and_points_uphill(kind: str) -> None:
    config = SMALL.replaced(learner=kind, gradient_kind="gradient", entropy=0.0, value=100.0)
    learner = make_learner(config)
    before = [part.copy() for part in learner.parts()]
    first = learner.iterate()
    for old, new in zip(before, learner.parts(), strict=True):
        assert (old == new).all()
    # With so large a weight on the value loss, going uphill must make that loss smaller.
    for part, update in zip(learner.parts(), first.update, strict=True):
        np.add(part, 1e-4 * update, out=part)
    assert learner.iterate().losses["value"] < first.losses["value"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_same_seed_twice_same_result(kind: str, name: str) -> None:
    def run(worker: int) -> tuple[list[bytes], list[float]]:
        learner = make_learner(SMALL.replaced(learner=kind, environment=name), worker)
        rewards = [learner.iterate().reward for _ in range(3)]
        return [part.tobytes() for part in learner.parts()], rewards

    assert run(0) == run(0)
    assert run(0) != run(1)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_written_in_place_are_the_policy(kind: str) -> None:
    def first_rewards(bias: float) -> float:
        learner = make_learner(SMALL.replaced(learner=kind, steps_per_update=400))
        for part in learner.parts():
            part[...] = 0
        learner.parts()[0][-3] = bias  # the first action's, in the embedded network's layout
        return learner.iterate().reward

    # CartPole falls at once when it is always pushed the same way.
    assert first_rewards(50.0) < 11 < first_rewards(0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_by_episodes_ends_with_one(kind: str) -> None:
    config = SMALL.replaced(learner=kind, environments=1, episodes_per_update=2)
    turn = make_learner(config).iterate()
    assert turn.episodes == 2
    assert turn.reward == pytest.approx(np.mean(turn.episode_rewards))
    assert turn.steps == sum(turn.episode_rewards)  # CartPole gives 1 a step


def test_reward_without_an_ended_episode_is_of_those_running_then_the_last() -> None:
    config = LearnerConfig(environment="Pendulum-v1", environments=1, steps_per_update=150)
    learner = make_learner(config)
    first, second = learner.iterate(), learner.iterate()
    assert (first.episodes, second.episodes) == (0, 1)
    assert second.reward < first.reward < 0
    third = make_learner(config.replaced(steps_per_update=100))
    rewards = [third.iterate().reward for _ in range(3)]
    assert rewards[1] == rewards[2]


def test_times_come_from_the_clock_that_was_given() -> None:
    ticks = itertools.count()
    turn = make_learner(SMALL, clock=lambda: float(next(ticks))).iterate()
    assert (turn.seconds_env, turn.seconds_learn) == (1.0, 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_turn_in_two_halves_is_the_same_turn(kind: str) -> None:
    ticks = itertools.count()
    whole, halves = (
        make_learner(SMALL.replaced(learner=kind), clock=lambda: float(next(ticks)))
        for _ in range(2)
    )
    for _ in range(2):
        turn = whole.iterate()
        assert halves.collect() == turn.steps
        for _ in range(7):
            next(ticks)  # Time passes that is neither collecting nor learning.
        half = halves.learn()
        assert half.episode_rewards == turn.episode_rewards
        assert (half.seconds_env, half.seconds_learn) == (1.0, 1.0)
        for one, other in zip(half.update, turn.update, strict=True):
            assert one.tobytes() == other.tobytes()
    for one, other in zip(whole.parts(), halves.parts(), strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_learned_from_one_collection_twice(kind: str) -> None:
    learner = make_learner(SMALL.replaced(learner=kind))
    with pytest.raises(RuntimeError, match="collect"):
        learner.learn()
    learner.iterate()
    with pytest.raises(RuntimeError, match="collect"):
        learner.learn()


def test_a_share_is_pushed_and_kept() -> None:
    whole, share = (make_learner(SMALL.replaced(strength=s, gamma=0.5)) for s in (1.0, 0.25))
    before = share.parts()[0].copy()
    full, part = whole.iterate(), share.iterate()
    np.testing.assert_allclose(part.update[0], full.update[0] / 4, rtol=1e-6)
    np.testing.assert_allclose(share.parts()[0], before + 0.5 * part.update[0], atol=1e-6)


def test_alone_it_learns_cartpole() -> None:
    learner = make_learner(LearnerConfig(environment="CartPole-v1"))
    rewards = [learner.iterate().reward for _ in range(40)]
    assert np.mean(rewards[:3]) < 40
    assert np.mean(rewards[-5:]) > 150


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"minibatch": 0}, "minibatch = 0"),
        ({"discount": 1.5}, "discount = 1.5"),
        ({"hidden": ()}, "hidden"),
        ({"learner": "tensorflow"}, "numpy, torch"),
        ({"gradient_kind": "sign"}, "accumulated, gradient"),
        ({"reward_scale": -1.0}, "reward_scale"),
        ({"episodes_per_update": -1}, "0 is off"),
        ({"adam_beta1": 1.0}, "adam_beta1"),
    ],
)
def test_a_wrong_configuration_quotes_the_key(change: dict[str, object], message: str) -> None:
    with pytest.raises(LearnerError, match=message):
        LearnerConfig().replaced(**change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"module": "no:such"}, r"module = 'no:such' has no effect with learner = 'numpy'"),
        ({"schedule_steps": 9}, r"schedule_steps = 9 .*set schedule to linear or cosine"),
        ({"learner": "torch", "module": "my:net", "hidden": (8,)}, r"hidden = \(8,\) .*network"),
        ({"episodes_per_update": 2, "steps_per_update": 9}, "steps_per_update = 9"),
        ({"gradient_kind": "gradient", "learning_rate": 0.1}, "set gradient_kind to accumulated"),
    ],
)
def test_a_given_key_without_effect_is_an_error(change: dict[str, Any], message: str) -> None:
    config = dataclasses.replace(LearnerConfig(), **change)
    with pytest.raises(LearnerError, match=message):
        config.check(change)
    # A default that a file writes out is no wish.
    defaults = {field.name for field in dataclasses.fields(LearnerConfig)}
    LearnerConfig().check(defaults)
    if "gradient_kind" in change:
        config.check({"gradient_kind"})


def test_an_unknown_environment_is_a_learner_error() -> None:
    with pytest.raises(UnusableEnvironmentError, match="CartPole-v1"):
        make_learner(LearnerConfig(environment="CartPoel-v1"))


@pytest.mark.parametrize("kind", KINDS)
def test_all_workers_of_a_run_start_from_the_same_weights(kind: str) -> None:
    config = SMALL.replaced(learner=kind, seed=4)
    first, second = (make_learner(config, worker) for worker in (0, 3))
    for one, other in zip(first.parts(), second.parts(), strict=True):
        assert np.array_equal(one, other)
    another = make_learner(config.replaced(seed=5), 3)
    assert not np.array_equal(first.parts()[0], another.parts()[0])
    # Only the weights are common: each worker has its own experience.
    assert first.iterate().reward != second.iterate().reward
