"""The embedded learner's mathematics: gradients, advantages, Adam, sampling."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from olaf.rl.actor_critic import Layout, forward
from olaf.rl.adam import Adam
from olaf.rl.advantages import generalised_advantages
from olaf.rl.distributions import draw, log_probability, log_softmax
from olaf.rl.learner import LearnerConfig
from olaf.rl.objective import Batch, objective
from olaf.rl.ppo_numpy import NumpyLearner

Doubles = NDArray[np.float64]


def a_batch(layout: Layout, weights: Doubles, rng: np.random.Generator, steps: int = 32) -> Batch:
    """Steps whose ratios lie on both sides of the clip, so that every branch is taken."""
    views = layout.views(weights)
    if layout.continuous:
        actions: NDArray[Any] = rng.standard_normal((steps, layout.actions))
    else:
        actions = rng.integers(layout.actions, size=steps)
    seen = rng.standard_normal((steps, layout.observation))
    policy = forward(layout, views, seen)[0][:, :-1]
    return Batch(
        seen,
        actions,
        log_probability(policy, actions, views.get("log_std")) + rng.normal(0, 0.3, steps),
        rng.standard_normal(steps),
        rng.standard_normal(steps),
        np.ones(steps),
    )


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("entropy", [0.0, 0.1])
def test_gradients_agree_with_finite_differences(continuous: bool, entropy: float) -> None:
    layout = Layout(4, (6, 5), 3, continuous)
    rng = np.random.default_rng(3)
    weights: Doubles = 0.5 * rng.standard_normal(layout.size)
    batch, config = a_batch(layout, weights, rng), LearnerConfig(entropy=entropy, clip=0.2)
    gradient, scratch = np.zeros(layout.size), np.zeros(layout.size)
    losses = objective(layout, weights, batch, config, gradient)
    assert 0.1 < losses["clipped"] < 0.95
    numeric = np.array(
        [
            objective(layout, weights + step, batch, config, scratch)["loss"]
            - objective(layout, weights - step, batch, config, scratch)["loss"]
            for step in 1e-6 * np.eye(layout.size)
        ]
    )
    np.testing.assert_allclose(gradient, numeric / 2e-6, atol=2e-8)


def test_a_fresh_batch_has_ratio_one() -> None:
    layout = Layout(4, (6,), 3)
    rng = np.random.default_rng(4)
    weights = layout.initial(rng)
    batch = a_batch(layout, weights.astype(np.float64), rng)
    policy = np.zeros((32, 3), np.float32)
    uniform = log_probability(policy, batch.actions, None)
    np.testing.assert_allclose(uniform, -np.log(3), rtol=1e-6)
    gradient = np.zeros_like(weights)
    fresh = dataclasses.replace(batch, log_probabilities=uniform)
    losses = objective(layout, weights, fresh, LearnerConfig(), gradient)
    assert losses["clipped"] == 0
    assert losses["kl"] == pytest.approx(0, abs=1e-3)
    assert losses["entropy"] == pytest.approx(np.log(3), rel=1e-3)


def slow_advantages(  # noqa: PLR0917
    rewards: Doubles,
    values: Doubles,
    following: Doubles,
    terminated: Any,
    ended: Any,
    g: float,
    trace: float,
) -> Doubles:
    """Sum over k of (g trace)^k delta(t + k) up to the end of t's episode, as the paper prints."""
    steps, count = rewards.shape
    out = np.zeros((steps, count))
    for t in range(steps):
        for e in range(count):
            factor = 1.0
            for k in range(t, steps):
                after = 0.0 if terminated[k, e] else following[k, e]
                out[t, e] += factor * (rewards[k, e] + g * after - values[k, e])
                if ended[k, e]:
                    break
                factor *= g * trace
    return out


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 3), st.floats(0, 1))
def test_advantages_agree_with_the_sum_they_are(
    seed: int, steps: int, count: int, trace: float
) -> None:
    rng = np.random.default_rng(seed)
    shape = (steps, count)
    rewards, values, following = rng.standard_normal((3, *shape)).astype(np.float32)
    terminated = rng.random(shape) < 0.2
    ended = terminated | (rng.random(shape) < 0.2)
    fast = generalised_advantages(
        rewards,
        values,
        following=following,
        terminated=terminated,
        ended=ended,
        discount=0.9,
        trace=trace,
    )
    slow = slow_advantages(rewards, values, following, terminated, ended, 0.9, trace)
    np.testing.assert_allclose(fast, slow, rtol=1e-4, atol=1e-5)


def test_adam_walks_as_the_paper_prints() -> None:
    rng = np.random.default_rng(5)
    weights = rng.standard_normal(6).astype(np.float32)
    expected = weights.astype(np.float64)
    adam = Adam(6, 0.9, 0.999)
    mean, square = np.zeros(6), np.zeros(6)
    for t in range(1, 20):
        gradient = rng.standard_normal(6).astype(np.float32)
        adam.step(weights, gradient, 0.01)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient.astype(np.float64) ** 2
        corrected = np.sqrt(square / (1 - 0.999**t)) + 1e-5
        expected -= 0.01 * (mean / (1 - 0.9**t)) / corrected
    np.testing.assert_allclose(weights, expected, rtol=1e-5)


def test_gumbel_noise_samples_the_softmax() -> None:
    logits = np.array([[0.0, 1.0, -1.0, 2.0]], np.float32)
    noise = draw(np.random.default_rng(6), (200_000, 4), False)
    counts = np.bincount((logits + noise).argmax(axis=1), minlength=4) / 200_000
    np.testing.assert_allclose(counts, np.exp(log_softmax(logits))[0], atol=0.005)
    assert np.isfinite(noise).all()


def test_gaussian_log_probability_integrates_to_one() -> None:
    grid = np.linspace(-12, 12, 20_001)[:, None]
    logp = log_probability(np.full_like(grid, 0.7), grid, np.array([0.3]))
    assert float(np.exp(logp).sum() * (grid[1, 0] - grid[0, 0])) == pytest.approx(1, abs=1e-6)


def test_a_sampled_action_is_drawn_with_the_policys_probabilities() -> None:
    learner = NumpyLearner(LearnerConfig(environment="CartPole-v1", environments=1))
    seen = np.tile(np.array([[0.1, -0.4, 0.2, 0.6]], np.float32), (20_000, 1))
    logits = learner.policy(seen[:1])[0, :-1].astype(np.float64)
    probability = np.exp(logits) / np.exp(logits).sum()
    drawn = learner.sampled(seen, np.random.default_rng(1))
    assert np.mean(np.array(drawn) == 1) == pytest.approx(probability[1], abs=0.01)
    assert drawn == learner.sampled(seen, np.random.default_rng(1))
    assert drawn != learner.sampled(seen, np.random.default_rng(2))
    learner.close()


def test_a_sampled_action_of_a_continuous_policy_has_its_spread() -> None:
    learner = NumpyLearner(LearnerConfig(environment="Pendulum-v1", environments=1, log_std=-2.0))
    seen = np.tile(np.array([[0.5, 0.5, 0.1]], np.float32), (20_000, 1))
    greedy = np.array(learner.greedy(seen))
    drawn = np.array(learner.sampled(seen, np.random.default_rng(1)))
    scale = 2.0  # of Pendulum's bounds
    assert drawn.mean() == pytest.approx(greedy.mean(), abs=0.01)
    assert drawn.std() == pytest.approx(scale * np.exp(-2.0), rel=0.05)
    learner.close()


def test_the_gradient_is_finite_however_far_the_policy_has_moved() -> None:
    layout = Layout(4, (6,), 2, continuous=True)
    rng = np.random.default_rng(4)
    weights = layout.initial(rng)
    batch = a_batch(layout, weights.astype(np.float64), rng)
    far = dataclasses.replace(
        batch,
        log_probabilities=np.full(32, -300, np.float32),
        advantages=-np.ones(32, np.float32),
    )
    gradient = np.zeros_like(weights)
    losses = objective(layout, weights, far, LearnerConfig(), gradient)
    assert np.isfinite(float(gradient @ gradient))
    assert all(np.isfinite(list(losses.values())))
