"""Copies of an environment that step at once: in processes, or inside a vector environment.

Both are gymnasium's vector environments. What a policy sees is the same as of copies in turn.
"""

import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorEnv
from numpy.typing import NDArray

from olaf.rl.checking import STEP, Copy, described, number, refuse, wrong_shape
from olaf.rl.copies import End, Masks, check_mask, flags_of, mask_of
from olaf.rl.environments import (
    FaultyEnvironmentError,
    UnusableEnvironmentError,
    describe,
    is_image,
    made_by,
    make_environment,
    maker,
    no_images,
)
from olaf.rl.options import filled
from olaf.rl.own import RaisedElsewhereError
from olaf.rl.seeding import seed_everything
from olaf.rl.spaces import Spaces

FAULT = "olaf_fault"

CLOSING_S = 5.0
"""Seconds for the processes of copies to close their environments."""


class Checked(gym.Wrapper[Any, Any, Any, Any]):
    """One copy in its process: what it gives is checked there, and its mask is in ``info``.

    So is an error: gymnasium would print its frames, and raise it without them.
    """

    def __init__(self, env: Any, name: str, spaces: Spaces, which: str) -> None:
        super().__init__(env)
        self._copy = Copy(name, env, spaces.observation_shape, which)
        self._spaces, self._name = spaces, name
        self._is_int = spaces.discrete and not spaces.shape
        self._none = np.zeros(spaces.observation_shape, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """See `Copy.reset`."""
        if seed is not None:
            seed_everything(seed, 0)  # this process has random numbers of its own
        try:
            return self._copy.reset(seed), self._info("reset")
        except Exception as error:
            return self._none, {FAULT: _sent(error)}

    def step(self, action: Any) -> Any:
        """See `Copy.step`."""
        try:
            given = self._copy.step(int(action) if self._is_int else action)
            is_over = given[2] or given[3]
            return *given[:-1], dict(self._copy.info) if is_over else self._info("step")
        except Exception as error:
            return self._none, 0.0, False, False, {FAULT: _sent(error)}

    def _info(self, place: str) -> dict[str, Any]:
        copy = self._copy
        info = dict(copy.info)
        mask = mask_of(copy, info, self._spaces, place) if self._spaces.discrete else None
        return info if mask is None else {**info, "action_mask": mask}


def _sent(error: Exception) -> Exception:
    """An error as its process sends it."""
    is_fault = isinstance(error, FaultyEnvironmentError)
    return FaultyEnvironmentError(str(error)) if is_fault else RaisedElsewhereError.of(error)


def _one(name: str, copy: int, copies: int, how: Mapping[str, Any]) -> Any:
    """A copy in its process."""
    env = make_environment(name, copy=copy, copies=copies, **how)
    which = f"copy {copy + 1} of {copies}"
    return Checked(env, name, describe(name, env), which)


def in_processes(name: str, count: int, **how: Any) -> "InParallel":
    """Copies in a process each. Raises ``UnusableEnvironmentError``."""
    makers: list[Callable[[], Any]] = [partial(_one, name, i, count, how) for i in range(count)]
    # A fork of this process would inherit its threads in whatever they are doing.
    env = AsyncVectorEnv(makers, context="spawn", autoreset_mode=AutoresetMode.SAME_STEP)
    return InParallel(name, env, count, flat=False)


def in_vector(name: str, count: int, **how: Any) -> "InParallel":
    """Copies inside a vector environment. Raises ``UnusableEnvironmentError``."""
    options = filled(how.get("options") or {}, worker=how.get("worker", 0), copy=0, copies=count)
    if how.get("max_steps"):
        raise UnusableEnvironmentError(
            f"environment {name!r}: max_episode_steps does not go with parallel = vector: give "
            "the limit to the environment itself"
        )
    env = made_by(name, maker(name, {"num_envs": count, **options}, gym.make_vec))
    try:
        seen = getattr(env, "single_observation_space", env.observation_space)
        flat = how.get("flat", True)
        if is_image(seen):
            if flat and not how.get("images"):
                raise UnusableEnvironmentError(no_images(name, seen.shape))
            flat = False
        return InParallel(name, env, count, flat=flat)
    except BaseException:
        env.close()
        raise


class InParallel:
    """Copies that one call steps. Implements `Copies`.

    A vector environment that resets a copy in the next step ignores that copy's action then. Such
    rows are in `skipped`, and nothing is learnt from them.
    """

    def __init__(self, name: str, env: Any, count: int, *, flat: bool) -> None:
        self.masks: Masks | None = None
        self.skipped: NDArray[np.bool_] | None = None
        self.count = count
        self._name, self._env = name, env
        self._is_pool = not isinstance(env, VectorEnv)
        sizes = getattr(env, "num_envs", None) or len(env)
        if sizes != count:
            raise UnusableEnvironmentError(
                f"environment {name!r} has {sizes} copies, but learner.environments = {count}"
            )
        seen = getattr(env, "single_observation_space", env.observation_space)
        acts = getattr(env, "single_action_space", env.action_space)
        if flat and isinstance(seen, spaces.Box):
            seen = spaces.flatten_space(seen)
        shim: Any = SimpleNamespace(observation_space=seen, action_space=acts)
        self.spaces = describe(name, shim)
        self._seen_space = seen
        mode = (getattr(env, "metadata", None) or {}).get("autoreset_mode")
        self._resets_later = mode != AutoresetMode.SAME_STEP
        if mode == AutoresetMode.DISABLED:
            raise UnusableEnvironmentError(
                f"environment {name!r} does not begin episodes by itself (autoreset_mode DISABLED)"
            )
        ones = [one.unwrapped for one in getattr(getattr(env, "unwrapped", env), "envs", ())]
        self._ones = ones if all(hasattr(one, "action_masks") for one in ones) else []
        """The copies, where they are in this process and have the method."""
        self._ended = np.zeros(count, np.bool_)
        self._so_far = np.zeros(count)
        self._lengths = np.zeros(count, np.int64)
        self._steps = 0

    def reset(self, seeds: Sequence[int]) -> NDArray[np.float32]:
        """See `Copies.reset`. A vector environment takes one seed, processes one each."""
        if self._is_pool:
            seen, info = self._env.reset()
        else:
            many = isinstance(self._env, AsyncVectorEnv)
            self._env.action_space.seed(int(seeds[0]))
            first: Any = [int(seed) for seed in seeds] if many else int(seeds[0])
            with self._alive("reset"):
                seen, info = self._env.reset(seed=first)
        self._look(info, "reset")
        return self._seen(seen, "reset")

    def step(
        self,
        actions: Sequence[Any],
        following: NDArray[np.float32],
        rewards: NDArray[np.float32],
        turn: int,
    ) -> Sequence[End]:
        """See `Copies.step`."""
        self._steps += 1
        place = f"step {self._steps}"
        with self._alive(place):
            given = self._env.step(np.asarray(actions))
        if not isinstance(given, tuple) or len(given) != 5:
            refuse(self._name, place, f"step() gave {described(given)}, but {STEP}")
        seen, reward, over, cut, info = given
        following[:] = self._seen(seen, place)
        took = ~self._ended if self._resets_later else np.ones(self.count, np.bool_)
        row = np.where(took, self._numbers(reward, place), 0.0)
        rewards[turn] = row
        self._so_far += row
        self._lengths += took
        over, cut = (np.asarray(flags, np.bool_) & took for flags in (over, cut))
        # A copy that begins its next episode in the next step takes no action there.
        self._look(info, place, (over | cut) & self._resets_later)
        ends = [
            self._end(index, over[index], following, info)
            for index in np.flatnonzero(over | cut).tolist()
        ]
        self.skipped = ~took if self._resets_later else None
        self._ended = over | cut
        return ends

    @contextmanager
    def _alive(self, place: str) -> Iterator[None]:
        """Say which process has ended, if one has."""
        try:
            yield
        except (EOFError, OSError) as error:
            ended = []
            for index, process in enumerate(getattr(self._env, "processes", ())):
                process.join(1.0)
                if process.exitcode is not None:
                    ended.append(f"copy {index + 1} (exit code {process.exitcode})")
            if not ended:
                raise
            what = f"the process of {', '.join(ended)} has ended; what it printed says why"
            raise FaultyEnvironmentError(f"environment {self._name!r}, {place}: {what}") from error

    def _end(self, index: int, is_over: bool, following: NDArray[np.float32], info: Any) -> End:
        """The end of a copy's episode."""
        last: NDArray[np.float32] | None = None
        final: Any = info
        if self._resets_later:
            last = None if is_over else following[index].copy()
        else:
            final = info.get("final_info", {})
            if not is_over:
                shape = self.spaces.observation_shape
                last = np.asarray(info["final_obs"][index], np.float32).reshape(shape)
        reward, length = float(self._so_far[index]), int(self._lengths[index])
        self._so_far[index], self._lengths[index] = 0.0, 0
        return End(int(index), last, reward, length, _part_of(final, index, self.count))

    def _seen(self, given: Any, place: str) -> NDArray[np.float32]:
        try:
            seen = np.asarray(given, np.float32)
        except (TypeError, ValueError) as error:
            refuse(self._name, place, f"the observation is {described(given)}: {error}")
        shape = (self.count, *self.spaces.observation_shape)
        if seen.size != np.prod(shape) or len(seen) != self.count:
            refuse(self._name, place, wrong_shape(seen.shape[1:], self._seen_space))
        return seen.reshape(shape)

    def _numbers(self, given: Any, place: str) -> NDArray[np.float64]:
        rewards = np.asarray(given, np.float64)
        if rewards.shape != (self.count,):
            refuse(
                self._name, place, f"the rewards are {described(given)}, not {self.count} numbers"
            )
        return rewards

    def _look(self, info: Any, place: str, ended: NDArray[np.bool_] | None = None) -> None:
        """Take masks, and raise a fault of a process.

        ended: copies in the last state of an episode, where any action is as good as none.
        """
        if FAULT in info:
            raise next(one for one in info[FAULT] if isinstance(one, Exception))
        given = info.get("action_mask") if isinstance(info, Mapping) else None
        if given is None and self._ones:
            given = [flags_of(one.action_masks()) for one in self._ones]
        if given is None or not self.spaces.discrete:
            return
        masks = np.array(given).astype(np.bool_).reshape(self.count, -1)
        if ended is not None:
            masks[ended] = True
        for index, mask in enumerate(masks):
            which = f"copy {index + 1} of {self.count}"
            check_mask(mask, self.spaces, partial(refuse, self._name, place, which=which))
        self.masks = masks

    def running_rewards(self) -> list[float]:
        """See `Copies.running_rewards`."""
        return [float(reward) for reward in self._so_far]

    def longest_episode(self) -> int:
        """See `Copies.longest_episode`."""
        return int(self._lengths.max())

    def close(self) -> None:
        """See `Copies.close`. Processes that do not end are killed."""
        if not isinstance(self._env, AsyncVectorEnv):
            self._env.close()
            return
        try:
            self._env.close(timeout=CLOSING_S)
        except (OSError, EOFError, multiprocessing.TimeoutError, gym.error.Error):
            # One of them has ended, so gymnasium can no longer ask them to close.
            for process in self._env.processes:
                process.terminate()
            for process in self._env.processes:
                process.join(CLOSING_S)
                if process.is_alive():
                    process.kill()
            self._env.closed = True


def _part_of(info: Any, index: int, count: int) -> dict[str, Any]:
    """The numbers of one copy in the ``info`` of all."""
    found: dict[str, Any] = {}
    if not isinstance(info, Mapping):
        return found
    for name, values in info.items():
        if str(name).startswith("_") or not isinstance(values, np.ndarray | list):
            continue
        has = info.get(f"_{name}")
        if len(values) == count and (has is None or has[index]):
            value = number(values[index])
            if value is not None:
                found[name] = value
    return found
