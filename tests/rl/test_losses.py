"""The numbers that a learner tells of its update, against their plain formulas."""

import numpy as np
import pytest

from olaf.rl.advantages import explained_variance
from olaf.rl.learner import LearnerConfig
from olaf.rl.making import make_learner
from olaf.rl.ppo_numpy import NumpyLearner

KINDS = ["numpy", pytest.param("torch", marks=pytest.mark.torch)]
SMALL = LearnerConfig(
    environment="Pendulum-v1", steps_per_update=256, minibatch=256, epochs=1, reward_scale=0.01
)


@pytest.mark.parametrize("kind", KINDS)
def test_explained_variance_is_that_of_the_values_before_the_turn(kind: str) -> None:
    learner = make_learner(SMALL.replaced(learner=kind, epochs=3, learning_rate=1e-2))
    assert isinstance(learner, NumpyLearner)
    for _ in range(3):
        learner.collect()
        turn = learner._turn
        assert turn is not None
        seen = turn.rollout.observations[:-1]
        values = learner.policy(seen.reshape(-1, seen.shape[-1]))[:, -1]
        told = learner.learn(1).losses["explained_variance"]
        assert turn.batch is not None
        returns = turn.batch.returns
        assert told == pytest.approx(1 - np.var(returns - values) / np.var(returns), abs=1e-4)
        assert learner.learn().losses["explained_variance"] == told  # one number of a turn
    assert told != 0


def test_explained_variance_at_its_marks() -> None:
    returns = np.array([1.0, 2.0, 4.0], np.float32)
    assert explained_variance(returns - returns, returns) == 1
    assert explained_variance(returns - 7, returns) == pytest.approx(0, abs=1e-6)
    assert explained_variance(returns + returns, returns) == pytest.approx(-3)
    assert explained_variance(returns, np.ones(3, np.float32)) == 0  # no variance to explain


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_norm_is_that_before_the_limit(kind: str) -> None:
    config = SMALL.replaced(learner=kind)
    raw = make_learner(config.replaced(gradient_kind="gradient")).iterate()
    norm = float(np.sqrt(sum((part.astype(np.float64) ** 2).sum() for part in raw.update)))
    assert norm > 1e-3
    assert raw.losses["gradient_norm"] == pytest.approx(norm, rel=1e-4)
    for limit in (norm / 10, norm * 10):
        limited = make_learner(config.replaced(max_gradient_norm=limit)).iterate()
        assert limited.losses["gradient_norm"] == pytest.approx(norm, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_learning_rate_is_told_where_adam_uses_it(kind: str) -> None:
    config = SMALL.replaced(learner=kind, learning_rate=0.005)
    assert make_learner(config).iterate().losses["learning_rate"] == 0.005
    raw = make_learner(config.replaced(gradient_kind="gradient")).iterate()
    assert "learning_rate" not in raw.losses


@pytest.mark.torch
def test_both_learners_tell_the_same_numbers() -> None:
    config = SMALL.replaced(minibatch=64, learning_rate=1e-4, adam_beta1=0.9)
    embedded, other = (make_learner(config.replaced(learner=k)) for k in ("numpy", "torch"))
    assert isinstance(embedded, NumpyLearner)
    assert isinstance(other, NumpyLearner)
    embedded.weights[...] = other.parts()[0]
    embedded._rng.bit_generator.state = other._rng.bit_generator.state
    one, two = embedded.iterate().losses, other.iterate().losses
    assert one.keys() == two.keys()
    assert {"explained_variance", "gradient_norm", "learning_rate"} <= one.keys()
    for name, value in one.items():
        assert two[name] == pytest.approx(value, rel=1e-2, abs=1e-3), name
