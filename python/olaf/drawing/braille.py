"""A curve in a terminal: two by four dots a character, by way of the braille block."""

from __future__ import annotations

from collections.abc import Sequence

from olaf.values.numbers import score

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def curve(points: Sequence[tuple[float, float]], width: int, height: int) -> list[str]:
    """Lines of text that draw (x, y) points, with the range of y at the left."""
    label = 9
    columns = max(width - label, 4)
    if len(points) < 2:
        blank = " " * (label + columns)
        return [blank] * height
    xs, ys = [x for x, _ in points], [y for _, y in points]
    low, high = min(ys), max(ys)
    span = (high - low) or 1.0
    wide = (max(xs) - min(xs)) or 1.0
    cells = [[0] * columns for _ in range(height)]
    before: int | None = None
    for dot_x, value in enumerate(_resample(points, min(xs), wide, columns * 2)):
        dot_y = round((high - value) / span * (height * 4 - 1))
        first = dot_y if before is None else before
        for y in range(min(first, dot_y), max(first, dot_y) + 1):
            cells[y // 4][dot_x // 2] |= _DOTS[y % 4][dot_x % 2]
        before = dot_y
    lines = ["".join(chr(0x2800 + cell) for cell in row) for row in cells]
    labels = {0: f"{score(high):>8} ", height - 1: f"{score(low):>8} "}
    return [labels.get(row, " " * label) + line for row, line in enumerate(lines)]


def bar(part: float, width: int) -> str:
    """A bar that is filled to ``part`` of its width."""
    filled = round(max(0.0, min(part, 1.0)) * width)
    return "█" * filled + "░" * (width - filled)


def _resample(
    points: Sequence[tuple[float, float]], start: float, wide: float, count: int
) -> list[float]:
    """The value at each of ``count`` moments from first to last, straight between points."""
    values: list[float] = []
    index = 0
    for step in range(count):
        x = start + wide * step / (count - 1)
        while index + 1 < len(points) and points[index + 1][0] <= x:
            index += 1
        (x0, y0), (x1, y1) = points[index], points[min(index + 1, len(points) - 1)]
        part = (x - x0) / (x1 - x0) if x1 > x0 else 0.0
        values.append(y0 + (y1 - y0) * max(0.0, min(part, 1.0)))
    return values
