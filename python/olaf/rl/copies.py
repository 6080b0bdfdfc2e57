"""Copies of an environment that one policy steps together."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from olaf.rl.checking import RESET, Copy, Env, described
from olaf.rl.spaces import Spaces

Masks = NDArray[np.bool_]
"""Allowed choices, ``(environments, actions)``."""


class End(NamedTuple):
    """The end of an episode."""

    copy: int
    """Number of the copy."""
    observation: NDArray[np.float32] | None
    """The last one, if the episode was cut; None in a terminal state, whose value is 0."""
    reward: float
    """Sum of the episode's rewards."""
    steps: int
    info: Any
    """The last one."""


class Copies(Protocol):
    """Copies of an environment: stepped in turn, or all at once."""

    spaces: Spaces
    count: int
    masks: Masks | None
    """Allowed choices of the present states; None if the environment allows all of them."""
    skipped: NDArray[np.bool_] | None
    """Copies ``(count,)`` that took no action in the last step, and only began an episode."""

    def reset(self, seeds: Sequence[int]) -> NDArray[np.float32]:
        """Begin an episode in each copy; return ``(count, *observation_shape)``."""

    def step(
        self,
        actions: Sequence[Any],
        following: NDArray[np.float32],
        rewards: NDArray[np.float32],
        turn: int,
    ) -> Sequence[End]:
        """One step of each copy. Writes the next observations ``(count, *observation_shape)`` and
        row ``turn`` of the rewards. A copy whose episode ended begins the next one at once."""

    def running_rewards(self) -> list[float]:
        """Reward so far of each running episode."""

    def longest_episode(self) -> int:
        """Steps so far of the longest running episode."""

    def close(self) -> None:
        """Close the environments."""


class InTurn:
    """Copies in this process, stepped one after the other. Implements `Copies`."""

    def __init__(self, name: str, envs: Sequence[Env], spaces: Spaces) -> None:
        self.spaces, self.count = spaces, len(envs)
        self.masks: Masks | None = None
        self.skipped: NDArray[np.bool_] | None = None
        self._size = spaces.observation
        self._envs = envs
        self._copies = [
            Copy(
                name,
                env,
                spaces.observation_shape,
                f"copy {i + 1} of {len(envs)}" if len(envs) > 1 else "",
            )
            for i, env in enumerate(envs)
        ]
        # The first step of each copy is checked as a whole.
        self._calls: list[Any] = [self._first(index) for index in range(self.count)]
        self._so_far = [0.0] * self.count
        self._began = [0] * self.count
        self._steps = 0
        """Steps of each copy."""

    def _first(self, index: int) -> Any:
        def call(action: Any) -> Any:
            given = self._copies[index].step(action)
            self._calls[index] = self._envs[index].step
            return given

        return call

    def reset(self, seeds: Sequence[int]) -> NDArray[np.float32]:
        """See `Copies.reset`."""
        pairs = zip(self._copies, seeds, strict=True)
        seen = np.array([copy.reset(int(seed)) for copy, seed in pairs], np.float32)
        if self.spaces.discrete:
            masks = [mask_of(copy, copy.info, self.spaces, "reset") for copy in self._copies]
            self.masks = None if masks[0] is None else np.array(masks)
        return seen

    def step(
        self,
        actions: Sequence[Any],
        following: NDArray[np.float32],
        rewards: NDArray[np.float32],
        turn: int,
    ) -> Sequence[End]:
        """See `Copies.step`. Only shapes are checked here: finite numbers are, once a rollout."""
        calls, so_far, size, masks = self._calls, self._so_far, self._size, self.masks
        self._steps = step = self._steps + 1
        ends: list[End] = []
        for index, action in enumerate(actions):
            observation, reward, over, cut, info = calls[index](action)
            if type(reward) is not float:  # numpy's float64 is a float, too, and the usual one
                is_float = isinstance(reward, float)
                reward = float(reward) if is_float else self._copies[index].reward(step, reward)
            rewards[turn, index] = reward
            so_far[index] += reward
            if over or cut:
                last = None if over else self._seen(index, step, observation)
                kept = dict(info) if isinstance(info, dict) else info  # it may be written again
                ends.append(End(index, last, so_far[index], step - self._began[index], kept))
                so_far[index], self._began[index] = 0.0, step
                observation, info = self._again(index)
            try:
                if observation.size != size:
                    raise ValueError(observation.size)
                following[index] = observation
            except (AttributeError, TypeError, ValueError):
                following[index] = self._seen(index, step, observation)
            if masks is not None:
                masks[index] = mask_of(self._copies[index], info, self.spaces, f"step {step}")
        return ends

    def _again(self, index: int) -> tuple[Any, Any]:
        given: Any = self._envs[index].reset()
        if given.__class__ is not tuple or len(given) != 2:
            place = f"reset after step {self._steps}"
            self._copies[index].refuse(place, f"reset() gave {described(given)}, but {RESET}")
        observation, info = given
        return observation, info

    def _seen(self, index: int, step: int, observation: Any) -> NDArray[np.float32]:
        # A copy: an environment may write its next observation into the same array.
        return self._copies[index].shaped(f"step {step}", observation).copy()

    def running_rewards(self) -> list[float]:
        """See `Copies.running_rewards`."""
        return list(self._so_far)

    def longest_episode(self) -> int:
        """See `Copies.longest_episode`."""
        return self._steps - min(self._began)

    def close(self) -> None:
        """See `Copies.close`."""
        close_all(self._envs)


def which_of(index: int, count: int) -> str:
    """What tells a copy apart in a message."""
    return f"copy {index + 1} of {count}" if count > 1 else ""


def close_all(envs: Sequence[Any]) -> None:
    """Close all environments, also if one of them raises; then raise the first error."""
    errors: list[Exception] = []
    for env in envs:
        try:
            env.close()
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]


def mask_of(copy: Copy, info: Any, spaces: Spaces, place: str) -> NDArray[np.bool_] | None:
    """The allowed choices ``(actions,)`` of a state; None if the environment gives none.

    They are ``info["action_mask"]``, or what the environment's method ``action_masks`` returns: one
    flag for each choice, or one array for each part of the action.
    """
    given = info.get("action_mask") if isinstance(info, Mapping) else None
    if given is None:
        method = getattr(copy.env.unwrapped, "action_masks", None)
        if method is None:
            return None
        given = method()
    mask = flags_of(given)
    check_mask(mask, spaces, partial(copy.refuse, place))
    return mask


def flags_of(given: Any) -> NDArray[np.bool_]:
    """A mask as an environment gives it, ``(actions,)``."""
    parts = given if isinstance(given, tuple | list) else [given]
    return np.concatenate([np.ravel(np.asarray(part)) for part in parts]).astype(np.bool_)


def check_mask(mask: NDArray[np.bool_], spaces: Spaces, refuse: Callable[[str], NoReturn]) -> None:
    """Refuse a mask that fits no action."""
    if mask.shape != (spaces.actions,):
        refuse(f"action_mask has {mask.size} flags, but there are {spaces.actions}")
    begin = 0
    for part, choices in enumerate(spaces.discrete):
        if not mask[begin : begin + choices].any():
            which = f" in part {part}" if len(spaces.discrete) > 1 else ""
            refuse(f"action_mask allows no action{which}")
        begin += choices
