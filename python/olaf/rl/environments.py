"""Environments: every id that gymnasium knows, checked once, seeded, and stepped for a policy.

``module:ID`` and ``module:Class`` name environments of the user's own, see `olaf.rl.own`.
Nothing is shown: no window, no sound, and pygame prints no greeting.
"""

import difflib
import math
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

import gymnasium as gym
from gymnasium import spaces

from olaf.rl.learner import LearnerError
from olaf.rl.own import described, import_own

REWARD_SCALES = {
    "LunarLander": 0.02,
    "LunarLanderContinuous": 0.02,
    "CartPole": 0.1,
    "Acrobot": 0.1,
    "Pendulum": 0.02,
}
"""Factors on rewards, by name without version, that bring the discounted return near 1..10."""


class UnusableEnvironmentError(LearnerError):
    """The environment is unknown, or no learner here supports it; the message says what to do."""


@dataclass(frozen=True)
class Spaces:
    """Observations and actions of an environment."""

    observation: int
    """Number of floats in one observation."""

    actions: int
    """Number of discrete actions, or of dimensions of a continuous one."""

    continuous: bool

    start: int
    """First value of a discrete action space."""

    low: NDArray[np.float32]
    """Lower bounds of a continuous action, ``(actions,)``; empty for discrete ones."""

    high: NDArray[np.float32]

    shape: tuple[int, ...]
    """Shape in which the environment wants a continuous action."""

    seen: tuple[int, ...] = ()
    """Shape of one observation that is not flat: ``(height, width, channels)`` of an image."""

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one observation; ``(observation,)`` if it is flat."""
        return self.seen or (self.observation,)

    def to_environment(self, actions: NDArray[np.float32]) -> NDArray[np.float32]:
        """Map a policy's actions ``(count, actions)`` to the environment's ``(count, *shape)``.

        -1..1 becomes the bounds, clipped; dimensions without finite bounds pass unchanged.
        """
        mapped: NDArray[np.float32] = np.clip(
            actions * self._half + self._middle, self._lowest, self._highest
        )
        return mapped.reshape(len(actions), *self.shape)

    @cached_property
    def _bounded(self) -> NDArray[np.bool_]:
        return np.isfinite(self.low) & np.isfinite(self.high)

    @cached_property
    def _ends(self) -> NDArray[np.float32]:
        low, high = np.where(self._bounded, (self.low, self.high), ((-1,), (1,)))
        return np.array((low, high), np.float32)

    @cached_property
    def _half(self) -> NDArray[np.float32]:
        low, high = self._ends
        half: NDArray[np.float32] = (high - low) / 2
        return half

    @cached_property
    def _middle(self) -> NDArray[np.float32]:
        low, high = self._ends
        middle: NDArray[np.float32] = (high + low) / 2
        return middle

    @cached_property
    def _lowest(self) -> NDArray[np.float32]:
        return np.where(self._bounded, self.low, -np.inf).astype(np.float32)

    @cached_property
    def _highest(self) -> NDArray[np.float32]:
        return np.where(self._bounded, self.high, np.inf).astype(np.float32)


def make_environment(
    name: str, *, flat: bool = True, render_mode: str | None = None
) -> "gym.Env[Any, Any]":
    """Make one environment: an id, ``module:id``, or ``module:Class`` with the module imported.

    flat: flatten observations to vectors, and refuse images. Otherwise arrays keep their shape, and
    only observations that are not arrays (one of n, a dictionary) are flattened.
    render_mode: ``human`` or ``rgb_array`` to draw the environment.

    Raises ``UnusableEnvironmentError`` for an unknown id (names similar ids), a missing package or
    module (names it and where Python looked), and an environment that cannot be drawn.
    """
    drawn: dict[str, Any] = {} if render_mode is None else {"render_mode": render_mode}
    home, colon, rest = name.partition(":")
    module = import_own(home, f"environment {name!r}", UnusableEnvironmentError) if colon else None
    if module is not None and rest not in gym.registry and callable(getattr(module, rest, None)):
        env: gym.Env[Any, Any] = _made(name, lambda: getattr(module, rest)(**drawn))
        if not isinstance(env, gym.Env):
            raise UnusableEnvironmentError(
                f"environment {name!r}: {rest}() gave {type(env).__name__}, not a gymnasium.Env"
            )
    else:
        known = rest if colon else name
        env = _made(name, lambda: gym.make(known, disable_env_checker=True, **drawn))
    if render_mode is not None and env.render_mode != render_mode:
        modes = env.metadata.get("render_modes") or "none"
        raise UnusableEnvironmentError(
            f"environment {name!r} cannot be drawn as {render_mode!r}: its render modes are {modes}"
        )
    space = env.observation_space
    if flat and isinstance(space, spaces.Box) and len(space.shape) > 1 and space.dtype == np.uint8:
        raise UnusableEnvironmentError(images(name, space.shape))
    if not isinstance(space, spaces.Box) or (flat and len(space.shape) != 1):
        try:
            env = gym.wrappers.FlattenObservation(env)
        except (NotImplementedError, AttributeError, ValueError) as error:
            raise unsupported(name, "observation", env.observation_space) from error
    return env


def _made(name: str, make: Callable[[], Any]) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecation notices of older versions of an id
            return make()
    except gym.error.DependencyNotInstalled as error:
        raise UnusableEnvironmentError(f"environment {name!r} needs a package: {error}") from error
    except ModuleNotFoundError as error:
        raise UnusableEnvironmentError(
            f"environment {name!r} needs a module that is not installed: {error}"
        ) from error
    except gym.error.Error as error:
        raise UnusableEnvironmentError(unknown(name, error)) from error
    except Exception as error:  # the user's constructor may raise anything
        raise UnusableEnvironmentError(
            f"environment {name!r} cannot be made: {described(error)}"
        ) from error


def unknown(name: str, error: Exception) -> str:
    """The error for an id that gymnasium does not know; names similar ids."""
    known = sorted(gym.registry)
    by_lower = {k.lower(): k for k in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    near += [k for k in by_lower if k.split("-v")[0] == name.lower() and k not in near]
    message = f"unknown environment {name!r}"
    if near:
        return f"{message}: did you mean {' or '.join(by_lower[k] for k in near[:4])}?"
    return (
        f"{message} ({error}). `python -m gymnasium.envs.registration` lists those installed; "
        f"name one of your own as `module:id`"
    )


def images(name: str, shape: tuple[int, ...]) -> str:
    """The error for images; names the networks that can learn from them."""
    return (
        f"environment {name!r} shows images of shape {shape}, and the built-in network has no "
        f"convolutions. Give a network of your own: --learner torch --set "
        f"learner.module=mine:network, where mine.py has a function network(shape, actions, "
        f"continuous); or register the environment with gymnasium.wrappers.FlattenObservation "
        f"around it"
    )


def unsupported(name: str, which: str, space: "spaces.Space[Any]") -> UnusableEnvironmentError:
    """The error for a space that no policy here supports."""
    return UnusableEnvironmentError(
        f"environment {name!r} has the {which} space {space}, which no learner here supports: "
        f"use Box or Discrete{' actions' if which == 'action' else ''}, "
        f"or wrap it with a gymnasium wrapper and register the result under an id of your own"
    )


def describe(name: str, env: "gym.Env[Any, Any]") -> Spaces:
    """The spaces of ``env``. Raises ``UnusableEnvironmentError``."""
    space = env.observation_space
    if not isinstance(space, spaces.Box) or not space.shape or 0 in space.shape:
        raise unsupported(name, "observation", space)
    observation, none = math.prod(space.shape), np.empty(0, np.float32)
    seen = space.shape if len(space.shape) > 1 else ()
    action = env.action_space
    if isinstance(action, spaces.Discrete):
        start = int(action.start)
        return Spaces(observation, int(action.n), False, start, none, none, (), seen)
    if isinstance(action, spaces.Box) and np.issubdtype(action.dtype, np.floating):
        low, high = action.low.reshape(-1), action.high.reshape(-1)
        low, high = low.astype(np.float32), high.astype(np.float32)
        if low.size:
            return Spaces(observation, low.size, True, 0, low, high, action.shape, seen)
    raise unsupported(name, "action", action)


def reward_threshold(name: str) -> float | None:
    """The mean reward at which the environment counts as solved, or None.

    The environment must exist; a class without an id declares no threshold.
    """
    try:
        threshold = gym.spec(name.partition(":")[2] or name).reward_threshold
    except gym.error.Error:
        return None
    return None if threshold is None else float(threshold)


def known_reward_scale(name: str) -> float | None:
    """Return the factor that suits an environment's rewards, or None if it is unknown."""
    return REWARD_SCALES.get(name.rsplit(":", 1)[-1].rsplit("-v", 1)[0])


class RunningScale:
    """Factor on rewards: 1 divided by the spread of the discounted returns so far.

    For environments without a known scale. Each worker has its own. The environments are the same,
    so the factors agree within a few episodes.
    """

    def __init__(self, environments: int, discount: float) -> None:
        self._discount = discount
        self._returns = np.zeros(environments)
        self._count = 0
        self._mean = 0.0
        self._squares = 0.0

    def see(self, rewards: NDArray[np.float32], done: NDArray[np.bool_]) -> None:
        """Take in a rollout: rewards and ends of episodes, both ``(steps, environments)``."""
        seen = np.empty(rewards.shape)
        for turn, (reward, end) in enumerate(zip(rewards, done, strict=True)):
            self._returns = seen[turn] = self._returns * self._discount + reward
            self._returns = np.where(end, 0.0, self._returns)
        count, mean = seen.size, float(seen.mean())
        total = self._count + count
        apart = mean - self._mean
        # Chan's rule: counts, means and sums of squares of two sets give those of both together.
        self._squares += float(seen.var()) * count + apart * apart * self._count * count / total
        self._mean += apart * count / total
        self._count = total

    @property
    def factor(self) -> float:
        """The present factor; 1 before the first rollout."""
        if self._count < 2 or self._squares <= 0:
            return 1.0
        return float(1.0 / (np.sqrt(self._squares / self._count) + 1e-8))


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
        observations[0] = self._now
        calls = [env.step for env in self.envs]
        so_far = self._so_far
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
                observation, reward, over, cut, _ = calls[index](actions[index])
                rewards[turn, index] = reward
                so_far[index] += float(reward)
                if over or cut:
                    ended.append(so_far[index])
                    so_far[index] = 0.0
                    if over:
                        terminated[turn, index] = True
                    else:
                        truncated[turn, index] = True
                        final.append((turn, index, np.array(observation, np.float32)))
                    observation, _ = self.envs[index].reset()
                following[index] = observation
            turn += 1
        self._now = observations[turn].copy()
        return Rollout(
            observations[: turn + 1],
            rewards[:turn],
            terminated[:turn],
            truncated[:turn],
            final,
            ended,
        )

    def running_rewards(self) -> list[float]:
        """Reward so far of each running episode."""
        return list(self._so_far)

    def close(self) -> None:
        """Close the environments."""
        for env in self.envs:
            env.close()


def grown(array: NDArray[Any], length: int) -> NDArray[Any]:
    """Return a longer copy of ``array``, zeros at the end."""
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
