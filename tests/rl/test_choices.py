"""Actions of several parts, and masks: probabilities, gradients, learning, greedy play."""

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray

from olaf.rl.actor_critic import Layout, forward
from olaf.rl.distributions import likeliest, log_probability, log_softmax, valid
from olaf.rl.learner import LearnerConfig
from olaf.rl.making import make_learner
from olaf.rl.objective import Batch, objective
from olaf.rl.ppo_numpy import NumpyLearner
from olaf.runs.evaluation import play

KINDS = ["numpy", pytest.param("torch", marks=pytest.mark.torch)]
PARTS = (3, 2, 4)
ALL = sum(PARTS)
SMALL = LearnerConfig(
    steps_per_update=256, minibatch=64, hidden=(16,), learning_rate=5e-3, discount=0.0
)


def masks_of(rng: np.random.Generator, steps: int) -> NDArray[np.bool_]:
    """Random masks with at least one valid choice in each part."""
    masks = rng.random((steps, ALL)) < 0.5
    for start, part in zip((0, 3, 5), PARTS, strict=True):
        masks[np.arange(steps), start + rng.integers(part, size=steps)] = True
    return masks


def a_batch(layout: Layout, weights: Any, rng: np.random.Generator, *, masked: bool) -> Batch:
    steps = 32
    seen = rng.standard_normal((steps, layout.observation))
    masks = masks_of(rng, steps) if masked else None
    policy = valid(forward(layout, layout.views(weights), seen)[0][:, :-1], masks)
    actions = likeliest(policy + rng.gumbel(size=policy.shape), PARTS)
    logs = log_probability(policy, actions, None, PARTS) + rng.normal(0, 0.3, steps)
    advantages, returns = rng.standard_normal((2, steps))
    return Batch(seen, actions, logs, advantages, returns, np.ones(steps), masks)


@pytest.mark.parametrize("masked", [False, True])
def test_gradients_of_several_parts_agree_with_finite_differences(masked: bool) -> None:
    layout, rng = Layout(4, (6, 5), ALL, parts=PARTS), np.random.default_rng(3)
    weights = 0.5 * rng.standard_normal(layout.size)
    batch = a_batch(layout, weights, rng, masked=masked)
    config = LearnerConfig(entropy=0.1, clip=0.2)
    gradient, scratch = np.zeros(layout.size), np.zeros(layout.size)
    assert 0.1 < objective(layout, weights, batch, config, gradient)["clipped"] < 0.95
    numeric = np.array(
        [
            objective(layout, weights + step, batch, config, scratch)["loss"]
            - objective(layout, weights - step, batch, config, scratch)["loss"]
            for step in 1e-6 * np.eye(layout.size)
        ]
    )
    np.testing.assert_allclose(gradient, numeric / 2e-6, atol=1e-6)


def test_the_probability_of_an_action_is_the_product_over_its_parts() -> None:
    rng = np.random.default_rng(1)
    logits, actions = rng.standard_normal((5, ALL)), np.array([[2, 0, 3]] * 5)
    separate = [
        log_softmax(part)[:, index]
        for part, index in zip(np.split(logits, [3, 5], axis=1), (2, 0, 3), strict=True)
    ]
    np.testing.assert_allclose(log_probability(logits, actions, None, PARTS), sum(separate))
    np.testing.assert_allclose(
        np.add.reduceat(np.exp(log_softmax(logits, PARTS)), [0, 3, 5], axis=1), 1
    )


def test_an_invalid_action_has_probability_zero_and_is_never_drawn() -> None:
    rng = np.random.default_rng(2)
    masks = masks_of(rng, 2000)
    logits = valid(rng.standard_normal((2000, ALL)).astype(np.float32), masks)
    assert (np.exp(log_softmax(logits, PARTS))[~masks] == 0).all()
    drawn = likeliest(logits + rng.gumbel(size=logits.shape).astype(np.float32), PARTS)
    assert masks[np.arange(2000)[:, None], drawn + np.array([0, 3, 5])].all()


@pytest.mark.torch
@pytest.mark.parametrize("masked", [False, True])
def test_torch_computes_the_same_loss(masked: bool) -> None:
    from torch import Tensor

    config = SMALL.replaced(environment=f"{__name__}:Levers", learner="torch")
    learner: Any = make_learner(config)
    embedded = make_learner(config.replaced(learner="numpy"))
    assert isinstance(embedded, NumpyLearner)
    rng = np.random.default_rng(5)
    weights = learner.parts()[0] + 0.3 * rng.standard_normal(embedded.layout.size)
    learner.parts()[0][...] = embedded.weights[...] = weights
    batch = a_batch(embedded.layout, weights, rng, masked=masked)
    for name in ("observations", "log_probabilities", "advantages", "returns", "importance"):
        object.__setattr__(batch, name, getattr(batch, name).astype(np.float32))
    gradient = np.zeros_like(embedded.weights)
    one = objective(embedded.layout, embedded.weights, batch, config, gradient)
    two = learner._backward(batch)
    for name, value in one.items():
        assert two[name] == pytest.approx(value, rel=1e-3, abs=1e-5), name
    theirs: Tensor = learner._tensors[0].grad
    np.testing.assert_allclose(theirs.numpy(), gradient, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["Levers", "Switches"])
def test_every_part_of_an_action_is_learnt(kind: str, name: str) -> None:
    config = SMALL.replaced(environment=f"{__name__}:{name}", learner=kind)
    learner: Any = make_learner(config)
    before = learner.iterate().reward
    for _ in range(24):
        after = learner.iterate().reward
    # Each of three parts gives 1 in each of 8 steps.
    assert before < 14
    assert after > 21
    right = learner.greedy(np.eye(4, dtype=np.float32))
    assert [list(map(int, action)) for action in right] == [
        Levers.wanted(index, learner.spaces.discrete, learner.spaces.starts) for index in range(4)
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["Doors", "Pairs"])
def test_an_invalid_action_is_never_taken(kind: str, name: str) -> None:
    """In collecting, and in evaluations of both kinds; the environment refuses invalid actions."""
    path = f"{__name__}:{name}"
    learner: Any = make_learner(SMALL.replaced(environment=path, learner=kind))
    for _ in range(16):
        turn = learner.iterate()
    assert turn.reward > 7  # of 8
    for is_sampled in (False, True):
        played = list(play(learner, path, episodes=5, seed=1, is_sampled=is_sampled))
        assert np.mean([episode.reward for episode in played]) > 7


class Doors(gym.Env[Any, Any]):
    """Some of four doors are open, which only the mask tells; the first open one is right."""

    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space: Any = spaces.Discrete(4)

    def action_masks(self) -> Any:
        """The open doors: always the last one, and one more."""
        return np.isin(np.arange(4), [self._right, 3])

    def _draw(self) -> Any:
        self._right = int(self.np_random.integers(3))
        return np.zeros(1, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._left = 8
        return self._draw(), {}

    def step(self, action: Any) -> Any:
        assert self.action_masks()[action]
        reward = float(action == self._right)
        self._left -= 1
        return self._draw(), reward, self._left == 0, False, {}


class Pairs(Doors):
    """The same with a second part, in which one of two choices is open."""

    action_space = spaces.MultiDiscrete([4, 2])

    def action_masks(self) -> Any:
        bit = self._right % 2
        return [super().action_masks(), np.array([bit == 0, bit == 1])]

    def step(self, action: Any) -> Any:
        assert self.action_masks()[1][action[1]]
        assert self.action_masks()[0][action[0]]
        reward = float(action[0] == self._right)
        self._left -= 1
        return self._draw(), reward, self._left == 0, False, {}


class Levers(gym.Env[Any, Any]):
    """Shows one of four lights; every lever has a right position for each of them."""

    observation_space = spaces.Box(0, 1, (4,), np.float32)
    action_space: Any = spaces.MultiDiscrete(list(PARTS), start=[0, 5, 0])
    sizes: ClassVar[tuple[int, ...]] = PARTS
    starts: ClassVar[tuple[int, ...]] = (0, 5, 0)

    @staticmethod
    def wanted(light: int, sizes: Any, starts: Any) -> list[int]:
        """The right positions."""
        return [
            start + (light + place) % size
            for place, (size, start) in enumerate(zip(sizes, starts, strict=True))
        ]

    def _show(self) -> Any:
        self._light = int(self.np_random.integers(4))
        return np.eye(4, dtype=np.float32)[self._light]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._left = 8
        return self._show(), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        right = self.wanted(self._light, self.sizes, self.starts)
        reward = float(np.sum(np.equal(action, right)))
        self._left -= 1
        return self._show(), reward, self._left == 0, False, {}


class Switches(Levers):
    """The same with three bits."""

    action_space = spaces.MultiBinary(3)
    sizes = (2, 2, 2)
    starts = (0, 0, 0)
