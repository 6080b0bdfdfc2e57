"""One notation for times, sizes and rates in files and options: ``20ms``, ``9kB``, ``400kbit``.

Fields hold plain numbers, and their names end with the unit (``silent_after_ms``). In a file the
key has no unit and the value has one: ``silent_after = "2s"``. The old key still works, with a
plain number in its unit. The only parser is in Rust (`olaf_engine::units`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple


class Unit(NamedTuple):
    """A unit at the end of field names."""

    suffix: str
    kind: str
    """``time``, ``size`` or ``rate``."""
    factor: int
    """Nanoseconds, eighths of a byte, or bits per second in one unit."""


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
"""Keys other than the field without its unit, since `aggregate` alone is another key."""


class Bare(NamedTuple):
    """A value without a unit, whose key has none either."""

    value: Any


def unit_of(field: str) -> Unit | None:
    """The unit at the end of a field's name; None for other fields."""
    return next((unit for unit in UNITS if f"_{field}".endswith(unit.suffix)), None)


def key_of(field: str) -> str:
    """The key of a field in a file: ``silent_after`` for ``silent_after_ms``."""
    if field in NAMED:
        return NAMED[field]
    unit = unit_of(field)
    return field.removesuffix(unit.suffix) if unit else field


def read(field: str, text: str) -> int | Decimal:
    """Read a text such as ``2s`` as the field's number; plain numbers are returned unchanged.

    Raises ValueError; the message says what is allowed.
    """
    unit = unit_of(field)
    if unit is None:
        raise ValueError(f"{field} is not a time, size or rate")
    if (number := _plain(text)) is not None:
        return number
    return amount(unit, text)


def of(field: str, value: Bare | str) -> int | Decimal:
    """The field's number from a value that `fold` left. Raises ValueError."""
    unit = unit_of(field)
    if isinstance(value, Bare) and unit is not None:
        return amount(unit, str(value.value))
    return read(field, str(value.value if isinstance(value, Bare) else value))


def write(field: str, value: float) -> str:
    """Write a field's number for a file: ``2s`` for 2000 in ``silent_after_ms``."""
    from olaf import _olaf

    unit = unit_of(field)
    if unit is None:
        raise ValueError(f"{field} is not a time, size or rate")
    base = round(Decimal(str(value)) * unit.factor)
    formats = {"time": _olaf.format_time, "size": _olaf.format_size, "rate": _olaf.format_rate}
    return formats[unit.kind](base)


def fold(table: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    """Rename every key without a unit to the field's name, which has one.

    A plain number there becomes `Bare`: only the old key tells its unit. Raises ValueError if both
    keys are given.
    """
    folded = dict(table)
    known = set(fields)
    for field in known:
        key = key_of(field)
        if key == field or key in known or key not in folded:
            continue
        if field in folded:
            raise ValueError(f"`{key}` and `{field}` are both given: give one of them")
        value = folded.pop(key)
        folded[field] = Bare(value) if _is_bare(value) else value
    return folded


def amount(unit: Unit, text: str) -> int | Decimal:
    """Parse a text with a unit. Raises ValueError."""
    from olaf import _olaf

    parse = {"time": _olaf.parse_time, "size": _olaf.parse_size, "rate": _rate}[unit.kind]
    number = Decimal(parse(text)) / unit.factor
    return int(number) if number == number.to_integral_value() else number


def rate(text: str) -> int:
    """Bits per second of a rate with its unit. Raises ValueError.

    `_olaf.parse_rate` reads a plain number as bits per second, which nobody means: 3 for 3mbit.
    """
    from olaf import _olaf

    if _plain(text) is not None:
        raise ValueError("a rate needs its unit: bit, kbit, mbit, gbit or tbit, as in 400kbit")
    return _olaf.parse_rate(text)


def _rate(text: str) -> int:
    try:
        return rate(text)
    except ValueError as error:
        said = str(error)
        raise ValueError(said.partition(": ")[2] if said.startswith("rate ") else said) from None


def _plain(text: str) -> int | Decimal | None:
    """Parse a text without a unit."""
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
