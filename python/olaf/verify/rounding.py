"""Rounds the times of a spec to ticks so that a proof of the rounded spec holds for the exact one.

Times rarely have a large common divisor: 8,960 bytes at 1 Gbit/s take 71.68 us. Rounding each of
them to the nearest tick would prove something about other senders. Two steps are safe instead:

1. All times are stretched by one factor, up to the next whole tick of the service. Every run is
   then the same run, slower: its ages are longer, and its losses are the same.
2. Each interval is cut down to a whole tick. The updates of a sender with the exact interval are
   late by a part of a tick more each time. The jitter grows by what this comes to within the
   horizon, so that every exact run is one of the rounded runs.

A rounded run need not be an exact one. A limit that is violated by less than the added lateness may
therefore hold for exact times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

LONGEST_HORIZON = 2_000
"""Largest horizon in ticks that is looked for where no tick is asked for."""
LONGEST_STRETCH = Fraction(3, 2)
"""Most by which times may be longer."""
PARTS = 40
"""Ticks are tried up to the service divided by this, and down to it times this."""


@dataclass(frozen=True)
class Exact:
    """The exact times of a spec, microseconds."""

    service: Fraction
    horizon: Fraction
    senders: tuple[tuple[Fraction, Fraction], ...]
    """Interval and jitter of each kind of sender."""


@dataclass(frozen=True)
class Rounded:
    """The same in ticks."""

    tick_us: int
    stretch: Fraction
    """The factor of the first step, at least 1."""
    service: int
    horizon: int
    senders: tuple[tuple[int, int], ...]
    """Interval and jitter of each kind of sender, in the order of `Exact.senders`."""
    added: tuple[Fraction, ...]
    """For each kind of sender: the lateness that rounding added, ticks."""

    @property
    def worst(self) -> Fraction:
        """How far it is from exact: the largest added lateness, as a share of its interval, or the
        share by which all times are longer."""
        shares = zip(self.added, self.senders, strict=True)
        return max(self.stretch - 1, *(added / interval for added, (interval, _) in shares))


def rounded(exact: Exact, tick_us: int) -> Rounded | None:
    """The times in ticks; None if the tick is too coarse for the service or for an interval."""
    service = ceil(exact.service / tick_us)
    stretch = service * tick_us / exact.service
    if stretch > LONGEST_STRETCH:
        return None
    scale = stretch / tick_us
    horizon = ceil(exact.horizon * scale)
    senders: list[tuple[int, int]] = []
    added: list[Fraction] = []
    for interval, jitter in exact.senders:
        whole = floor(interval * scale)
        if whole == 0:
            return None
        # Updates by the horizon, and the part of a phase that is above the last whole one.
        rest = (interval * scale - whole) * (horizon // whole + 1)
        late = ceil(jitter * scale + rest)
        if late >= whole:
            return None
        senders.append((whole, late))
        added.append(late - jitter * scale)
    return Rounded(tick_us, stretch, service, horizon, tuple(senders), tuple(added))


def best(exact: Exact) -> Rounded | None:
    """The rounding with the least added lateness and a horizon that provers may reach."""
    found = (rounded(exact, tick_us) for tick_us in _ticks(exact))
    possible = [each for each in found if each is not None and each.horizon <= LONGEST_HORIZON]
    # Of equally good ones the coarsest tick is the quickest to decide.
    return min(possible, key=lambda each: (each.worst, each.horizon), default=None)


def _ticks(exact: Exact) -> Sequence[int]:
    """Ticks to try, microseconds: parts of the service, and of the shortest interval."""
    shortest = min(interval for interval, _ in exact.senders)
    parts = {
        ceil(time / part) for time in (exact.service, shortest) for part in range(1, PARTS + 1)
    }
    return sorted(parts)
