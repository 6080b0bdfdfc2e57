"""One way to write times, sizes and rates in every file and option: ``20ms``, ``9kB``, ``400kbit``.

Fields hold plain numbers and say their unit in their name (``silent_after_ms``). In a file the same
thing is a key without the unit and a text with it: ``silent_after = "2s"``. The old key still
reads, with a plain number in its unit. Rust has the one parser (`olaf_engine::units`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple


class Unit(NamedTuple):
    """What a field's name ends in."""

    suffix: str
    kind: str
    """``time``, ``size`` or ``rate``."""
    factor: int
    """Nanoseconds, eighths of bytes or bits per second of 1."""


UNITS = (
    Unit("_ns", "time", 1),
    Unit("_us", "time", 1_000),
    Unit("_ms", "time", 1_000_000),
    Unit("_s", "time", 1_000_000_000),
    Unit("_bps", "rate", 1),
    Unit("_bytes_per_second", "rate", 8),
    Unit("_bytes", "size", 1),
)
NAMED = {
    "aggregate_ms": "aggregate_within",
    "bytes_per_second": "rate",
    "every_s": "every",
}
"""Keys that are not simply the field without its unit: `aggregate` alone is another key."""


class Bare(NamedTuple):
    """A value without a unit where the key has none either."""

    value: Any


def unit_of(field: str) -> Unit | None:
    """The unit that a field's name ends in; None for a field that is no amount."""
    return next((unit for unit in UNITS if f"_{field}".endswith(unit.suffix)), None)


def key_of(field: str) -> str:
    """The key that a file has for a field: ``silent_after`` for ``silent_after_ms``."""
    if field in NAMED:
        return NAMED[field]
    unit = unit_of(field)
    return field.removesuffix(unit.suffix) if unit else field


def read(field: str, text: str) -> int | Decimal:
    """The number that a field holds, of a text such as ``2s``; a plain number is one already.

    Raises ValueError, whose message says what may be written.
    """
    unit = unit_of(field)
    if unit is None:
        raise ValueError(f"{field} is no time, size or rate")
    if (number := _plain(text)) is not None:
        return number
    return amount(unit, text)


def of(field: str, value: Bare | str) -> int | Decimal:
    """The number that a field holds, of what `fold` left there. Raises ValueError."""
    unit = unit_of(field)
    if isinstance(value, Bare) and unit is not None:
        return amount(unit, str(value.value))
    return read(field, str(value.value if isinstance(value, Bare) else value))


def write(field: str, value: float) -> str:
    """A field's number as a file has it: ``2s`` for 2000 in ``silent_after_ms``."""
    from olaf import _olaf

    unit = unit_of(field)
    if unit is None:
        raise ValueError(f"{field} is no time, size or rate")
    base = round(Decimal(str(value)) * unit.factor)
    formats = {"time": _olaf.format_time, "size": _olaf.format_size, "rate": _olaf.format_rate}
    return formats[unit.kind](base)


def fold(table: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    """The table with every key that has a field's name without its unit under the field's name.

    A number there becomes `Bare`: only the old key says in which unit it is. Raises ValueError
    where both keys are given.
    """
    folded = dict(table)
    known = set(fields)
    for field in known:
        key = key_of(field)
        if key == field or key in known or key not in folded:
            continue
        if field in folded:
            raise ValueError(f"`{key}` and `{field}` are both given: one is enough")
        value = folded.pop(key)
        folded[field] = Bare(value) if _is_bare(value) else value
    return folded


def amount(unit: Unit, text: str) -> int | Decimal:
    """The number that a text with a unit is. Raises ValueError."""
    from olaf import _olaf

    parse = {"time": _olaf.parse_time, "size": _olaf.parse_size, "rate": _rate}[unit.kind]
    number = Decimal(parse(text)) / unit.factor
    return int(number) if number == number.to_integral_value() else number


def _rate(text: str) -> int:
    from olaf import _olaf

    if _plain(text) is not None:
        raise ValueError("a rate needs its unit: bit, kbit, mbit, gbit or tbit, as in 400kbit")
    try:
        return _olaf.parse_rate(text)
    except ValueError as error:
        raise ValueError(str(error).partition(": ")[2]) from None


def _plain(text: str) -> int | Decimal | None:
    """The number that a text without a unit is."""
    bare = text.strip()
    if not bare.replace(".", "", 1).isdecimal():
        return None
    return int(bare) if bare.isdecimal() else Decimal(bare)


def _is_bare(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float | Decimal) or (
        isinstance(value, str) and _plain(value) is not None
    )
