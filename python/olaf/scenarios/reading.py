"""Reads scenarios from TOML files, and sets single keys."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeAlias

from olaf.errors.usage import ConfigurationError
from olaf.jobs.reading import parse_override
from olaf.values import units
from olaf.values.parsed import toml_of

Scenario: TypeAlias = dict[str, Any]
"""Tables of a scenario. Only the core checks their contents, when it runs them."""

AMOUNTS = {
    "": ("duration_ns",),
    "switches": ("rate_bps", "delay_ns"),
    "groups": ("interval_ns", "late_ns", "packet_bytes"),
    "answers": ("delay_ns", "active_ns"),
    "control": ("threshold_ns", "retry_ns"),
}
"""For each table, the keys that hold a time, a size or a rate: see `olaf.values.units`."""


def read(file: Path) -> Scenario:
    """The tables of a file. Raises ConfigurationError, which names it."""
    try:
        return _in_plain_numbers(toml_of(file.read_text(encoding="utf-8")), str(file))
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{file}: is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{file}: not TOML: {error}") from None


def with_overrides(
    scenario: Scenario,
    overrides: Iterable[str],
    plain: Callable[[Scenario], Scenario] | None = None,
    known: Mapping[str, Iterable[str]] = AMOUNTS,
) -> Scenario:
    """The scenario with ``key=value`` set; keys are dotted: ``control.kind=fair``.

    In a list, a table is addressed by its name, ``switches.SW1.rate_bps=190000``, or by a number
    from 0. ``plain`` and ``known`` are for scenarios of another kind: what makes their amounts
    plain numbers, and which keys these are. Raises ConfigurationError for an unknown place.
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
        # The last value wins, even if an earlier one spelled the key differently.
        for fields in known.values():
            for field in fields:
                if units.key_of(field) == last:
                    table.pop(field, None)
        table[last] = value
        changed = _plain(changed, plain, f"--set {override}")
    return changed


def _plain(
    scenario: Scenario, plain: Callable[[Scenario], Scenario] | None, where: str
) -> Scenario:
    if plain is None:
        return _in_plain_numbers(scenario, where)
    try:
        return plain(scenario)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from None


def _in_plain_numbers(scenario: Scenario, where: str) -> Scenario:
    """The scenario with every amount in the core's units. Raises ConfigurationError."""
    plain = amounts(scenario, AMOUNTS[""], where)
    for name, fields in AMOUNTS.items():
        inner = plain.get(name) if name else None
        if isinstance(inner, dict):
            plain[name] = amounts(inner, fields, f"{where}: {name}")
        elif isinstance(inner, list):
            plain[name] = [
                amounts(one, fields, f"{where}: {name}[{at}]") if isinstance(one, dict) else one
                for at, one in enumerate(inner)
            ]
    return plain


def amounts(table: Scenario, fields: Iterable[str], where: str, joined: str = ": ") -> Scenario:
    """The table with every amount as a plain number, in the unit of its field.

    Raises ConfigurationError: its message is ``where``, ``joined``, the key and the reason.
    """
    try:
        folded = units.fold(table, fields)
    except ValueError as error:
        raise ConfigurationError(f"{where}{joined}{error}") from None
    for field in fields:
        value = folded.get(field)
        if isinstance(value, units.Bare | str):
            key = units.key_of(field) if units.key_of(field) in table else field
            try:
                number = units.of(field, value)
            except ValueError as error:
                shown = value.value if isinstance(value, units.Bare) else value
                said = f"{key} = {shown!r}" if joined else f"{key}: {shown!r}"
                raise ConfigurationError(f"{where}{joined}{said}: {error}") from None
            folded[field] = number
    return folded


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
    raise ConfigurationError(f"--set {override}: no `{part}` there; use one of {', '.join(names)}")


def _names(table: Any) -> list[str]:
    """The names of the tables in a list."""
    entries = table if isinstance(table, list) else []
    return [str(entry.get("name")) for entry in entries if isinstance(entry, dict)]
