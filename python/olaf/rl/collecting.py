"""Steps copies of an environment for a policy, and keeps what was seen: a rollout."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olaf.rl.environments import describe, make_environment

MOST_NUMBERS = 16
"""Numbers of ``info`` that are kept of each episode."""


@dataclass(frozen=True)
class Rollout:
    """The experience of ``steps`` turns of ``environments`` copies."""

    observations: NDArray[np.float32]
    """``(steps + 1, environments, *observation_shape)``; the last follows the last action."""

    rewards: NDArray[np.float32]
    """``(steps, environments)``, unscaled."""

    terminated: NDArray[np.bool_]
    """``(steps, environments)``: the episode ended in a terminal state of value 0."""

    truncated: NDArray[np.bool_]
    """``(steps, environments)``: the episode was cut, for instance by a time limit."""

    final: list[tuple[int, int, NDArray[np.float32]]]
    """(step, environment, next observation) at each cut, to bootstrap from."""

    episode_rewards: list[float]
    """Rewards of the episodes that ended, in order, unscaled."""

    episode_steps: list[int] = field(default_factory=list)
    """Steps of each of these episodes."""

    episode_numbers: list[dict[str, float]] = field(default_factory=list)
    """Numbers of each episode's last ``info``, see `numbers_of`."""


class Collector:
    """Steps copies of an environment for a policy, in turn; episodes continue across rollouts."""

    def __init__(
        self, name: str, environments: int, seeds: Sequence[int], *, flat: bool = True
    ) -> None:
        """Make and reset the copies, each with its seed. Raises ``UnusableEnvironmentError``.

        flat: see `make_environment`.
        """
        self.envs = [make_environment(name, flat=flat) for _ in range(environments)]
        self.spaces = describe(name, self.envs[0])
        self._now = np.zeros((environments, *self.spaces.observation_shape), np.float32)
        self._so_far = [0.0] * environments
        self._steps_so_far = [0] * environments
        self._steps = 0
        self.on_steps: Callable[[int], None] = lambda steps: None
        """Called after each row of steps with the environment steps since the collector was made.
        An exception ends the rollout and passes through."""
        for index, (env, seed) in enumerate(zip(self.envs, seeds, strict=True)):
            self._now[index] = env.reset(seed=int(seed))[0]

    def collect(
        self,
        act: Callable[[int, NDArray[np.float32]], Sequence[Any]],
        steps: int,
        episodes: int = 0,
    ) -> Rollout:
        """Take ``steps`` steps; or, with ``episodes``, as many as that number of episodes needs.

        act: (step, observations ``(environments, *observation_shape)``) -> one action for each.
        Raises what the environment and ``on_steps`` raise.
        """
        count = len(self.envs)
        room = 1024 if episodes else steps
        shape = self.spaces.observation_shape
        observations = np.empty((room + 1, count, *shape), np.float32)
        rewards = np.zeros((room, count), np.float32)
        terminated = np.zeros((room, count), np.bool_)
        truncated = np.zeros((room, count), np.bool_)
        final: list[tuple[int, int, NDArray[np.float32]]] = []
        ended: list[float] = []
        lengths: list[int] = []
        numbers: list[dict[str, float]] = []
        observations[0] = self._now
        calls = [env.step for env in self.envs]
        so_far = self._so_far
        # The turn of each running episode's first step.
        began = [-steps for steps in self._steps_so_far]
        on_steps, total = self.on_steps, self._steps
        turn = 0
        while (len(ended) < episodes) if episodes else (turn < steps):
            if turn == room:
                room *= 2
                observations = grown(observations, room + 1)
                rewards, terminated = grown(rewards, room), grown(terminated, room)
                truncated = grown(truncated, room)
            actions = act(turn, observations[turn])
            following = observations[turn + 1]
            for index in range(count):
                observation, reward, over, cut, info = calls[index](actions[index])
                rewards[turn, index] = reward
                so_far[index] += float(reward)
                if over or cut:
                    ended.append(so_far[index])
                    so_far[index] = 0.0
                    lengths.append(turn + 1 - began[index])
                    began[index] = turn + 1
                    numbers.append(numbers_of(info))
                    if over:
                        terminated[turn, index] = True
                    else:
                        truncated[turn, index] = True
                        final.append((turn, index, np.array(observation, np.float32)))
                    observation, _ = self.envs[index].reset()
                following[index] = observation
            turn += 1
            total += count
            on_steps(total)
        self._steps = total
        self._steps_so_far = [turn - begin for begin in began]
        self._now = observations[turn].copy()
        return Rollout(
            observations[: turn + 1],
            rewards[:turn],
            terminated[:turn],
            truncated[:turn],
            final,
            ended,
            lengths,
            numbers,
        )

    def running_rewards(self) -> list[float]:
        """Reward so far of each running episode."""
        return list(self._so_far)

    def close(self) -> None:
        """Close the environments."""
        for env in self.envs:
            env.close()


def numbers_of(info: Any) -> dict[str, float]:
    """The numbers of an episode's last ``info``, by name: at most `MOST_NUMBERS`, all finite.

    ``is_success`` and ``success`` are both called ``success``.
    """
    found: dict[str, float] = {}
    if not isinstance(info, Mapping):
        return found
    for name, value in info.items():
        number = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
        if not isinstance(number, Real | np.bool_) or not math.isfinite(number):
            continue
        found.setdefault("success" if name == "is_success" else str(name), float(number))
        if len(found) == MOST_NUMBERS:
            break
    return found


def grown(array: NDArray[Any], length: int) -> NDArray[Any]:
    """Return a longer copy of ``array``, zeros at the end."""
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
