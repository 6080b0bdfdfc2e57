"""TOML and JSON that somebody else may have written: text that is nested too deeply is an error."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from typing import Any

NESTED = "it is nested too deeply"


def toml_of(text: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The tables of a TOML text. Raises tomllib.TOMLDecodeError."""
    try:
        return tomllib.loads(text, parse_float=parse_float)
    except RecursionError:
        raise tomllib.TOMLDecodeError(NESTED) from None


def json_of(text: str, parse_float: Callable[[str], Any] = float) -> Any:
    """The value of a JSON text. Raises json.JSONDecodeError."""
    try:
        return json.loads(text, parse_float=parse_float)
    except RecursionError:
        raise json.JSONDecodeError(NESTED, text[:0], 0) from None
