"""One step of a training program as a pattern, from observations of many steps.

The model is the paper's (MINA §IV-B b): computation takes the same time on every network. The
pattern has for each all-reduce its earliest start, the launch when its gradient is ready. For the
step it has the time at which the program begins to wait for results: all-reduces that have ended
by then cost nothing.

Times are counted on a clock that stands still while the program waits, so a pattern does not depend
on the network of the recording. Nothing here knows torch or reads a clock: ``olaf.torch.recording``
reports the events with their times.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MOST_OPERATIONS = 65_536
LONGEST_NS = 86_400_000_000_000
MOST_BYTES = 1 << 40
"""Limits of a pattern, as in the scheduler's reader."""


class RecordingError(Exception):
    """The observations make no pattern; the message says why and what to do."""


@dataclass(frozen=True)
class Step:
    """One observed step, in nanoseconds without waiting."""

    duration_ns: int
    operations: tuple[tuple[int, int], ...]
    """(start in ns from the step's begin, bytes) of each all-reduce, in order."""
    waiting_ns: int
    """Nanoseconds that the program waited; no other field includes them."""
    between_ns: int
    """Nanoseconds of computation between the step's first wait and its last."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each all-reduce."""
        return tuple(size for _, size in self.operations)


@dataclass
class Recording:
    """Takes in events, in order of time; returns a pattern once it has seen enough.

    A step lasts from the end of the previous step's last wait to the end of its own last wait.
    differs: MINA counts from the begin of the program's loop. The optimiser then runs after the
    wait, and the format of patterns has no place for it. Counted from the end of a wait, the
    optimiser comes first in the step, and max(duration, end of the last all-reduce) is exact.
    """

    steps: int
    """Number of steps to keep."""
    warmup: int
    """Number of steps to skip first, at least 1: the first step's begin was not observed."""
    _seen: list[Step] = field(default_factory=list)
    _skipped: int = 0
    _waited_ns: int = 0
    _waiting_since: int | None = None
    _begin_ns: int | None = None
    _waited_before_ns: int = 0
    _first_wait_ns: int | None = None
    _last_wait_ns: int | None = None
    _operations: list[tuple[int, int]] = field(default_factory=list)
    _ended: int = 0
    """Number of those that were launched before the last wait ended."""

    def __post_init__(self) -> None:
        for name, value, least in (("steps", self.steps, 1), ("warmup", self.warmup, 1)):
            if value < least:
                raise ValueError(f"{name} = {value}: must be at least {least}")

    @property
    def complete(self) -> bool:
        """True once all steps are observed; further events are ignored."""
        return len(self._seen) >= self.steps

    @property
    def count(self) -> int:
        """Number of observed steps, including the skipped ones."""
        return self._skipped + len(self._seen)

    def started(self, now_ns: int, size: int) -> None:
        """Record the launch of an all-reduce of this many bytes; ignore 0 bytes."""
        if size > 0:
            self._operations.append((self._computing_ns(now_ns), size))

    def waiting(self, now_ns: int) -> None:
        """Record that the program begins to wait for results."""
        if self._waiting_since is not None:
            return
        self._waiting_since = now_ns
        if self._first_wait_ns is None:
            self._first_wait_ns = self._computing_ns(now_ns)

    def waited(self, now_ns: int) -> None:
        """Record that the results are there."""
        if self._waiting_since is None:
            return
        self._last_wait_ns = self._computing_ns(now_ns)
        self._ended = len(self._operations)
        self._waited_ns += now_ns - self._waiting_since
        self._waiting_since = None

    def stepped(self, now_ns: int) -> None:
        """Record the end of a step, at its last wait; later events belong to the next step."""
        if self.complete:
            return
        end_ns = self._last_wait_ns
        if end_ns is None:
            end_ns, self._ended = self._computing_ns(now_ns), len(self._operations)
        mine = self._operations[: self._ended]
        if self._begin_ns is not None and self.count >= self.warmup:
            self._seen.append(self._step(self._begin_ns, end_ns, mine))
        else:
            self._skipped += 1
        self._operations = self._operations[self._ended :]
        self._begin_ns, self._waited_before_ns = end_ns, self._waited_ns
        self._first_wait_ns = self._last_wait_ns = None

    def restart(self) -> None:
        """Drop the observed steps; the present step goes on."""
        self._seen, self._skipped, self._begin_ns = [], 0, None

    def result(self) -> Pattern:
        """The pattern of a step. Raises RecordingError if the observations make none."""
        if not self.complete:
            raise RecordingError(
                f"recorded {len(self._seen)} of {self.steps} steps after {self._skipped} of "
                f"{self.warmup} for warming up: run the program longer, or ask for fewer"
            )
        return pattern_of(self._seen, self.warmup)

    def _computing_ns(self, now_ns: int) -> int:
        """The time without the time spent waiting."""
        until_ns = now_ns if self._waiting_since is None else self._waiting_since
        return until_ns - self._waited_ns

    def _step(self, begin_ns: int, end_ns: int, mine: Sequence[tuple[int, int]]) -> Step:
        first_ns = end_ns if self._first_wait_ns is None else self._first_wait_ns
        return Step(
            duration_ns=end_ns - begin_ns,
            operations=tuple((start_ns - begin_ns, size) for start_ns, size in mine),
            waiting_ns=self._waited_ns - self._waited_before_ns,
            between_ns=end_ns - first_ns,
        )


@dataclass(frozen=True)
class Pattern:
    """The communication of one step, and the spread of the steps it was taken from."""

    duration_ns: int
    operations: tuple[tuple[int, int], ...]
    """(start in ns from the step's begin, bytes) of each all-reduce; starts never decrease."""
    recorded: dict[str, Any]
    """Origin of the pattern; readers of patterns ignore it."""

    @property
    def size(self) -> int:
        """Bytes of all all-reduces together."""
        return sum(size for _, size in self.operations)

    def document(self, **about: Any) -> dict[str, Any]:
        """The contents of the file, in seconds and bytes.

        about: model, batch, dtype, device and the like, for ``recorded``.
        """
        return {
            "duration": _seconds(self.duration_ns),
            "allreduces": [
                {"start": _seconds(start_ns), "size": size} for start_ns, size in self.operations
            ],
            "recorded": {**about, **self.recorded},
        }

    def write(self, path: Path | str, **about: Any) -> None:
        """Write the file completely, or not at all."""
        path = Path(path)
        partial = path.with_name(path.name + ".partial")
        text = json.dumps(self.document(**about), indent=1, allow_nan=False) + "\n"
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)


def pattern_of(steps: Sequence[Step], warmup: int) -> Pattern:
    """The median of equal steps, and their spread.

    Raises RecordingError if the steps differ, or if the scheduler could not read the result.
    """
    _same(steps)
    durations = [step.duration_ns for step in steps]
    # Medians of series that never decrease never decrease: the order is that of every step.
    starts = [[step.operations[i][0] for step in steps] for i in range(len(steps[0].sizes))]
    pattern = Pattern(
        duration_ns=_median(durations),
        operations=tuple(
            (_median(each), size) for each, size in zip(starts, steps[0].sizes, strict=True)
        ),
        recorded={
            "steps": len(steps),
            "warmup": warmup,
            "spread": {
                "duration": _spread(durations),
                "start": _spread(max(starts, key=_between_quartiles)),
            },
            "waiting": _seconds(_median([step.waiting_ns for step in steps])),
            "between_waits": _seconds(_median([step.between_ns for step in steps])),
        },
    )
    _check(pattern)
    return pattern


def _same(steps: Sequence[Step]) -> None:
    for at, step in enumerate(steps):
        if not step.sizes:
            raise RecordingError(
                f"step {at + 1} launched no all-reduce: watch the model that is trained, call "
                "step() once per step, and call torch.distributed.all_reduce by that name"
            )
        if step.sizes != steps[0].sizes:
            here, first = _told(step.sizes), _told(steps[0].sizes)
            raise RecordingError(
                f"step {at + 1} launched {here}; step 1 {first}. A pattern is one step that "
                "repeats: warm up longer if the program was still settling, or call step() where "
                "it repeats"
            )


def _told(sizes: Sequence[int]) -> str:
    few = ", ".join(f"{size:,}" for size in sizes[:4])
    return f"{len(sizes)} all-reduces of {few}{', ..' if len(sizes) > 4 else ''} bytes"


def _check(pattern: Pattern) -> None:
    if not 0 < pattern.duration_ns <= LONGEST_NS:
        raise RecordingError(
            f"a step of {_seconds(pattern.duration_ns)} s: not from 1 ns to a day; where is step() "
            "called?"
        )
    if len(pattern.operations) > MOST_OPERATIONS:
        raise RecordingError(
            f"{len(pattern.operations)} all-reduces in a step, at most {MOST_OPERATIONS}: call "
            "step() more often"
        )
    for at, (_, size) in enumerate(pattern.operations):
        if size > MOST_BYTES:
            raise RecordingError(f"all-reduce {at + 1} of {size} bytes: at most 1 TiB")


def _median(values: Sequence[int]) -> int:
    return statistics.median_low(values)


def _quartiles(values: Sequence[int]) -> tuple[int, int]:
    ordered = sorted(values)
    last = len(ordered) - 1
    return ordered[last // 4], ordered[last - last // 4]


def _between_quartiles(values: Sequence[int]) -> int:
    low, high = _quartiles(values)
    return high - low


def _spread(values: Sequence[int]) -> dict[str, float]:
    low, high = _quartiles(values)
    named = {"least": min(values), "quarter": low, "three_quarters": high, "most": max(values)}
    return {name: _seconds(value) for name, value in named.items()}


def _seconds(ns: int) -> float:
    return round(ns / 1e9, 9)
