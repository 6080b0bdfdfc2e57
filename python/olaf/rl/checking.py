"""Checks what an environment gives against its spaces; a fault names environment, step and field.

The structure is checked at the first reset and the first step of each copy, where gymnasium's
wrappers have not touched the result yet. Shapes and finite numbers are checked always.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from olaf.rl.environments import FaultyEnvironmentError

Env = gym.Env[Any, Any]
Result = tuple[NDArray[np.float32], float, bool, bool, Mapping[str, Any]]
"""observation, reward, terminated, truncated, info."""

RESET = "must return (observation, info), where info is a dictionary"
STEP = "must return (observation, reward, terminated, truncated, info)"


class Copy:
    """One copy of an environment. Everything that it returns is checked.

    Raises ``FaultyEnvironmentError``, and what the environment raises.
    """

    def __init__(self, name: str, env: Env, shape: tuple[int, ...], which: str = "") -> None:
        """shape: of an observation. which: what tells the copy apart in messages."""
        self.env = env
        self.info: Mapping[str, Any] = {}
        """The last ``info``."""
        self._name, self._shape, self._which = name, shape, which
        self._steps = 0
        self._is_looked_at = [False, False]

    def reset(self, seed: int | None = None) -> NDArray[np.float32]:
        """Begin an episode; return its first observation.

        seed: also seeds the spaces, from which an environment may sample.
        """
        if seed is not None:
            self._seed_spaces(seed)
        place = f"reset after step {self._steps}" if self._steps else "reset"
        with self._looking("reset", place):
            try:
                given = self.env.reset() if seed is None else self.env.reset(seed=seed)
            except TypeError as error:
                if "unexpected keyword argument" in str(error):
                    self.refuse(place, f"{error}: write `def reset(self, *, seed, options)`")
                raise
        if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[1], Mapping):
            self.refuse(place, f"reset() gave {described(given)}, but {RESET}")
        self.info = given[1]
        return self._observation(place, given[0])

    def _seed_spaces(self, seed: int) -> None:
        for env in {id(env): env for env in (self.env, self.env.unwrapped)}.values():
            env.action_space.seed(seed)
            env.observation_space.seed(seed)

    def step(self, action: Any) -> Result:
        """Take one step."""
        self._steps += 1
        place = f"step {self._steps}"
        with self._looking("step", place):
            given = self.env.step(action)
        if not isinstance(given, tuple) or len(given) != 5:
            self.refuse(place, f"step() gave {described(given)}, but {STEP}")
        seen, reward, over, cut, self.info = given
        return (
            self._observation(place, seen),
            self._reward(place, reward),
            self._is(place, "terminated", over),
            self._is(place, "truncated", cut),
            self.info,
        )

    def refuse(self, place: str, what: str) -> NoReturn:
        """Raise the error for a fault of this copy."""
        refuse(self._name, place, what, self._which)

    def _observation(self, place: str, given: Any) -> NDArray[np.float32]:
        seen = self.shaped(place, given)
        if not np.isfinite(seen).all():
            self.refuse(place, odd("observation", seen))
        return seen

    def shaped(self, place: str, given: Any) -> NDArray[np.float32]:
        """An observation as floats of the right shape."""
        try:
            seen = np.asarray(given, np.float32)
        except (TypeError, ValueError) as error:
            self.refuse(place, f"the observation is {described(given)}, not numbers: {error}")
        if seen.shape != self._shape:
            self.refuse(place, wrong_shape(seen.shape, self.env.observation_space))
        return seen

    def _reward(self, place: str, given: Any) -> float:
        reward = number(given)
        if reward is None:
            self.refuse(place, f"the reward is {described(given)}, not a number")
        if not math.isfinite(reward):
            self.refuse(place, f"the reward is {reward}")
        return reward

    def reward(self, step: int, given: Any) -> float:
        """A reward as a number, whatever its size; ``step`` is for the message."""
        reward = number(given)
        if reward is None:
            self.refuse(f"step {step}", f"the reward is {described(given)}, not a number")
        return reward

    def _is(self, place: str, field: str, given: Any) -> bool:
        flag = number(given)
        if flag not in (0, 1):
            self.refuse(place, f"{field} is {described(given)}, not True or False; step() {STEP}")
        return bool(flag)

    @contextmanager
    def _looking(self, which: str, place: str) -> Iterator[None]:
        """The first time, also check the result beneath gymnasium's wrappers."""
        index = ("reset", "step").index(which)
        if self._is_looked_at[index]:
            yield
            return
        self._is_looked_at[index] = True
        with _spied(self.env.unwrapped, which) as raw:
            try:
                yield
            except Exception as error:
                for given in raw:
                    self._raw(which, place, given, error)
                raise
        for given in raw:
            self._raw(which, place, given, None)

    def _raw(self, which: str, place: str, given: Any, error: Exception | None) -> None:
        """Refuse a result of the environment's own method. ``error``: what a wrapper raised."""
        count, form = (2, RESET) if which == "reset" else (5, STEP)
        try:
            if not isinstance(given, tuple) or len(given) != count:
                old = which == "step" and isinstance(given, tuple) and len(given) == 4
                self.refuse(
                    place,
                    f"{which}() gave {described(given)}, but {form}"
                    + (", as in gym since 0.26" if old else ""),
                )
            if not isinstance(given[-1], Mapping):
                self.refuse(place, f"{which}() gave {described(given)}, but {form}")
            space = self.env.unwrapped.observation_space
            problem = misfit(given[0], space, "observation")
            if problem:
                self.refuse(place, problem)
        except FaultyEnvironmentError as fault:
            raise fault from error


def refuse(name: str, place: str, what: str, which: str = "") -> NoReturn:
    """Raise the error for a fault of an environment."""
    raise FaultyEnvironmentError(
        f"environment {name!r}, {place}: {what}" + (f" ({which})" if which else "")
    )


@contextmanager
def _spied(env: Any, method: str) -> Iterator[list[Any]]:
    """The results of a method of ``env``, beneath all wrappers, while it is in use."""
    found: list[Any] = []
    own = getattr(env, method)

    def spying(*args: Any, **kwargs: Any) -> Any:
        given = own(*args, **kwargs)
        found.append(given)
        return given

    try:
        had = vars(env).get(method)
        setattr(env, method, spying)
    except (AttributeError, TypeError):  # an object that takes no attributes
        yield found
        return
    try:
        yield found
    finally:
        delattr(env, method) if had is None else setattr(env, method, had)


def misfit(given: Any, space: "spaces.Space[Any]", field: str) -> str | None:
    """Why a value does not belong to a space, in words; None if it does.

    Bounds of floats are not checked: a policy can learn from what lies beyond them.
    """
    if isinstance(space, spaces.Box):
        return _misfit_of_box(given, space, field)
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        whole = np.asarray(given)
        if np.issubdtype(whole.dtype, np.integer) or whole.dtype == np.bool_:
            whole = whole.astype(space.dtype)
        is_in = space.contains(whole if space.shape else whole[()])
        return None if is_in else f"{field} is {described(given)}, which is not in {space}"
    parts: list[tuple[str, Any, spaces.Space[Any]]] = []
    if isinstance(space, spaces.Dict):
        if not isinstance(given, Mapping) or set(given) != set(space.spaces):
            return f"{field} is {described(given)}, but its space is {space}"
        parts = [(f"{field}[{key!r}]", given[key], part) for key, part in space.spaces.items()]
    elif isinstance(space, spaces.Tuple):
        if not isinstance(given, tuple | list) or len(given) != len(space.spaces):
            return f"{field} is {described(given)}, but its space is {space}"
        parts = [(f"{field}[{i}]", given[i], part) for i, part in enumerate(space.spaces)]
    return next(filter(None, (misfit(value, part, name) for name, value, part in parts)), None)


def _misfit_of_box(given: Any, space: spaces.Box, field: str) -> str | None:
    try:
        array = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        return f"{field} is {described(given)}, not numbers"
    if array.shape != space.shape:
        return wrong_shape(array.shape, space, field)
    return None if np.isfinite(array).all() else odd(field, array)


def wrong_shape(
    shape: tuple[int, ...], space: "spaces.Space[Any]", field: str = "observation"
) -> str:
    """The words for a shape that is not the space's."""
    given = f"the shape {shape}" if shape else "no shape (it is a single number)"
    return f"{field} has {given}, but observation_space {space} has the shape {space.shape}"


def odd(field: str, array: NDArray[Any]) -> str:
    """The words for the first number of an array that is not finite: ``observation[2] is nan``."""
    where = tuple(int(axis) for axis in np.argwhere(~np.isfinite(array))[0])
    at = ", ".join(str(axis) for axis in where)
    return f"{field}{f'[{at}]' if at else ''} is {array[where]}"


def number(given: Any) -> float | None:
    """One number as a float, whatever its type; an array may hold exactly one. Else None."""
    if isinstance(given, float | int | Real | np.bool_):
        return float(given)
    shape = getattr(given, "shape", None)
    if shape is None or math.prod(shape) != 1:
        return None
    one = np.asarray(given).reshape(()).item()
    return float(one) if isinstance(one, float | int) else None


def described(given: Any) -> str:
    """A value in a few words: its type, and its shape or length."""
    if isinstance(given, tuple | list):
        inside = ", ".join(_short(one) for one in given[:6])
        count = f"{len(given)} value{'' if len(given) == 1 else 's'}"
        return f"{count} ({inside}{', ..' if len(given) > 6 else ''})"
    return _short(given)


def _short(given: Any) -> str:
    shape = getattr(given, "shape", None)
    if shape:
        return f"an array of shape {tuple(shape)}"
    if given is None or isinstance(given, float | int | np.generic):
        return str(given)
    if isinstance(given, Mapping):
        return "a dictionary" if not given else f"a dictionary with {', '.join(map(repr, given))}"
    return f"a {type(given).__name__}"
