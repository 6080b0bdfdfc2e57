"""The built-in default learner: PPO of a small network in numpy.

Here are the learner, its rollout and its epochs. The mathematics is in ``objective`` (with
hand-written gradients), ``advantages``, ``adam`` and ``distributions``. It needs neither torch nor
Ray. The tests check its gradients against finite differences and against torch.

PPO: Schulman et al. 2017; the advantages: Schulman et al. 2016; how a worker uses it: OLAF §2.1.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olaf.rl.actor_critic import Layout, forward
from olaf.rl.adam import Adam
from olaf.rl.advantages import explained_variance, generalised_advantages
from olaf.rl.collecting import Collector, Rollout
from olaf.rl.distributions import draw, likeliest, log_probability, valid
from olaf.rl.environments import known_reward_scale
from olaf.rl.learner import Iteration, LearnerConfig, Parts, check_finite
from olaf.rl.moments import Carried
from olaf.rl.objective import Batch, objective
from olaf.rl.schedules import rate


class NumpyLearner:
    """PPO with manual gradients on one flat float32 vector. Implements ``Learner``."""

    memory_size = 0
    """Floats that the network remembers of an episode, see `policy`."""

    _sees_images = False
    """True if the default network takes images in their shape."""

    def __init__(
        self,
        config: LearnerConfig,
        *,
        worker: int = 0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Make environments and weights from (config.seed, worker).

        Raises ``UnusableEnvironmentError``.
        """
        self.config, self.worker = config, worker
        self._clock = clock or time.perf_counter
        self._rng = np.random.default_rng([config.seed, worker])
        seeds = seeds_of_copies(self._rng, config)
        self._collector = Collector(
            config.environment,
            config.environments,
            seeds,
            flat=not config.module,  # the user's own module sees observations in their shape
            images=self._sees_images,
            options=config.environment_options,
            worker=worker,
            parallel=config.parallel,
            max_steps=config.max_episode_steps,
        )
        self.spaces = self._collector.spaces
        self.layout = Layout(
            self.spaces.observation,
            config.hidden,
            self.spaces.actions,
            self.spaces.continuous,
            self.spaces.discrete,
        )
        self._scale = config.reward_scale or known_reward_scale(config.environment)
        self._carried = Carried(config, self.spaces.observation, returns=self._scale is None)
        self._last_reward: float | None = None
        self._turn: Turn | None = None
        self._steps = 0
        self._rate = config.learning_rate
        self.steps_of_run: Callable[[], int] = lambda: self._steps
        """See `Learner.steps_of_run`."""
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        """Make the weights. The server keeps only the first worker's weights (OLAF §2.1)."""
        config = self.config
        self.layout.initial(self._rng, config.log_std)  # keeps the place in this worker's numbers
        self.weights = self.layout.initial(self._first_draws(), config.log_std)
        self._views = self.layout.views(self.weights)
        self._update = np.zeros_like(self.weights)
        self._adam = Adam(self.layout.size, config.adam_beta1, config.adam_beta2)

    def _first_draws(self) -> np.random.Generator:
        """Worker 0's generator, as it was before it drew its first weights.

        All workers take their first weights from it, so that the model does not depend on which
        worker joins first.
        """
        rng = np.random.default_rng([self.config.seed, 0])
        seeds_of_copies(rng, self.config)
        return rng

    def _outputs(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """Outputs of the policy head, then the value, for observations ``(batch, observation)``."""
        return forward(self.layout, self._views, observations)[0]

    def _log_std(self) -> NDArray[np.float32] | None:
        """Logarithm of the standard deviation of continuous actions ``(actions,)``."""
        return self._views.get("log_std")

    @property
    def parameters(self) -> int:
        """Number of floats of the model."""
        return sum(part.size for part in self._network()) + self._carried.size

    def parts(self) -> Parts:
        """Return the live model: the network's weights, then the moments that it carries."""
        return [*self._network(), *self._carried.parts()]

    def named_parts(self) -> dict[str, NDArray[np.float32]]:
        """Return the live model by name, in the order of `parts`: views."""
        return {**self._named_network(), **self._carried.named()}

    def _network(self) -> Parts:
        """The network's live weights: one float32 vector ``(layout.size,)``."""
        return [self.weights]

    def _named_network(self) -> dict[str, NDArray[np.float32]]:
        return dict(self._views)

    def _inputs(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """Observations as the network sees them: normalised, if the model carries moments."""
        moments = self._carried.observations
        return moments.normalised(observations) if moments else observations

    def normalisation(self) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        """(shift, factor): the network sees ``(x - shift) * factor``, clipped to `moments.LIMIT`.

        None if it sees observations as they are.
        """
        self._take_moments()
        moments = self._carried.observations
        return (moments.shift, moments.factor) if moments else None

    def _take_moments(self) -> None:
        """Use the present model's moments in `_inputs`; before this, those of an earlier one."""
        if self._carried.observations:
            self._carried.observations.refresh()

    def greedy(
        self,
        observations: NDArray[np.float32],
        masks: NDArray[np.bool_] | None = None,
        memory: NDArray[np.float32] | None = None,
    ) -> list[Any]:
        """The most likely action for each of the observations ``(batch, *observation_shape)``.

        masks: ``(batch, actions)``, False for invalid actions; None if all are valid.
        memory: as for `policy`.
        """
        policy = self.policy(observations, memory)[:, :-1]
        if self.spaces.continuous:
            return self.spaces.to_environment(policy)
        return self.spaces.to_environment(likeliest(valid(policy, masks), self.spaces.discrete))

    def sampled(
        self,
        observations: NDArray[np.float32],
        rng: np.random.Generator,
        masks: NDArray[np.bool_] | None = None,
        memory: NDArray[np.float32] | None = None,
    ) -> list[Any]:
        """An action for each of the observations, drawn from the policy as in training.

        masks, memory: as for `greedy`.
        """
        policy = self.policy(observations, memory)[:, :-1]
        noise = draw(rng, policy.shape, self.spaces.continuous)
        log_std = self._log_std()
        if log_std is not None:
            return self.spaces.to_environment(policy + np.exp(log_std) * noise)
        drawn = likeliest(valid(policy, masks) + noise, self.spaces.discrete)
        return self.spaces.to_environment(drawn)

    def policy(
        self, observations: NDArray[np.float32], memory: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """Logits or means, and in the last column the value: ``(batch, actions + 1)``.

        memory: ``(batch, memory_size)``, zero before an episode; replaced by the memory after this
        step. For a network that has one.
        """
        self._take_moments()
        return self._outputs(self._inputs(observations))

    def wander(self, steps: int, seconds: float) -> NDArray[np.float32]:
        """Play at most ``steps`` steps, and stop after ``seconds``; the observations seen.

        Returns ``(rows, features)``. The learner's numbers are then no longer those of its seed.
        """
        config, begin = self.config, time.perf_counter()
        few = config.replaced(steps_per_update=config.environments, episodes_per_update=0)
        found: list[NDArray[np.float32]] = []
        self.config = few
        try:
            while sum(map(len, found)) < steps and time.perf_counter() < begin + seconds:
                rollout = self._collect()[0]
                found.append(rollout.observations.reshape(-1, self.spaces.observation))
        finally:
            self.config = config
        return np.concatenate(found)

    def watch(self, on_steps: Callable[[int], None]) -> None:
        """Call ``on_steps`` after each row of steps, with the steps so far (`Collector.on_steps`).

        An exception that it raises ends `collect` and passes through.
        """
        self._collector.on_steps = on_steps

    def longest_episode(self) -> int:
        """Steps so far of the longest running episode: one that is very long may never end."""
        return self._collector.longest_episode()

    def close(self) -> None:
        """Close the environments."""
        self._collector.close()

    def iterate(self) -> Iteration:
        """Collect, run the local epochs, return the update."""
        self.collect()
        return self.learn()

    def collect(self) -> int:
        """Run the policy for one turn; return the environment steps over all copies."""
        begin = self._clock()
        rollout, actions, log_probabilities = self._collect()
        reward = self._reward(rollout.episode_rewards)
        seconds = self._clock() - begin
        self._steps += rollout.steps
        self._turn = Turn(rollout, actions, log_probabilities, reward, seconds, self.config.passes)
        return rollout.steps

    def learn(self, passes: int | None = None) -> Iteration:
        """Make passes over the collected turn; return the update.

        Raises ``LearnerError`` if the update is not finite: it must not reach the others.
        """
        turn = self._turn
        if turn is None:
            raise RuntimeError("learn() follows collect()")
        begin, rollout = self._clock(), turn.rollout
        is_first = turn.batch is None
        if turn.batch is None:
            turn.batch = self._batch(turn)
            turn.explained = explained_variance(turn.batch.advantages, turn.batch.returns)
        batch = turn.batch
        count = turn.left if passes is None else min(passes, turn.left)
        self._rate = rate(self.config, self.steps_of_run())
        try:
            update, losses = self._learn(batch, count)
        except (RuntimeError, ValueError):  # torch's own, of numbers that are not finite
            check_finite(self._network(), self)
            raise
        update = [*update, *self._carried.step(count / self.config.passes)]
        check_finite(update, self)
        losses["explained_variance"] = turn.explained
        if self.config.gradient_kind == "accumulated":
            losses["learning_rate"] = self._rate
        turn.left -= count
        if not turn.left:
            self._turn = None
        return Iteration(
            update=update,
            gamma=self.config.gamma,
            reward=turn.reward,
            steps=rollout.steps if is_first else 0,
            episode_rewards=tuple(rollout.episode_rewards) if is_first else (),
            episode_steps=tuple(rollout.episode_steps) if is_first else (),
            episode_numbers=tuple(rollout.episode_numbers) if is_first else (),
            seconds_env=turn.seconds if is_first else 0.0,
            seconds_learn=self._clock() - begin,
            passes=count,
            is_last=not turn.left,
            losses=losses,
        )

    def _collect(self) -> tuple[Rollout, NDArray[Any], NDArray[np.float32]]:
        """Run the policy. Returns the rollout, its actions ``(steps, environments[, parts or
        actions])``, and the logarithms of their probabilities ``(steps * environments,)``."""
        config, spaces = self.config, self.spaces
        count = config.environments
        turns = 256 if config.episodes_per_update else -(-config.steps_per_update // count)
        width = (count, spaces.actions)
        acted: list[NDArray[Any]] = []
        heads: list[NDArray[np.float32]] = []
        noise = np.empty((0, *width), np.float32)
        self._take_moments()
        log_std, is_single = self._log_std(), len(spaces.discrete) == 1
        deviation = None if log_std is None else np.exp(log_std)
        look, outputs_of, to_environment = self._inputs, self._act, spaces.to_environment

        def act(
            turn: int, observations: NDArray[np.float32], masks: NDArray[np.bool_] | None
        ) -> list[Any]:
            nonlocal noise
            if turn % turns == 0:
                noise = draw(self._rng, (turns, *width), spaces.continuous)
            head = outputs_of(turn, look(observations))[:, :-1]
            if masks is not None:
                head = valid(head, masks)
            heads.append(head)
            if deviation is not None:
                actions = head + deviation * noise[turn % turns]
            elif is_single:
                actions = (head + noise[turn % turns]).argmax(axis=1)
            else:
                actions = likeliest(head + noise[turn % turns], spaces.discrete)
            acted.append(actions)
            return to_environment(actions)

        rollout = self._collector.collect(act, turns, config.episodes_per_update)
        actions = np.array(acted)
        flat = actions.reshape(-1, *actions.shape[2:])
        logs = log_probability(np.concatenate(heads), flat, log_std, spaces.discrete)
        return rollout, actions, logs

    def _batch(self, turn: "Turn") -> Batch:
        """Turn a rollout into the inputs of the objective, ``(steps * environments, ..)``.

        Values and probabilities are those of the present weights, which may be newer than the
        collecting ones. PPO then bounds the policy by the newer one, and each step is weighted by
        its importance (the decoupled objective of Hilton et al. 2022).
        """
        rollout, actions = turn.rollout, turn.actions
        turns, count = rollout.rewards.shape
        seen = rollout.observations.reshape((turns + 1) * count, *rollout.observations.shape[2:])
        factor = self._carried.see(
            seen[: turns * count], rollout.rewards, rollout.terminated | rollout.truncated
        )
        rewards = rollout.rewards * np.float32(self._scale or factor)
        self._take_moments()
        seen = self._inputs(seen)
        outputs, following = self._replayed(seen, rollout)
        values = outputs[:, -1].reshape(turns, count)
        advantages = self._advantages(
            rewards,
            values,
            following=following,
            terminated=rollout.terminated,
            ended=rollout.terminated | rollout.truncated,
        )
        steps = turns * count
        flat_actions = actions.reshape(steps, *actions.shape[2:])
        masks = None if rollout.masks is None else rollout.masks.reshape(steps, -1)
        policy = valid(outputs[:, :-1], masks)
        now = log_probability(policy, flat_actions, self._log_std(), self.spaces.discrete)
        ratio = np.exp(
            np.minimum(now - turn.log_probabilities, np.log(self.config.importance_clip))
        )
        batch = Batch(
            seen[:steps],
            flat_actions,
            now,
            advantages.reshape(steps),
            (advantages + values).reshape(steps),
            ratio.astype(np.float32),
            masks,
        )
        if rollout.skipped is None:
            return batch
        return batch.rows(np.flatnonzero(~rollout.skipped.reshape(steps)))

    def _act(self, turn: int, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The outputs for the next step of all copies, the ``turn``-th of a rollout."""
        return self._outputs(inputs)

    def _replayed(
        self, seen: NDArray[np.float32], rollout: Rollout
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Outputs of the present weights for a rollout's steps, and the values of what followed.

        seen: the rollout's observations as the network sees them, ``((turns + 1) * count, ..)``.
        Returns ``(turns * count, actions + 1)`` and ``(turns, count)``.
        """
        turns, count = rollout.rewards.shape
        outputs = self._outputs(seen)
        following = outputs[count:, -1].reshape(turns, count).copy()
        if rollout.final:
            # A cut episode would have continued: bootstrap from the value of the state where it was
            # cut, not of the state after the reset.
            cut = self._outputs(self._inputs(np.array([f[2] for f in rollout.final])))
            for (at, index, _), value in zip(rollout.final, cut[:, -1], strict=True):
                following[at, index] = value
        return outputs[: turns * count], following

    def _advantages(
        self,
        rewards: NDArray[np.float32],
        values: NDArray[np.float32],
        *,
        following: NDArray[np.float32],
        terminated: NDArray[np.bool_],
        ended: NDArray[np.bool_],
    ) -> NDArray[np.float32]:
        """``generalised_advantages`` with this learner's configuration."""
        return generalised_advantages(
            rewards,
            values,
            following=following,
            terminated=terminated,
            ended=ended,
            discount=self.config.discount,
            trace=self.config.trace,
        )

    def _learn(self, batch: Batch, passes: int) -> tuple[Parts, dict[str, float]]:
        """Make passes in place on the weights; return the update and the last mean losses."""
        config = self.config
        before = self.weights.copy()
        gradient = np.empty_like(self.weights)
        if config.gradient_kind == "gradient":
            losses = objective(self.layout, self.weights, batch.normalised(), config, gradient)
            # OLAF §2.1 adds gamma g, so g points uphill.
            np.negative(gradient, out=self._update)
            losses["gradient_norm"] = float(np.sqrt(gradient @ gradient))
            return [self._update], losses
        total: dict[str, float] = {}
        for epoch in self._epochs(batch, passes):
            total = {}
            for rows in epoch:
                losses = objective(self.layout, self.weights, rows, config, gradient)
                norm = losses["gradient_norm"] = float(np.sqrt(gradient @ gradient))
                for name, value in losses.items():
                    total[name] = total.get(name, 0.0) + value / len(epoch)
                if norm > config.max_gradient_norm:
                    gradient *= np.float32(config.max_gradient_norm / norm)
                self._adam.step(self.weights, gradient, self._rate)
        settle(self.weights, before, self._update, config)
        return [self._update], total

    def _epochs(self, batch: Batch, passes: int) -> Iterator[list[Batch]]:
        """The minibatches of each pass: shuffled, equal in size, with normalised advantages."""
        steps = len(batch.advantages)
        count = max(1, round(steps / self.config.minibatch))
        edges = [steps * index // count for index in range(count + 1)]
        for _ in range(passes):
            shuffled = batch.rows(self._rng.permutation(steps))
            yield [shuffled.rows(slice(low, high)).normalised() for low, high in pairwise(edges)]

    def _reward(self, ended: list[float]) -> float:
        if ended:
            self._last_reward = float(np.mean(ended))
        if self._last_reward is None:
            return float(np.mean(self._collector.running_rewards()))
        return self._last_reward


def seeds_of_copies(rng: np.random.Generator, config: LearnerConfig) -> list[int]:
    """Draw the seeds of a worker's copies of the environment: its generator's first numbers."""
    return [int(seed) for seed in rng.integers(2**31 - 1, size=config.environments)]


def settle(
    weights: NDArray[np.float32],
    before: NDArray[np.float32],
    update: NDArray[np.float32],
    config: LearnerConfig,
) -> None:
    """Write the update, and undo the part of the weights' change that is not pushed.

    Afterwards weights = before + gamma update, as on the server without other workers: a worker
    that continues before an answer arrives starts from there. All arrays have one shape.
    """
    np.subtract(weights, before, out=update)
    update *= np.float32(config.strength)
    np.add(before, update, out=weights)
    update /= np.float32(config.gamma)


@dataclass
class Turn:
    """A turn's experience from `NumpyLearner.collect` to its last pass."""

    rollout: Rollout
    actions: NDArray[Any]
    """``(steps, environments[, parts or actions])``"""
    log_probabilities: NDArray[np.float32]
    """Log probabilities ``(steps * environments,)`` of the actions under the collecting policy."""
    reward: float
    """See `Iteration.reward`."""
    seconds: float
    """Seconds of collecting, by the learner's clock."""
    left: int
    """Number of remaining passes."""
    batch: "Batch | None" = None
    """The steps as the first pass saw them."""
    explained: float = 0.0
    """See `explained_variance`."""
