"""results.json as text: one result on each line, so that a changed number changes one line."""

from __future__ import annotations

import json
from typing import Any

from olaf.experiments.result import Record

OPENED = frozenset(
    ["parameters", "paper", "rows", "charts", "series", "tables", "differences", "notes", "bounds"]
)
"""Keys whose value has a line for each of its items. Every other value stands on one line."""


def record_text(record: Record) -> str:
    """The record as JSON. `Record.model_validate_json` reads it back as it was."""
    return _opened(record.model_dump(mode="json"), 0) + "\n"


def _opened(value: Any, depth: int) -> str:
    """A list or table with a line for each item."""
    if isinstance(value, dict):
        lines = [f"{_line(key)}: {_value(key, item, depth + 1)}" for key, item in value.items()]
        return _between("{", lines, "}", depth)
    return _between("[", [_item(item, depth + 1) for item in value], "]", depth)


def _value(key: str, value: Any, depth: int) -> str:
    return _opened(value, depth) if _is_opened(key, value) else _line(value)


def _item(value: Any, depth: int) -> str:
    """An item of a list: on one line, unless it has results of its own, as a chart has series."""
    has_results = isinstance(value, dict) and any(_is_opened(*item) for item in value.items())
    return _opened(value, depth) if has_results else _line(value)


def _is_opened(key: str, value: Any) -> bool:
    return key in OPENED and isinstance(value, list | dict) and bool(value)


def _between(before: str, lines: list[str], after: str, depth: int) -> str:
    inner, outer = "\n" + " " * (depth + 1), "\n" + " " * depth
    return f"{before}{inner}{(',' + inner).join(lines)}{outer}{after}"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
