"""The operations of a job as text: a line for all workers that saw an operation alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from olaf.doctor.flight import Call, Difference, Job, Rank, Seen, named
from olaf.sums.flight import DONE, ENDED, NOT_BEGUN, OPEN
from olaf.values import numbers

Line = tuple[str, str, str, str, str]
"""Mark and operation, ranks, call, place, state."""

HEAD: Line = ("operation", "ranks", "call", "called at", "state")


def lines_of(job: Job, last: int) -> list[str]:
    """The job's last operations, those around its first difference, and what was found."""
    shown = _shown(job, last)
    rows = [HEAD, *(line for at in shown for line in _rows(job, at))]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEAD))]
    if not any(row[3] for row in rows[1:]):
        widths[3] = 0
        rows = [(row[0], row[1], row[2], "", row[4]) for row in rows]
    table = [
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width
        ).rstrip()
        for row in rows
    ]
    head = f"job {job.job} ({job.about}): {numbers.counted(job.workers, 'worker')}"
    return [head, *(f"  {line}" for line in table), "", *(f"  {say}" for say in findings(job))]


def findings(job: Job) -> list[str]:
    """What was found, a sentence each."""
    found = [*_about_files(job)]
    for rank, file in job.compared.items():
        for at, seen in file.refused.items():
            text = f"rank {rank} could not begin operation {at}, {_call(seen.call)}"
            found.append(f"{text}: {seen.error}")
    if job.difference is not None:
        found += _about_difference(job.difference)
    if job.failure is not None:
        found.append(_about_failure(job, job.failure))
    if job.is_good:
        found.append("no operation differs, and none has failed")
    return found


def told(job: Job) -> dict[str, Any]:
    """The job as JSON."""
    first = job.difference
    return {
        "job": job.job,
        "program": job.program,
        "workers": job.workers,
        "good": job.is_good,
        "absent": job.absent,
        "stale": [rank for rank, file in job.ranks.items() if file.is_stale],
        "late": job.late,
        "difference": first
        and {
            "number": first.number,
            "calls": [
                {"call": call.text, "place": call.place or None, "ranks": ranks}
                for call, ranks in first.calls.items()
            ],
            "missing": first.missing,
            "waiting_s": {str(rank): since / 1e9 for rank, since in first.waiting.items()},
        },
        "failure": job.failure
        and {
            "number": job.failure,
            "states": {
                str(rank): {
                    "state": file.begun[job.failure].state,
                    "culprit": file.begun[job.failure].culprit,
                    "error": file.begun[job.failure].error,
                }
                for rank, file in job.compared.items()
                if job.failure in file.begun
            },
        },
        "refused": [
            {"rank": rank, "number": at, "error": seen.error}
            for rank, file in job.compared.items()
            for at, seen in file.refused.items()
        ],
        "found": findings(job),
    }


def _shown(job: Job, last: int) -> list[int]:
    every = job.numbers
    marked = [at for at in (job.difference and job.difference.number, job.failure) if at]
    if not marked:
        return every[-last:]
    # The operations before the first trouble say how far all was well.
    end = every.index(max(marked)) + 1
    return every[max(end - last, 0) : end + 3]


def _rows(job: Job, at: int) -> Iterator[Line]:
    mark = ">" if job.difference is not None and job.difference.number == at else " "
    alike: dict[tuple[Call | None, str], list[int]] = defaultdict(list)
    took: dict[tuple[Call | None, str], list[int]] = defaultdict(list)
    for rank, file in job.compared.items():
        call, state, length = _cell(file, at)
        alike[call, state].append(rank)
        took[call, state].append(length)
    for index, ((call, state), ranks) in enumerate(alike.items()):
        longest = numbers.duration(max(took[call, state]) / 1e9)
        which = "all" if len(ranks) == job.workers else named(ranks)
        yield (
            f"{mark} {at}" if not index else mark,
            which,
            call.text if call else "-",
            call.place if call else "",
            state.format(took=longest),
        )


def _cell(file: Rank, at: int) -> tuple[Call | None, str, int]:
    """The call, how it stands, and its length."""
    seen = file.begun.get(at)
    if seen is not None:
        length = max((seen.ended_ns or file.written_ns) - seen.begun_ns, 0)
        return seen.call, _stands(seen), length
    if at in file.refused:
        return file.refused[at].call, NOT_BEGUN.replace("_", " "), 0
    if not file.lacks(at):
        return None, "not known", 0
    return None, "not begun" + (", and it has left" if file.has_left else ""), 0


def _stands(seen: Seen) -> str:
    if seen.state == OPEN:
        return "waits for {took}"
    if seen.state == DONE:
        return "done in {took}"
    if seen.state == ENDED:
        return "ended; the program has not asked"
    return _failure(seen) + " after {took}"


def _failure(seen: Seen) -> str:
    whose = "" if seen.culprit is None else f" (worker {seen.culprit})"
    return seen.state.replace("{", "").replace("}", "") + whose


def _about_files(job: Job) -> Iterator[str]:
    if job.absent:
        yield (
            f"{_ranks(job.absent)} wrote no file: not started with OLAF_FLIGHT, or on a machine "
            "that does not share this folder"
        )
    stale = [rank for rank, file in job.ranks.items() if file.is_stale]
    if stale:
        yield (
            f"{_ranks(stale)} did not answer: killed, stopped, or on a machine without this "
            "folder; what came after the last file is not known"
        )
    if job.late:
        yield f"{_ranks(job.late)} joined later than the others: not compared"
    if job.older:
        yield f"{numbers.counted(job.older, 'older file')} of the same ranks left out"


def _about_difference(first: Difference) -> Iterator[str]:
    at = f"operation {first.number}"
    if len(first.calls) > 1:
        each = "; ".join(f"{_ranks(who)}: {_call(call)}" for call, who in first.calls.items())
        yield f"{at} is the first one that differs: {each}"
    if first.missing:
        yield f"{at}: {_ranks(first.missing)} {_has(first.missing)} not begun it"
    if first.waiting:
        longest = numbers.duration(max(first.waiting.values()) / 1e9)
        verb = "waits" if len(first.waiting) == 1 else "wait"
        yield f"{at}: {_ranks([*first.waiting])} {verb} for it, up to {longest}"


def _about_failure(job: Job, at: int) -> str:
    said: dict[str, list[int]] = defaultdict(list)
    for rank, file in job.compared.items():
        seen = file.begun.get(at)
        if seen is not None and seen.has_failed:
            said[_failure(seen)].append(rank)
    each = "; ".join(f"{what} at {_ranks(who)}" for what, who in said.items())
    return f"operation {at} is the first one that failed: {each}"


def _call(call: Call) -> str:
    return f"{call.text} at {call.place}" if call.place else call.text


def _ranks(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {named(ranks)}"


def _has(ranks: list[int]) -> str:
    return "has" if len(ranks) == 1 else "have"
