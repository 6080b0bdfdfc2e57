"""Reads scenarios of `olaf simulate sums` from TOML files, and finds the line of a key."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from olaf.errors.usage import ConfigurationError
from olaf.scenarios.reading import amounts
from olaf.values import units
from olaf.values.parsed import toml_of

Scenario: TypeAlias = dict[str, Any]
"""Tables of a scenario. Only the core checks their contents, when it runs them."""

SWITCH = (
    "memory_bytes", "silence_ms", "uplink_bps", "downlink_bps", "link_bps", "deadline_ms",
    "timer_ms", "straggler_check_ms", "permanent_after_ms", "max_age_ms", "repeat_ms", "settle_ms",
)  # fmt: skip
AMOUNTS: dict[str, tuple[str, ...]] = {
    "": ("limit_ns",),
    "network": (
        "rate_bps", "delay_ns", "trunk_rate_bps", "trunk_delay_ns", "datagram_bytes",
        "header_bytes", "queue_bytes", "ecn_bytes",
    ),
    "switch.reduce": SWITCH,
    "switch.iswitch": SWITCH,
    "switch.trio": SWITCH,
    "switch.atp": SWITCH,
    "switch.atp_server": SWITCH,
    "jobs": ("model_bytes", "begin_ns", "compute_ns", "update_ns", "adds_bps"),
    "jobs.straggler": ("typical_ns",),
    "jobs.options": (
        "block_bytes", "deadline_ms", "silence_ms", "keepalive_ms", "timer_ms",
    ),
    "jobs.protocol": ("time_out_ms",),
}  # fmt: skip
"""For each table, the keys that hold a time, a size or a rate: see `olaf.values.units`."""
LISTS = {"jobs": ("compute_list_ns",)}
"""The same, of which the value is a list."""

TABLE = re.compile(r"\s*(\[\[?)\s*([\w.\-\" ]+?)\s*\]\]?")
KEY = re.compile(r"\s*([\w.\-]+)\s*=")


def read(file: Path) -> Scenario:
    """The tables of a file. Raises ConfigurationError, which names it."""
    try:
        tables = toml_of(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{file}: is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{file}: not TOML: {error}") from None
    try:
        return plain(tables)
    except ConfigurationError as error:
        raise located(file, str(error)) from None


def plain(tables: Mapping[str, Any]) -> Scenario:
    """The scenario with every amount in the core's units.

    Raises ConfigurationError, whose message begins with the key.
    """
    for key, value in _leaves(tables, ""):
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigurationError(f"{key}: {value} is no number")
    return _table(tables, "", "")


def located(file: Path, message: str) -> ConfigurationError:
    """The error with the file, and the line of the key that its message begins with."""
    key, found, _ = message.partition(": ")
    line = _line(file, key) if found else None
    return ConfigurationError(f"{file}{'' if line is None else f':{line}'}: {message}")


def _leaves(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _leaves(inner, f"{key}[{at}]")
    else:
        yield key, value


def _table(table: Mapping[str, Any], name: str, where: str) -> Scenario:
    """A table in plain numbers, and the tables in it. ``where`` is its key in the file."""
    prefix = f"{where}." if where else ""
    made = amounts(dict(table), AMOUNTS.get(name, ()), prefix, joined="")
    for field in LISTS.get(name, ()):
        key = units.key_of(field)
        given = made.pop(key, None)
        if isinstance(given, list):
            made[field] = [
                amounts({key: value}, (field,), f"{prefix}{key}[{at}]: ", joined="")[field]
                for at, value in enumerate(given)
            ]
        elif given is not None:
            raise ConfigurationError(f"{prefix}{key}: {given!r} is no list")
    for key, value in made.items():
        inner = f"{name}.{key}" if name else key
        if isinstance(value, dict):
            made[key] = _table(value, inner, f"{prefix}{key}")
        elif isinstance(value, list) and all(isinstance(one, dict) for one in value):
            made[key] = [_table(one, inner, f"{prefix}{key}[{at}]") for at, one in enumerate(value)]
    return made


def _line(file: Path, key: str) -> int | None:
    """The line of a key such as ``jobs[1].straggler.points``, or of the nearest table around it."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    wanted = _parts(key)
    best: tuple[int, int] = (0, 0)
    for number, here in _keys(lines):
        shared = 0
        for one, other in zip(here, wanted, strict=False):
            if one != other:
                break
            shared += 1
        if shared == len(here) and shared > best[0]:
            best = (shared, number)
    return best[1] or None


def _keys(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Every table and key of a file: its line, and its place from the top."""
    counts: dict[str, int] = {}
    table: list[str] = []
    for number, line in enumerate(lines, 1):
        if found := TABLE.match(line):
            bracket, name = found.groups()
            first, *rest = name.split(".")
            if bracket == "[[":
                counts[name] = counts.get(name, -1) + 1
            at = [f"[{counts[first]}]"] if first in counts else []
            table = [first, *at, *rest]
            yield number, table
        elif found := KEY.match(line):
            yield number, [*table, *_parts(found.group(1))]


def _parts(key: str) -> list[str]:
    """``jobs[1].compute_ns`` as ``jobs``, ``[1]``, ``compute``: a unit is no part of a key."""
    parts: list[str] = []
    for part in key.split("."):
        name, bracket, index = part.partition("[")
        parts += [units.key_of(name), f"[{index}"] if bracket else [units.key_of(name)]
    return parts
