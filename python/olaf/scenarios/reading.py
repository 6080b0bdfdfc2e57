"""Scenarios from TOML files, and single keys set anew."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeAlias

from olaf.jobs.reading import parse_override
from olaf.jobs.usage import ConfigurationError

Scenario: TypeAlias = dict[str, Any]
"""Tables of a scenario. Only the core checks what is in them, when it runs them."""


def read(file: Path) -> Scenario:
    """The tables of a file. Raises ConfigurationError, which names it."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{file}: is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{file}: not TOML: {error}") from None


def with_overrides(scenario: Scenario, overrides: Iterable[str]) -> Scenario:
    """The scenario with ``key=value`` set, dotted: ``control.kind=fair``.

    In a list a name stands for the table that has it: ``switches.SW1.rate_bps=190000``; a
    number counts from 0. Raises ConfigurationError for a place that is not there.
    """
    changed = deepcopy(scenario)
    for override in overrides:
        key, value = parse_override(override)
        *path, last = key.split(".")
        table: Any = changed
        for part in path:
            table = _step(table, part, override)
        if not isinstance(table, dict):
            names = _names(table)
            hint = f"; write {'.'.join(path)}.{names[0]}.KEY=VALUE" if names else ""
            raise ConfigurationError(f"--set {override}: {'.'.join(path)} is not a table{hint}")
        table[last] = value
    return changed


def _step(table: Any, part: str, override: str) -> Any:
    if isinstance(table, dict):
        return table.setdefault(part, {})
    if not isinstance(table, list):
        raise ConfigurationError(f"--set {override}: what is before `{part}` is not a table")
    names = _names(table)
    if part in names:
        return table[names.index(part)]
    if part.isdecimal() and int(part) < len(table):
        return table[int(part)]
    raise ConfigurationError(f"--set {override}: no `{part}` there; there are {', '.join(names)}")


def _names(table: Any) -> list[str]:
    """The names of the tables in a list of them."""
    entries = table if isinstance(table, list) else []
    return [str(entry.get("name")) for entry in entries if isinstance(entry, dict)]
