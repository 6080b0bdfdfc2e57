"""A process that proves: it reads questions from a pipe and answers them one after the other.

It ends when the other end of the pipe closes, even in the middle of a proof, since nobody would
read the answer.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from olaf.verify.instance import Instance, Objective
from olaf.verify.prover import NoRun, Prover, UndecidedError
from olaf.verify.schedule import Schedule

RUNG_SHARE = 0.15
"""Share of the remaining time for a shorter horizon before the next is tried."""
MOST_KEPT = 8
"""Number of provers, each for an instance and an objective, that are kept for later questions."""


@dataclass(frozen=True)
class Question:
    """Asks for a run above ``above``."""

    number: int
    instances: tuple[Instance, ...]
    """Instances with shorter horizons, in which only a run counts; the last is the real one."""
    objective: Objective
    above: Fraction | None
    """None: only ask whether the prover can decide such questions; NoRun means yes."""
    deadline: float
    """Deadline on `time.monotonic`, which all processes share."""


@dataclass(frozen=True)
class Found:
    """A run above the bound, and the instance it belongs to."""

    instance: Instance
    schedule: Schedule


@dataclass(frozen=True)
class GaveUp:
    """No answer, and the reason."""

    why: str


@dataclass(frozen=True)
class UpTo:
    """No run up to this shorter horizon; not an answer yet."""

    ticks: int


@dataclass(frozen=True)
class Answer:
    """Any message back."""

    number: int
    answer: Found | NoRun | GaveUp | UpTo
    cpu_seconds: float
    """CPU seconds of the process so far."""


def main() -> None:
    """Answer until the pipe closes; its descriptor is the first argument of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    # A prover beyond this limit gives up instead of exhausting the machine. macOS has no limit.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    connection: Connection[Any, Any] = Connection(int(sys.argv[1]))
    questions: SimpleQueue[Question] = SimpleQueue()
    entry: str = connection.recv()
    threading.Thread(target=_listen, args=(connection, questions), daemon=True).start()
    kept: dict[tuple[Instance, Objective], Prover] = {}
    while True:
        question = questions.get()

        def tell(answer: Found | NoRun | GaveUp | UpTo, number: int = question.number) -> None:
            connection.send(Answer(number, answer, time.process_time()))

        tell(_answer(entry, question, kept, tell))


def _listen(connection: Connection[Any, Any], questions: SimpleQueue[Question]) -> None:
    try:
        while True:
            questions.put(connection.recv())
    except (EOFError, OSError):
        os._exit(0)


def _answer(
    entry: str,
    question: Question,
    kept: dict[tuple[Instance, Objective], Prover],
    tell: Callable[[UpTo], None],
) -> Found | NoRun | GaveUp:
    module, _, name = entry.partition(":")
    try:
        kind = getattr(import_module(module), name)
        why = kind.takes(question.instances[-1], question.objective)
        if why is not None:
            return GaveUp(why)
        return NoRun() if question.above is None else _climb(kind, question, kept, tell)
    except UndecidedError as error:
        return GaveUp(str(error))
    except Exception as error:
        traceback.print_exc()  # a bug: report it, although another prover may answer
        return GaveUp(f"broke: {error!r}")


def _climb(
    kind: Callable[[Instance, Objective], Prover],
    question: Question,
    kept: dict[tuple[Instance, Objective], Prover],
    tell: Callable[[UpTo], None],
) -> Found | NoRun:
    """Go from horizon to horizon; a proof for ever in one holds for all."""
    assert question.above is not None
    *shorter, whole = question.instances
    for instance in shorter:
        left_s = question.deadline - time.monotonic()
        ends = question.deadline - left_s * (1 - RUNG_SHARE)
        try:
            answer = _prover(kind, instance, question, kept).exists(question.above, ends)
        except UndecidedError:
            continue
        if isinstance(answer, Schedule):
            return Found(instance, answer)
        if answer.forever:
            return answer
        tell(UpTo(instance.horizon))
    answer = _prover(kind, whole, question, kept).exists(question.above, question.deadline)
    return Found(whole, answer) if isinstance(answer, Schedule) else answer


def _prover(
    kind: Callable[[Instance, Objective], Prover],
    instance: Instance,
    question: Question,
    kept: dict[tuple[Instance, Objective], Prover],
) -> Prover:
    key = (instance, question.objective)
    if key not in kept:
        if len(kept) >= MOST_KEPT:
            kept.clear()
        kept[key] = kind(instance, question.objective)
    return kept[key]
