"""The four algorithms of iSwitch §5.1 on small tasks: each worker computes one gradient at a time.

A learner plays with the weights that it is given and returns a gradient for them. Nobody but the
caller changes weights, so that every way to apply gradients can be compared.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from olaf.experiments.iswitch.networks import Dense, Floats, softmax

HIDDEN = (64, 64)
DISCOUNT = 0.99


class Learner(Protocol):
    """One worker's half of a training."""

    returns: list[float]
    """Rewards of the episodes so far; a training takes them out."""

    def gradient(self, weights: Floats) -> Floats:
        """The gradient of the loss at ``weights``, with what the worker has seen."""


class Task:
    """An environment that begins anew, and the rewards of its episodes."""

    def __init__(self, name: str, seed: int) -> None:
        self._env: Any = gymnasium.make(name)
        self._env.action_space.seed(seed)
        state, _ = self._env.reset(seed=seed)
        self.state: Floats = np.asarray(state, np.float32)
        self.returns: list[float] = []
        self._sum = 0.0

    @property
    def space(self) -> Any:
        """Its actions."""
        return self._env.action_space

    def step(self, action: Any) -> tuple[float, Floats, bool, bool]:
        """Reward, the state that followed, whether it was the end, whether an episode ended."""
        state, reward, ended, cut, _ = self._env.step(action)
        self._sum += float(reward)
        followed = np.asarray(state, np.float32)
        if ended or cut:
            self.returns.append(self._sum)
            self._sum = 0.0
            state, _ = self._env.reset()
        self.state = np.asarray(state, np.float32)
        return float(reward), followed, bool(ended), bool(ended or cut)


class Replay:
    """The last transitions of a worker; it stays local."""

    def __init__(self, size: int, state: int, action: int) -> None:
        self._rows = np.zeros((size, 2 * state + action + 2), np.float32)
        self._cuts = np.cumsum([state, action, state, 1])
        self._count = 0

    def add(self, state: Floats, action: Any, followed: Floats, reward: float, end: bool) -> None:
        """One transition."""
        row = np.concatenate([state, np.atleast_1d(action), followed, [reward, float(end)]])
        self._rows[self._count % len(self._rows)] = row
        self._count += 1

    def draw(self, random: np.random.Generator, batch: int) -> list[Floats]:
        """States, actions, states that followed, rewards, ends: ``(batch, ..)`` each."""
        rows = self._rows[random.integers(min(self._count, len(self._rows)), size=batch)]
        return np.split(rows, self._cuts, axis=1)


class Dqn:
    """Double DQN with a replay buffer, on CartPole."""

    task = "CartPole-v1"
    rate = 5e-4
    network = Dense([4, *HIDDEN, 2])
    batch, play, fill = 64, 2, 256
    refresh, explore = 100, 1500
    """Gradients between two copies into the target network; gradients until little is random."""

    def __init__(self, seed: int) -> None:
        self._task = Task(self.task, seed)
        self.returns = self._task.returns
        self._random = np.random.default_rng(seed)
        self._replay = Replay(20_000, 4, 1)
        self._target: Floats = np.zeros(0, np.float32)
        self._gradients = 0

    @classmethod
    def initial(cls, random: np.random.Generator) -> Floats:
        """The first weights."""
        return cls.network.initial(random, 0.1)

    def gradient(self, weights: Floats) -> Floats:
        """The gradient of the Huber loss of a batch."""
        for _ in range(self.play if self._gradients else self.fill):
            self._play(weights)
        if self._gradients % self.refresh == 0:
            self._target = weights.copy()
        self._gradients += 1
        states, actions, followed, rewards, ends = self._replay.draw(self._random, self.batch)
        best = self.network.forward(weights, followed)[-1].argmax(1)
        rows = np.arange(self.batch)
        worth = self.network.forward(self._target, followed)[-1][rows, best]
        wanted = rewards[:, 0] + DISCOUNT * (1 - ends[:, 0]) * worth
        values = self.network.forward(weights, states)
        taken = actions[:, 0].astype(int)
        slope = np.zeros_like(values[-1])
        slope[rows, taken] = np.clip(values[-1][rows, taken] - wanted, -1, 1) / self.batch
        return self.network.backward(weights, values, slope)[0]

    def _play(self, weights: Floats) -> None:
        state = self._task.state
        if self._random.random() < max(0.05, 1 - self._gradients / self.explore):
            action = int(self._random.integers(2))
        else:
            action = int(self.network.forward(weights, state[None])[-1].argmax())
        reward, followed, end, _ = self._task.step(action)
        self._replay.add(state, action, followed, reward, end)


class Rollout(NamedTuple):
    """Steps in a row: an array of as many values each, states ``(steps, 4)``."""

    states: Floats
    actions: NDArray[Any]
    chances: NDArray[Any]
    """Probabilities with which the actions were drawn."""
    advantages: NDArray[Any]
    returns: NDArray[Any]

    def of(self, chosen: NDArray[Any]) -> Rollout:
        """Some of the steps."""
        return Rollout(*(values[chosen] for values in self))


class A2c:
    """Advantage actor-critic, on CartPole: the gradient of each rollout is used once."""

    task = "CartPole-v1"
    rate = 2e-3
    actor, critic = Dense([4, *HIDDEN, 2]), Dense([4, *HIDDEN, 1])
    steps, smoothing, entropy = 32, 0.95, 0.01

    def __init__(self, seed: int) -> None:
        self._task = Task(self.task, seed)
        self.returns = self._task.returns
        self._random = np.random.default_rng(seed)

    @classmethod
    def initial(cls, random: np.random.Generator) -> Floats:
        """The first weights: those of the actor, then those of the critic."""
        return np.concatenate([cls.actor.initial(random, 0.01), cls.critic.initial(random)])

    def gradient(self, weights: Floats) -> Floats:
        """The gradient of the policy's and the critic's loss over a rollout."""
        return self._descent(weights, self._rollout(weights, self.steps), clips=False)

    def _rollout(self, weights: Floats, steps: int) -> Rollout:
        own, judge = np.split(weights, [self.actor.size])
        states = np.zeros((steps + 1, 4), np.float32)
        actions, chances, rewards = np.zeros(steps, int), np.zeros(steps), np.zeros(steps)
        goes_on, ended_in = np.ones(steps), np.zeros((steps, 4), np.float32)
        cut = np.zeros(steps, bool)
        for at in range(steps):
            states[at] = self._task.state
            shares = softmax(self.actor.forward(own, states[at][None])[-1])[0]
            actions[at] = int(self._random.random() < shares[1])
            chances[at] = shares[actions[at]]
            rewards[at], ended_in[at], end, is_over = self._task.step(actions[at])
            goes_on[at], cut[at] = not is_over, is_over and not end
        states[steps] = self._task.state
        values = self.critic.forward(judge, states)[-1][:, 0]
        if cut.any():  # the time limit is no end: the state that was left has a value
            rewards[cut] += DISCOUNT * self.critic.forward(judge, ended_in[cut])[-1][:, 0]
        advantages = np.zeros(steps + 1)
        for at in reversed(range(steps)):
            surprise = rewards[at] + DISCOUNT * values[at + 1] * goes_on[at] - values[at]
            kept = DISCOUNT * self.smoothing * goes_on[at]
            advantages[at] = surprise + kept * advantages[at + 1]
        advantages = advantages[:-1]
        return Rollout(states[:-1], actions, chances, advantages, advantages + values[:-1])

    def _descent(self, weights: Floats, rollout: Rollout, *, clips: bool) -> Floats:
        """clips: the gradient of PPO's clipped ratio, otherwise that of the log-probability."""
        states, actions, chances, advantages, returns = rollout
        own, judge = np.split(weights, [self.actor.size])
        count, rows = len(actions), np.arange(len(actions))
        scaled = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        values = self.actor.forward(own, states)
        shares = softmax(values[-1])
        factor = scaled
        if clips:
            ratio = shares[rows, actions] / chances
            is_clipped = np.where(scaled > 0, ratio > 1.2, ratio < 0.8)
            factor = np.where(is_clipped, 0.0, ratio * scaled)
        slope = shares * factor[:, None]
        slope[rows, actions] -= factor
        logs = np.log(shares + 1e-8)
        # Of minus the entropy, by the logits.
        slope += self.entropy * shares * (logs - (shares * logs).sum(1, keepdims=True))
        policy, _ = self.actor.backward(own, values, (slope / count).astype(np.float32))
        judged = self.critic.forward(judge, states)
        error = (judged[-1][:, 0] - returns)[:, None] / count
        # One value moves the critic by no more than an error of `count` does.
        worth, _ = self.critic.backward(judge, judged, np.clip(error, -1, 1).astype(np.float32))
        return _clipped(np.concatenate([policy, 0.5 * worth]), 0.5)


class Ppo(A2c):
    """PPO on CartPole: a rollout has four passes of four gradients."""

    rate = 1e-3
    steps, passes, parts = 128, 4, 4

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._batches: list[Rollout] = []

    def gradient(self, weights: Floats) -> Floats:
        """The gradient of a part of the rollout; a new one is played when all parts are used."""
        if not self._batches:
            rollout = self._rollout(weights, self.steps)
            for _ in range(self.passes):
                order = self._random.permutation(self.steps)
                self._batches += [rollout.of(chosen) for chosen in np.split(order, self.parts)]
        return self._descent(weights, self._batches.pop(), clips=True)


class Ddpg:
    """DDPG with a replay buffer, on Pendulum. The target networks follow the weights slowly."""

    task = "Pendulum-v1"
    rate = 1e-3
    actor, critic = Dense([3, *HIDDEN, 1]), Dense([4, *HIDDEN, 1])
    batch, fill, follow, noise, most = 64, 500, 0.01, 0.3, 2.0

    def __init__(self, seed: int) -> None:
        self._task = Task(self.task, seed)
        self.returns = self._task.returns
        self._random = np.random.default_rng(seed)
        self._replay = Replay(50_000, 3, 1)
        self._target: Floats | None = None

    @classmethod
    def initial(cls, random: np.random.Generator) -> Floats:
        """The first weights: those of the actor, then those of the critic."""
        return np.concatenate([cls.actor.initial(random, 0.1), cls.critic.initial(random, 0.1)])

    def gradient(self, weights: Floats) -> Floats:
        """The gradients of the critic's squared error, and of minus the actor's worth."""
        for _ in range(self.fill if self._target is None else 1):
            self._play(weights)
        if self._target is None:
            self._target = weights.copy()
        self._target += np.float32(self.follow) * (weights - self._target)
        states, actions, followed, rewards, ends = self._replay.draw(self._random, self.batch)
        later = self._acts(self._target, followed)[-1]
        worth = self._judges(self._target, followed, later)[-1]
        wanted = rewards / 10 + DISCOUNT * (1 - ends) * worth
        judge = weights[self.actor.size :]
        judged = self._judges(weights, states, actions)
        slope = 2 * (judged[-1] - wanted) / self.batch
        of_critic, _ = self.critic.backward(judge, judged, slope.astype(np.float32))
        acted = self._acts(weights, states)
        liked = self._judges(weights, states, acted[-1])
        down = np.full_like(liked[-1], -1 / self.batch)
        _, by_inputs = self.critic.backward(judge, liked, down)
        by_action = by_inputs[:, -1:] * self.most * (1 - (acted[-1] / self.most) ** 2)
        of_actor, _ = self.actor.backward(weights[: self.actor.size], acted, by_action)
        return np.concatenate([_clipped(of_actor, 1.0), _clipped(of_critic, 1.0)])

    def _acts(self, weights: Floats, states: Floats) -> list[Floats]:
        values = self.actor.forward(weights[: self.actor.size], states)
        return [*values[:-1], np.float32(self.most) * np.tanh(values[-1])]

    def _judges(self, weights: Floats, states: Floats, actions: Floats) -> list[Floats]:
        inputs = np.concatenate([states, actions], axis=1)
        return self.critic.forward(weights[self.actor.size :], inputs)

    def _play(self, weights: Floats) -> None:
        state = self._task.state
        if self._target is None:
            action = self._random.uniform(-self.most, self.most, 1)
        else:
            drawn = self._random.normal(scale=self.noise, size=1)
            action = np.clip(self._acts(weights, state[None])[-1][0] + drawn, -2.0, 2.0)
        reward, followed, end, _ = self._task.step(action.astype(np.float32))
        self._replay.add(state, action, followed, reward, end)


LEARNERS: dict[str, Any] = {"DQN": Dqn, "A2C": A2c, "PPO": Ppo, "DDPG": Ddpg}
"""By the paper's names; each is made with a seed."""


def _clipped(gradient: Floats, most: float) -> Floats:
    """At most of this norm."""
    norm = float(np.linalg.norm(gradient))
    return gradient if norm <= most else (gradient * (most / norm)).astype(np.float32)
