"""The operations of all workers side by side, from the files of their flight recorders.

``olaf.sums.flight`` writes the files. They may be those of a stranger: each value is checked.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from olaf.sums.flight import ASKED, DONE, ENDED, FORMAT, LARGEST_SIZE, NOT_BEGUN, OPEN, SUFFIX, ask
from olaf.values.parsed import json_of
from olaf.values.printable import printable

LARGEST_FILE = 64 << 20
ANSWER_S = 2.0
"""Workers that run answer within this time."""
LATE_NS = 10**9
"""A worker that joined this long after others had ended an operation came later than they."""
WAITS_NS = 10**9
"""Workers write their files one after the other. An operation that others have not begun counts as
missing there if a worker has waited for it this long."""

JobKey: TypeAlias = tuple[int, int | None]


@dataclass(frozen=True)
class Call:
    """What a worker called."""

    text: str
    """As in ``all_reduce(sum) of float32[100]``."""
    place: str
    """As in ``train.py:31``; empty without OLAF_CHECK."""


@dataclass(frozen=True)
class Seen:
    """An operation as one worker saw it."""

    call: Call
    begun_ns: int
    ended_ns: int | None
    state: str
    error: str
    culprit: int | None

    @property
    def has_failed(self) -> bool:
        """It has ended with an error."""
        return self.state not in (OPEN, DONE, ENDED, NOT_BEGUN)


@dataclass
class Rank:
    """The file of a worker."""

    rank: int
    workers: int
    file: str
    written_ns: int
    joined_ns: int
    why: str
    forgotten: int
    is_stale: bool
    """It did not answer when it was asked last."""
    begun: dict[int, Seen] = field(default_factory=dict)
    refused: dict[int, Seen] = field(default_factory=dict)
    """Calls that began no operation."""

    @property
    def has_left(self) -> bool:
        """It will begin no more operations."""
        return self.why == "left"

    def lacks(self, number: int) -> bool:
        """It has not begun the operation, for certain."""
        if number in self.begun:
            return False
        if not self.begun:
            return not self.is_stale and not self.forgotten
        if number < min(self.begun):
            return not self.forgotten
        return number < max(self.begun) or not self.is_stale

    def is_past(self, number: int) -> bool:
        """It will not begin the operation any more."""
        return self.has_left or number < max(self.begun, default=0)


@dataclass(frozen=True)
class Difference:
    """The first operation at which workers differ."""

    number: int
    calls: dict[Call, list[int]]
    """The ranks that made each call."""
    missing: list[int]
    """Ranks that have not begun it."""
    waiting: dict[int, int]
    """Ranks that wait for it, and since how many nanoseconds."""


@dataclass
class Job:
    """The workers of a job."""

    job: int
    program: int | None
    about: str
    workers: int
    ranks: dict[int, Rank]
    older: int
    """Files of ranks that have a newer one."""
    late: list[int]
    """Ranks that joined after the others had ended operations: their numbers do not fit."""
    difference: Difference | None = None
    failure: int | None = None
    """The first operation that failed."""

    @property
    def absent(self) -> list[int]:
        """Ranks without a file."""
        return [rank for rank in range(min(self.workers, 1 << 16)) if rank not in self.ranks]

    @property
    def is_good(self) -> bool:
        """Nothing differs, and nothing has failed."""
        refused = any(rank.refused for rank in self.ranks.values())
        return self.difference is None and self.failure is None and not refused

    @property
    def compared(self) -> dict[int, Rank]:
        """The ranks whose numbers fit each other."""
        return {rank: file for rank, file in self.ranks.items() if rank not in self.late}

    @property
    def numbers(self) -> list[int]:
        """All operations, in order."""
        found = {at for file in self.compared.values() for at in (*file.begun, *file.refused)}
        return sorted(found)


class NoFlightError(ValueError):
    """The folder has no file of a flight recorder."""


def asked(folder: Path) -> None:
    """Ask the workers that run to write their files anew, and wait for those that do."""
    files = [file for file in folder.glob("*" + SUFFIX) if _still_runs(file)]
    if not files:
        return
    ask(folder)
    since = _changed_ns(folder / ASKED)
    until = time.monotonic() + ANSWER_S
    while time.monotonic() < until and any(_changed_ns(file) < since for file in files):
        time.sleep(0.02)


def read(folder: Path) -> tuple[list[Job], list[str]]:
    """The jobs of the files, each with its first difference; and what is wrong with other files.

    Raises NoFlightError.
    """
    asked_ns = _changed_ns(folder / ASKED)
    groups: dict[JobKey, list[tuple[Mapping[str, Any], Rank]]] = defaultdict(list)
    wrong: list[str] = []
    for path in sorted(folder.glob("*" + SUFFIX)):
        try:
            told = _told(path)
            file = _rank(told, path, asked_ns)
            key = (_whole(told, "job"), _whole_or_none(told, "program"))
        except (OSError, ValueError) as error:
            wrong.append(f"{printable(path.name)}: {error}")
            continue
        groups[key].append((told, file))
    if not groups:
        reason = f": {wrong[0]}" if wrong else ""
        raise NoFlightError(
            f"{folder} has no file of a flight recorder{reason}; start the workers with "
            f"OLAF_FLIGHT={folder}"
        )
    return [_job(key, members) for key, members in sorted(groups.items(), key=_order)], wrong


def _order(group: tuple[JobKey, object]) -> tuple[int, int]:
    (job, program), _ = group
    return job, program or 0


def _job(key: JobKey, members: list[tuple[Mapping[str, Any], Rank]]) -> Job:
    ranks: dict[int, Rank] = {}
    for _, file in sorted(members, key=lambda member: member[1].joined_ns):
        ranks[file.rank] = file
    told = members[0][0]
    about = f"protocol {told.get('protocol')}, switch {told.get('switch')}"
    job = Job(
        *key,
        about=printable(about),
        workers=max(file.workers for file in ranks.values()),
        ranks=dict(sorted(ranks.items())),
        older=len(members) - len(ranks),
        late=_late(ranks),
    )
    job.failure = next((at for at in job.numbers if _failed(job, at)), None)
    job.difference = next(filter(None, (_difference(job, at) for at in job.numbers)), None)
    return job


def _late(ranks: Mapping[int, Rank]) -> list[int]:
    first = min(
        (
            seen.ended_ns
            for file in ranks.values()
            for seen in file.begun.values()
            if seen.ended_ns is not None and seen.state == DONE
        ),
        default=None,
    )
    if first is None:
        return []
    return [rank for rank, file in ranks.items() if file.joined_ns > first + LATE_NS]


def _failed(job: Job, number: int) -> bool:
    return any(
        file.begun[number].has_failed for file in job.compared.values() if number in file.begun
    )


def _difference(job: Job, number: int) -> Difference | None:
    ranks = job.compared
    calls: dict[Call, list[int]] = defaultdict(list)
    waiting: dict[int, int] = {}
    for rank, file in ranks.items():
        seen = file.begun.get(number)
        if seen is None:
            continue
        calls[seen.call].append(rank)
        if seen.state == OPEN:
            waiting[rank] = max(file.written_ns - seen.begun_ns, 0)
    missing = [rank for rank, file in ranks.items() if file.lacks(number)]
    is_over = all(file.has_left for file in ranks.values())
    if not any(since >= WAITS_NS for since in waiting.values()) and not (
        _failed(job, number) or is_over
    ):
        # Not those that may only be a moment behind.
        missing = [rank for rank in missing if ranks[rank].is_past(number)]
    if not calls or (len(calls) == 1 and not missing):
        return None
    return Difference(number, dict(calls), missing, waiting)


def _still_runs(file: Path) -> bool:
    try:
        return _told(file).get("why") != "left"
    except (OSError, ValueError):
        return False


def _changed_ns(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _told(path: Path) -> Mapping[str, Any]:
    if path.stat().st_size > LARGEST_FILE:
        raise ValueError(f"it has more than {LARGEST_FILE:,} bytes")
    try:
        told = json_of(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise ValueError("it is no JSON") from None
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}")
    return told


def _rank(told: Mapping[str, Any], path: Path, asked_ns: int) -> Rank:
    operations = told.get("operations")
    if not isinstance(operations, list) or len(operations) > LARGEST_SIZE:
        raise ValueError(f"operations: must be a list of at most {LARGEST_SIZE}")
    why = printable(str(told.get("why")))
    file = Rank(
        rank=_whole(told, "rank"),
        workers=_whole(told, "workers"),
        file=printable(path.name),
        written_ns=_whole(told, "written_ns"),
        joined_ns=_whole(told, "joined_ns"),
        why=why,
        forgotten=_whole(told, "forgotten"),
        is_stale=why != "left" and _changed_ns(path) < asked_ns,
    )
    for operation in operations:
        if not isinstance(operation, dict):
            raise ValueError("operations: each must be a table")
        number, seen = _whole(operation, "number"), _seen(operation)
        (file.refused if seen.state == NOT_BEGUN else file.begun)[number] = seen
    return file


def _seen(told: Mapping[str, Any]) -> Seen:
    kind, op, root = told.get("kind"), told.get("op"), told.get("root")
    which = f"root={root}" if kind == "broadcast" else op
    text = f"{kind}({which}) of {told.get('type')}[{_whole(told, 'size')}]"
    place = f"{told['file']}:{told.get('line')}" if told.get("file") else ""
    return Seen(
        call=Call(printable(text), printable(place)),
        begun_ns=_whole(told, "begun_ns"),
        ended_ns=_whole_or_none(told, "ended_ns"),
        state=printable(str(told.get("state"))),
        error=printable(str(told.get("error") or "")),
        culprit=_whole_or_none(told, "culprit"),
    )


def _whole(told: Mapping[str, Any], name: str) -> int:
    value = told.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
        raise ValueError(f"{name}: must be a whole number from 0")
    return value


def _whole_or_none(told: Mapping[str, Any], name: str) -> int | None:
    return None if told.get(name) is None else _whole(told, name)


def named(ranks: Iterable[int]) -> str:
    """Ranks as in ``0-3, 7``."""
    parts: list[list[int]] = []
    for rank in sorted(ranks):
        if parts and parts[-1][-1] == rank - 1:
            parts[-1][1:] = [rank]
        else:
            parts.append([rank])
    return ", ".join("-".join(map(str, part)) for part in parts)
