"""Environments given as objects: a class, a function, or the spec of a registered id.

Workers are processes of their own, so an object travels in a file, pickled by value where it is
defined in a script or a notebook. ``FILE.pkl:Name`` then names it wherever an environment is named.
Only load such a file from somebody you trust: loading runs code in it.
"""

import json
import os
import pickle
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from olaf.rl.learner import LearnerError
from olaf.rl.own import described

FILE = "environment.pkl"


class UnpackableError(LearnerError):
    """The object cannot be handed to other processes, or the file cannot be read."""


def is_packed(name: str) -> bool:
    """True if the name of an environment is that of a file."""
    return name.rpartition(":")[0].endswith(".pkl")


def shown(name: str) -> str:
    """The name of an environment for people: without the file, if there is one."""
    return name.rpartition(":")[2] if is_packed(name) else name


def pack(given: Any, folder: Path) -> str:
    """Write an environment's class, function or spec to ``folder``; return its name.

    Raises ``UnpackableError``.
    """
    import cloudpickle

    name = _name_of(given)
    try:
        inside = cloudpickle.dumps(given)
    except Exception as error:  # whatever the object's own __reduce__ raises
        raise UnpackableError(
            f"env = {name}: cannot be handed to the workers' processes: {described(error)}. Give a "
            "function that makes the environment from scratch"
        ) from error
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "name": name,
        "reward_threshold": getattr(given, "reward_threshold", None) if _is_spec(given) else None,
        # Modules of the user's own are pickled by reference, and are found there.
        "paths": [os.path.abspath(path) for path in sys.path if "site-packages" not in path],
    }
    # A line for whoever asks about the environment without running its code, then the code.
    (folder / FILE).write_bytes(json.dumps(about).encode() + b"\n" + inside)
    return f"{(folder / FILE).resolve()}:{name}"


def _is_spec(given: Any) -> bool:
    return hasattr(given, "entry_point") and hasattr(given, "max_episode_steps")


def _name_of(given: Any) -> str:
    """A name for the object. Raises ``UnpackableError`` if it makes no environment."""
    if hasattr(given, "step") and not isinstance(given, type):
        raise UnpackableError(
            f"env is an environment ({type(given).__name__}) already: give what makes it, its "
            "class or a function; each worker makes copies of its own"
        )
    if _is_spec(given):
        return str(given.id)
    if not callable(given):
        raise UnpackableError(
            f"env = {given!r}: must be the id of an environment, its class, or a function that "
            "makes it"
        )
    while isinstance(given, partial):
        given = given.func
    name = str(getattr(given, "__name__", type(given).__name__))
    return "environment" if name == "<lambda>" else name


def threshold_of(name: str) -> float | None:
    """The reward at which a packed environment counts as solved. Runs no code of the user's."""
    found: float | None = _read(name)[0]["reward_threshold"]
    return found


def load(name: str) -> Callable[..., Any] | Any:
    """The class, function or spec in a file. Raises ``UnpackableError``."""
    file = name.rpartition(":")[0]
    try:
        return _loaded(file, Path(file).stat().st_mtime_ns)
    except OSError as error:
        raise UnpackableError(f"environment {name!r}: {file}: {error.strerror}") from None


@lru_cache(maxsize=8)
def _loaded(file: str, changed_ns: int) -> Any:
    """One object for all copies of a process."""
    about, inside = _read(f"{file}:")
    sys.path += [path for path in about["paths"] if path not in sys.path and Path(path).exists()]
    try:
        return pickle.loads(inside)
    except Exception as error:
        raise UnpackableError(
            f"environment {about['name']!r} in {file}: cannot be loaded: {described(error)}"
        ) from error


def _read(name: str) -> tuple[dict[str, Any], bytes]:
    """The line about an environment, and the pickled environment, from its file."""
    file = name.rpartition(":")[0]
    try:
        line, _, inside = Path(file).read_bytes().partition(b"\n")
        about: dict[str, Any] = json.loads(line)
    except OSError as error:
        raise UnpackableError(f"environment {name!r}: {file}: {error.strerror}") from None
    except ValueError as error:
        raise UnpackableError(f"{file}: not an environment written by Olaf ({error})") from None
    return about, inside
