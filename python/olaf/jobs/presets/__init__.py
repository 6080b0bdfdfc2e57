"""Settings for common tasks: ``olaf train --preset pendulum``. Each is a file beside this one.

A preset has the lowest precedence: a configuration file and options change it. Its first line says
what it is for. docs/training.md has the steps and seconds that each of them needs.
"""

from __future__ import annotations

import difflib
import tomllib
from importlib import resources
from typing import Any

from olaf.errors.usage import ConfigurationError

ENDING = ".toml"


def preset(name: str) -> dict[str, dict[str, Any]]:
    """The tables of a preset, as `read_settings` takes them for its ``base``.

    Raises ConfigurationError for a name that there is not.
    """
    known = names()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise ConfigurationError(f"preset {name!r}: unknown; {advice}")
    tables: dict[str, dict[str, Any]] = tomllib.loads(_text(name))
    return tables


def names() -> list[str]:
    """The names of all presets."""
    files = (file.name for file in resources.files(__name__).iterdir())
    return sorted(file.removesuffix(ENDING) for file in files if file.endswith(ENDING))


def purpose(name: str) -> str:
    """What a preset is for, in a line."""
    return _text(name).partition("\n")[0].removeprefix("# ")


def _text(name: str) -> str:
    return resources.files(__name__).joinpath(f"{name}{ENDING}").read_text(encoding="utf-8")
