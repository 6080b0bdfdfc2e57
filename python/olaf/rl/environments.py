"""Environments: every id that gymnasium knows, checked once, seeded, and stepped for a policy.

``module:ID`` and ``module:Class`` name environments of the user's own, see `olaf.rl.own`.
Nothing is shown: no window, no sound, and pygame prints no greeting.
"""

import difflib
import math
import os
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

import gymnasium as gym
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from olaf.rl.learner import LearnerError
from olaf.rl.options import filled
from olaf.rl.own import described, import_own
from olaf.rl.packed import is_packed, load, threshold_of
from olaf.rl.spaces import Spaces

REWARD_SCALES = {
    "LunarLander": 0.02,
    "LunarLanderContinuous": 0.02,
    "CartPole": 0.1,
    "Acrobot": 0.1,
    "Pendulum": 0.02,
}
"""Factors on rewards, by name without version, that bring the discounted return near 1..10."""

ONE_COPY = "train on it with learner.parallel = vector, and evaluate one copy with --env"
"""What to do with several copies in one."""


class UnusableEnvironmentError(LearnerError):
    """The environment is unknown, or no learner here supports it; the message says what to do."""


class FaultyEnvironmentError(LearnerError):
    """The environment gave something that nothing can be learnt from, such as NaN.

    The message names the environment, the step and the field.
    """


def make_environment(
    name: str,
    *,
    flat: bool = True,
    images: bool = False,
    render_mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    worker: int = 0,
    copy: int = 0,
    copies: int = 1,
    max_steps: int = 0,
) -> "gym.Env[Any, Any]":
    """Make one environment: an id, ``module:id``, ``module:Class`` or ``file.pkl:Name``.

    flat: flatten observations to vectors, and refuse images. Otherwise arrays keep their shape, and
    only observations that are not arrays (one of n, a dictionary) are flattened.
    images: images keep their shape, too; see `is_image`.
    render_mode: ``human`` or ``rgb_array`` to draw the environment.
    options: arguments of its constructor; worker, copy, copies: numbers in them, see
    `olaf.rl.options.filled`. max_steps: cut episodes after this number of steps; 0 does not.

    Raises ``UnusableEnvironmentError`` for an unknown id (names similar ids), a missing package or
    module (names it and where Python looked), and an environment that cannot be drawn.
    """
    given = filled(options or {}, worker=worker, copy=copy, copies=copies)
    if render_mode is not None:
        given["render_mode"] = render_mode
    env: gym.Env[Any, Any] = made_by(name, maker(name, given))
    if not isinstance(env, gym.Env):
        what = name.rpartition(":")[2]
        raise UnusableEnvironmentError(
            f"environment {name!r}: {what}() gave {type(env).__name__}, not a gymnasium.Env"
            + (f"; {ONE_COPY}" if isinstance(env, gym.vector.VectorEnv) else "")
        )
    try:
        _check_drawn(name, env, render_mode)
        env = _fitted(name, env, flat=flat, images=images)
        return gym.wrappers.TimeLimit(env, max_steps) if max_steps else env
    except BaseException:
        env.close()
        raise


def maker(
    name: str, given: dict[str, Any], of_id: Callable[..., Any] | None = None
) -> Callable[[], Any]:
    """What makes the environment of that name, with these arguments.

    of_id: makes a registered one, from its id or spec; None: `gymnasium.make`.
    """
    made = of_id or partial(gym.make, disable_env_checker=True)
    if is_packed(name):
        packed = load(name)
        return (
            partial(made, packed, **given)
            if isinstance(packed, EnvSpec)
            else partial(packed, **given)
        )
    home, colon, rest = name.partition(":")
    module = import_own(home, f"environment {name!r}", UnusableEnvironmentError) if colon else None
    if module is not None and rest not in gym.registry and callable(getattr(module, rest, None)):
        return partial(getattr(module, rest), **given)
    if module is not None and rest not in gym.registry and _is_plain(rest):
        raise UnusableEnvironmentError(_not_there(name, module, rest))
    return partial(made, rest if colon else name, **given)


def _is_plain(name: str) -> bool:
    """True for the name of a class: an id may have a namespace and a version."""
    return name.isidentifier()


def _not_there(name: str, module: ModuleType, wanted: str) -> str:
    """The sentence for a class that a module does not have; names what it has."""
    own = [
        key
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, gym.Env) and value is not gym.Env
    ]
    place = getattr(module, "__file__", None) or module.__name__
    near = difflib.get_close_matches(wanted, own, n=1)
    has = f"it has {', '.join(sorted(own))}" if own else "it has no class of environments"
    return (
        f"environment {name!r}: {place} has no class or function {wanted!r}, and registers no id "
        f"of that name; {f'did you mean {near[0]}?' if near else has}"
    )


def _check_drawn(name: str, env: "gym.Env[Any, Any]", render_mode: str | None) -> None:
    if render_mode is not None and env.render_mode != render_mode:
        modes = env.metadata.get("render_modes") or "none"
        raise UnusableEnvironmentError(
            f"environment {name!r} cannot be drawn as {render_mode!r}: its render modes are {modes}"
        )


def _fitted(
    name: str, env: "gym.Env[Any, Any]", *, flat: bool, images: bool
) -> "gym.Env[Any, Any]":
    """The environment with observations in the form that the policy wants."""
    space = env.observation_space
    if images and is_image(space):
        return env
    if flat and isinstance(space, spaces.Box) and len(space.shape) > 1 and space.dtype == np.uint8:
        raise UnusableEnvironmentError(no_images(name, space.shape))
    if not isinstance(space, spaces.Box) or not space.shape or (flat and len(space.shape) != 1):
        try:
            env = gym.wrappers.FlattenObservation(env)
        except (NotImplementedError, AttributeError, ValueError) as error:
            raise unsupported(name, "observation", env.observation_space) from error
    return env


def made_by(name: str, make: Callable[[], Any]) -> Any:
    """What ``make`` returns. Raises ``UnusableEnvironmentError`` if it fails."""
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
        many = isinstance(error, TypeError) and "num_envs" in str(error)
        raise UnusableEnvironmentError(
            f"environment {name!r} cannot be made: {described(error)}"
            + (f"; {ONE_COPY}" if many else "")
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


def is_image(space: "spaces.Space[Any]") -> bool:
    """True for bytes of (height, width) or with channels, last or first."""
    is_bytes = isinstance(space, spaces.Box) and space.dtype == np.uint8
    return is_bytes and len(space.shape or ()) in (2, 3)


def no_images(name: str, shape: tuple[int, ...]) -> str:
    """The error for images; names the networks that can learn from them."""
    by = "--learner torch has one"
    if len(shape) not in (2, 3):
        by = (
            "neither have those of torch for this shape. Give a network of your own: --learner "
            "torch --set learner.module=mine:network, where mine.py has a function "
            "network(shape, actions, continuous)"
        )
    return (
        f"environment {name!r} shows images of shape {shape}, and the numpy learner has no "
        f"convolutional network: {by}; or register the environment with "
        f"gymnasium.wrappers.FlattenObservation around it"
    )


def unsupported(name: str, which: str, space: "spaces.Space[Any]") -> UnusableEnvironmentError:
    """The error for a space that no policy here supports."""
    usable = "Box or Discrete"
    if which == "action":
        usable = "Box, Discrete, MultiDiscrete or MultiBinary actions"
    return UnusableEnvironmentError(
        f"environment {name!r} has the {which} space {space}, which no learner here supports: "
        f"use {usable}, "
        f"or wrap it with a gymnasium wrapper and register the result under an id of your own"
    )


ACTIONS: tuple[type["spaces.Space[Any]"], ...] = (
    spaces.Discrete,
    spaces.MultiDiscrete,
    spaces.MultiBinary,
    spaces.Box,
)
"""Kinds of action spaces that the learners support."""


def describe(name: str, env: "gym.Env[Any, Any]") -> Spaces:
    """The spaces of ``env``. Raises ``UnusableEnvironmentError``."""
    space = env.observation_space
    if not isinstance(space, spaces.Box) or not space.shape or 0 in space.shape:
        raise unsupported(name, "observation", space)
    action = env.action_space
    if not isinstance(action, ACTIONS):
        raise unsupported(name, "action", action)
    low = high = np.empty(0)
    discrete: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    if isinstance(action, spaces.Discrete):
        discrete, starts = (int(action.n),), (int(action.start),)
    elif isinstance(action, spaces.MultiDiscrete):
        discrete = tuple(action.nvec.ravel().tolist())
        starts = tuple(action.start.ravel().tolist())
    elif isinstance(action, spaces.MultiBinary):
        discrete, starts = (2,) * math.prod(action.shape), (0,) * math.prod(action.shape)
    elif isinstance(action, spaces.Box):
        low = np.where(action.bounded_below, action.low, -np.inf).ravel()
        high = np.where(action.bounded_above, action.high, np.inf).ravel()
    if not (low.size or discrete) or min(discrete, default=1) < 1:
        raise unsupported(name, "action", action)
    return Spaces(
        observation=math.prod(space.shape),
        actions=sum(discrete) or low.size,
        discrete=discrete,
        starts=starts,
        low=low.astype(np.float64),
        high=high.astype(np.float64),
        shape=action.shape or (),
        dtype=np.dtype(action.dtype),
        seen=space.shape if len(space.shape) > 1 else (),
    )


def reward_threshold(name: str) -> float | None:
    """The mean reward at which the environment counts as solved, or None.

    The environment must exist; a class without an id declares no threshold.
    """
    if is_packed(name):
        return threshold_of(name)
    try:
        threshold = gym.spec(name.partition(":")[2] or name).reward_threshold
    except gym.error.Error:
        return None
    return None if threshold is None else float(threshold)


def known_reward_scale(name: str) -> float | None:
    """Return the factor that suits an environment's rewards, or None if it is unknown."""
    return REWARD_SCALES.get(name.rsplit(":", 1)[-1].rsplit("-v", 1)[0])
