"""How workers agree where to go on when their switch has failed (docs/design/029-second-switch.md).

Each worker numbers its operations from 0, in the order in which it begins them. Some workers may
have the result of an operation that others lack. They must not compute it again: a sum of floats
depends on the order of its terms. So a worker that has the result gives it to all.

All of this needs two small operations alone: the smallest of some integers, and a broadcast.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

MARK = 0x4F4C4146_4D454554
"""Every worker of a meeting says this number. A program that calls something else does not."""
NOBODY = 1 << 32
"""Larger than every rank."""
MOST_OPERATIONS = 1 << 16
"""Workers are never so many operations apart."""

LANES = ("f32", "f16", "bf16", "i32", "i64")
OPERATIONS = ("sum", "mean", "exact_sum", "exact_mean", "min", "max", "broadcast")
ENDS = ("", "partial", "not_finite")
"""How an operation ends at all workers alike: well, or for one of these reasons."""


class DisagreementError(Exception):
    """The workers cannot go on together; all of them find the same."""


class Talk(Protocol):
    """What the workers of a meeting do together: all call the same in the same order."""

    def smallest(self, numbers: list[int]) -> list[int]:
        """The smallest of each number over all workers."""

    def copy_of(self, rank: int, words: NDArray[np.int64]) -> None:
        """Overwrite ``words`` with those of the worker with that rank."""


class Kind(NamedTuple):
    """What an operation is. Workers whose operations differ in this must not share a result."""

    lanes: str
    op: str
    root: int
    bytes: int


class Result(NamedTuple):
    """How an operation ended."""

    kind: Kind
    reason: str
    """One of `ENDS`."""
    counts: tuple[int, int, bool]
    """Contributors, expected workers, whether a lane is not finite."""
    words: NDArray[np.int64]
    """The lanes of the result, filled up to whole words; empty after an error."""


class Standing(NamedTuple):
    """Where a worker stands."""

    rank: int
    run: int
    """The generation in which the operations were numbered: it began for all workers at once."""
    begun: int
    """Operations that have begun."""
    open: Set[int]
    """Those that have not ended."""
    kept: Mapping[int, Result]
    """Results that this worker can give."""

    @property
    def first_open(self) -> int:
        """The first operation that has not ended."""
        return min(self.open, default=self.begun)

    @property
    def last_ended(self) -> int:
        """One after the last operation that has ended."""
        ended = self.begun
        while ended and ended - 1 in self.open:
            ended -= 1
        return ended

    def has_ended(self, operation: int) -> bool:
        """Whether that operation has ended here."""
        return operation < self.begun and operation not in self.open


def givers(talk: Talk, mine: Standing) -> dict[int, int]:
    """The rank that gives the result, for each operation that has ended somewhere, not everywhere.

    All other operations that have not ended begin again, in their order. Raises DisagreementError.
    """
    run, low, high = mine.run, mine.first_open, mine.last_ended
    low, high, *checks = talk.smallest([low, -high, run, -run, MARK, -MARK])
    high = -high
    if checks[2:] != [MARK, -MARK]:
        raise DisagreementError(
            "another program takes part in this job there: use another job number"
        )
    if checks[0] != -checks[1]:
        raise DisagreementError("a worker was replaced, and counts from another operation")
    if high - low > MOST_OPERATIONS:
        raise DisagreementError(f"the workers are {high - low} operations apart")
    if high <= low:
        return {}
    between = range(low, high)
    kept = [mine.rank if index in mine.kept else NOBODY for index in between]
    ended = [-int(mine.has_ended(index)) for index in between]
    found = talk.smallest(kept + ended)
    kept, ended = found[: len(between)], found[len(between) :]
    for index, giver, has_ended in zip(between, kept, ended, strict=True):
        if has_ended and giver == NOBODY:
            raise DisagreementError(f"no worker has kept the result of operation {index}")
    return {index: giver for index, giver in zip(between, kept, strict=True) if giver != NOBODY}


def shared(talk: Talk, mine: Standing, givers: Mapping[int, int]) -> dict[int, Result]:
    """Give and take these results: those that this worker lacks."""
    taken = {}
    for index, giver in sorted(givers.items()):
        own = mine.kept[index] if giver == mine.rank else None
        header = np.zeros(9, np.int64) if own is None else _header(index, own)
        talk.copy_of(giver, header)
        described = _described(index, header)
        if own is not None:
            words = own.words
        else:
            size = -(-described.kind.bytes // 8) if not described.reason else 0
            words = np.zeros(size, np.int64)
        if words.size:
            talk.copy_of(giver, words)
        if not mine.has_ended(index):
            taken[index] = described._replace(words=words)
    return taken


def _header(index: int, result: Result) -> NDArray[np.int64]:
    lanes, op, root, size = result.kind
    kind = (LANES.index(lanes), OPERATIONS.index(op), root, size)
    numbers: tuple[Any, ...] = (index, *kind, *result.counts, ENDS.index(result.reason))
    return np.array(numbers, np.int64)


def _described(index: int, header: NDArray[np.int64]) -> Result:
    its, lanes, op, root, size, contributors, expected, not_finite, reason = map(int, header)
    if its != index:
        raise DisagreementError(f"a worker gave operation {its} in place of {index}")
    kind = Kind(LANES[lanes], OPERATIONS[op], root, size)
    counts = (contributors, expected, bool(not_finite))
    return Result(kind, ENDS[reason], counts, np.zeros(0, np.int64))
