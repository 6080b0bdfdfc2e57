"""Shared by page and trace: lanes for overlapping spans, and merging of uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

Span = tuple[int, int]
"""Begin and end, in nanoseconds."""


def lanes(spans: Sequence[Span]) -> list[int]:
    """A lane for each span, as few lanes as possible, without overlaps in a lane."""
    chosen = [0] * len(spans)
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    made = 0
    for at in sorted(range(len(spans)), key=lambda at: spans[at]):
        from_ns, to_ns = spans[at]
        while busy and busy[0][0] <= from_ns:
            heappush(free, heappop(busy)[1])
        if not free:
            heappush(free, made)
            made += 1
        chosen[at] = heappop(free)
        heappush(busy, (to_ns, chosen[at]))
    return chosen


def merged(spans: Iterable[Span], gap_ns: int = 0) -> list[Span]:
    """Spans in order, with those that overlap or lie at most ``gap_ns`` apart merged."""
    joined: list[Span] = []
    for from_ns, to_ns in sorted(spans):
        if joined and from_ns - joined[-1][1] <= gap_ns:
            joined[-1] = (joined[-1][0], max(joined[-1][1], to_ns))
        else:
            joined.append((from_ns, to_ns))
    return joined


def thinned(series: Sequence[Sequence[Span]], most: int) -> tuple[list[list[Span]], int]:
    """The spans of each series, merged until there are at most ``most`` in all, or one a series.

    Also returns the gap in nanoseconds up to which neighbours were merged; 0 if none were.
    """
    gap_ns = 0
    kept = [merged(spans) for spans in series]
    while sum(map(len, kept)) > max(most, len(series)):
        gap_ns = max(1_000, gap_ns * 2)
        kept = [merged(spans, gap_ns) for spans in kept]
    return kept, gap_ns


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers as (first, count) of consecutive runs."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == sum(found[-1]):
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((number, 1))
    return found
