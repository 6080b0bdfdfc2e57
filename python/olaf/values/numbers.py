"""Numbers as people read them."""

from __future__ import annotations


def number(value: float | None, digits: int = 1, unit: str = "") -> str:
    """A number for people: ``12,345.6 unit``, or a dash where there is none.

    A number that the decimals would make 0 has two significant digits: ``0.0031``.
    """
    if value is None:
        return "-"
    text = f"{value:,.{digits}f}"
    if float(text.replace(",", "")) == 0:
        text = f"{value:.2g}" if value else text.removeprefix("-")
    return text + unit


def score(value: float | None) -> str:
    """A reward: ``214.6``, ``-1,152.0``, ``8.25``, ``0.00312``: at least three digits tell."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 10 or value == round(value, 1):
        return number(value)
    return f"{value:.2f}" if size >= 1 else f"{value:.3g}"


def counted(count: float, noun: str, nouns: str = "") -> str:
    """A count with its noun: ``1 worker``, ``1,234 workers``; nouns: the plural without an -s."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def duration(seconds: float | None) -> str:
    """A time in the unit that suits it: ``1.2 ms``, ``3.4 s``."""
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.{2 if unit == 's' else 1}f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def percent(part: float | None, digits: int = 2) -> str:
    """A share: ``1.25 %``."""
    return "-" if part is None else f"{part * 100:.{digits}f} %"


def rate(bytes_per_s: float | None) -> str:
    """Bytes a second as bits a second."""
    if bytes_per_s is None:
        return "-"
    bits = bytes_per_s * 8
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bits >= size:
            return f"{bits / size:.2f} {unit}"
    return f"{bits:.0f} bit/s"


def short(value: float, digits: int | None = None) -> str:
    """Three or four significant digits, ``1,152``, ``44.1``, ``0.031``; or ``digits`` decimals."""
    if digits is not None:
        return f"{round(value, digits) or 0.0:,.{digits}f}"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size == 0:
        return "0"
    if size >= 100 or value == round(value, 0):
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 1 else f"{value:.3g}"


def counted_shortly(value: float, noun: str) -> str:
    """A mean with its noun: ``230 steps``, ``1 step``, ``18.2 steps``."""
    text = short(value)
    return f"{text} {noun if text == '1' else noun + 's'}"
