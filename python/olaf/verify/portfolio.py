"""Several provers on one question, each in its own process: the first answer counts.

The time of a prover varies by orders of magnitude from question to question, and cannot be
predicted. Once one has answered, the others are stopped, and restarted when they are needed again.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from threading import Event
from typing import Any

from olaf.verify.bound import Bound
from olaf.verify.instance import Instance, Objective
from olaf.verify.prover import NoRun, UndecidedError
from olaf.verify.working import Answer, Found, GaveUp, Question, UpTo

PROVERS = {
    "sweep": "olaf.verify.sweep:Sweep",
    "timeline": "olaf.verify.timeline:Timeline",
    "events": "olaf.verify.events:Events",
}
"""Module of each prover, by name."""

HEAD_START_S = 0.5
"""Seconds for which the last winner works alone on the next question."""
GRACE_S = 0.25
"""Seconds after the deadline for a prover to report why it gave up."""
FOREVER_S = 1.0
"""Least seconds to wait for a proof for ever, once there is one up to the horizon."""
LOOK_EVERY_S = 0.2
"""Seconds between calls of `say`, and between looks at ``stop``."""

_MAIN = "from olaf.verify.working import main; main()"

Says = Callable[[str], None]


class DisagreementError(Exception):
    """Provers, or a prover and the engine, disagree: a bug of ours, so there is no verdict."""


class StoppedError(Exception):
    """The caller asked to stop."""


@dataclass
class _Member:
    """A prover's process."""

    name: str
    process: subprocess.Popen[bytes]
    pipe: Connection[Any, Any]
    busy: bool = False
    cpu_seconds: float = 0.0


class Portfolio:
    """Provers by name, kept from question to question.

    provers: names of `PROVERS`, "bound", or ``module:Class``; None: all, and also runs found by
    sampling.
    say: called several times per second with the present question. stop: ends it when set.
    """

    def __init__(
        self,
        provers: Sequence[str] | None = None,
        say: Says | None = None,
        stop: Event | None = None,
    ) -> None:
        given = PROVERS if provers is None else provers
        self.computes = provers is None or Bound.name in provers
        """Whether the closed form answers, before any process is asked."""
        self._names = [name for name in given if name != Bound.name and _is_here(name)]
        self.samples = provers is None
        self._say = say
        self.stop = Event() if stop is None else stop
        self._members: dict[str, _Member] = {}
        self._first: str | None = None
        self._asked = 0
        self._ended_cpu_seconds = 0.0
        self.up_to = 0
        """For the last question: there is no such run up to this many ticks."""

    def __enter__(self) -> Portfolio:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of all processes, as of their last answers."""
        return self._ended_cpu_seconds + sum(m.cpu_seconds for m in self._members.values())

    def close(self) -> None:
        """End all processes."""
        for name in list(self._members):
            self._dismiss(name)

    def ask(
        self,
        instances: Sequence[Instance],
        objective: Objective,
        above: Fraction | None,
        deadline: float,
        what: str,
        *,
        forever: bool = False,
    ) -> tuple[Found | NoRun, str]:
        """The first answer, and its prover's name. Raises UndecidedError with all reasons.

        instances, above: see `Question`. what: the question in words, for `say`. forever: if the
        first proof reaches only the horizon, the others get as much time again for an unlimited
        one.
        """
        if self.stop.is_set():
            raise StoppedError("interrupted")
        self._asked += 1
        self.up_to = 0
        question = Question(self._asked, tuple(instances), objective, above, deadline)
        begin, ends = time.monotonic(), deadline + GRACE_S
        waiting = list(self._names)
        reasons: dict[str, str] = {}
        bounded: tuple[NoRun, str] | None = None
        while True:
            now = time.monotonic()
            busy = self._put_those_due(question, waiting, now - begin)
            if not busy or now >= ends:
                reasons |= {member.name: "out of time" for member in busy}
                self._dismiss_busy()
                if bounded is not None:
                    return bounded
                raise UndecidedError(_joined(reasons))
            self._look(now - begin, busy, what)
            for member in _ready(busy, min(LOOK_EVERY_S, ends - now)):
                match self._take(member, question):
                    case None:
                        pass
                    case GaveUp(why):
                        reasons[member.name] = why
                    case NoRun(forever=False) as answer if forever:
                        bounded = bounded or (answer, member.name)
                        took_s = time.monotonic() - begin
                        ends = min(ends, begin + took_s + max(took_s, FOREVER_S))
                    case answer:
                        self._first = member.name
                        self._dismiss_busy()
                        return _agreeing(bounded, answer, member.name, question), member.name

    def _look(self, elapsed_s: float, busy: Sequence[_Member], what: str) -> None:
        if self._say is not None:
            who = ", ".join(member.name for member in busy)
            self._say(f"{what}? {who}, {elapsed_s:.0f} s")
        if self.stop.is_set():
            self._dismiss_busy()
            raise StoppedError("interrupted")

    def _put_those_due(
        self, question: Question, waiting: list[str], elapsed_s: float
    ) -> list[_Member]:
        """Ask the last winner first; ask the others a little later, or once it gives up."""
        if self._first in waiting:
            self._put(self._first, question, waiting)
        if elapsed_s >= HEAD_START_S or not self._busy():
            for name in list(waiting):
                self._put(name, question, waiting)
        return self._busy()

    def _busy(self) -> list[_Member]:
        return [member for member in self._members.values() if member.busy]

    def _put(self, name: str, question: Question, waiting: list[str]) -> None:
        waiting.remove(name)
        member = self._members.get(name) or self._start(name)
        member.busy = True
        member.pipe.send(question)

    def _take(self, member: _Member, question: Question) -> Found | NoRun | GaveUp | None:
        try:
            answer: Answer = member.pipe.recv()
        except (EOFError, OSError):
            self._dismiss(member.name)
            code = member.process.returncode
            return GaveUp(f"its process ended with {code}, out of memory perhaps")
        if answer.number != question.number:
            return None
        member.cpu_seconds = answer.cpu_seconds
        if isinstance(answer.answer, UpTo):
            self.up_to = max(self.up_to, answer.answer.ticks)
            return None
        member.busy = False
        return answer.answer

    def _start(self, name: str) -> _Member:
        entry = PROVERS.get(name, name)
        here, there = Pipe()
        paths = os.pathsep.join(path for path in sys.path if path)
        process = subprocess.Popen(
            [sys.executable, "-c", _MAIN, str(there.fileno())],
            pass_fds=[there.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths},
            start_new_session=True,  # so that the terminal's Ctrl-C does not reach it
        )
        there.close()
        here.send(entry)
        member = self._members[name] = _Member(name, process, here)
        return member

    def _dismiss_busy(self) -> None:
        for member in self._busy():
            self._dismiss(member.name)

    def _dismiss(self, name: str) -> None:
        member = self._members.pop(name)
        member.process.kill()
        member.pipe.close()
        # Not Popen.wait: only wait4 reports the CPU time of one process.
        _, status, used = os.wait4(member.process.pid, 0)
        member.process.returncode = os.waitstatus_to_exitcode(status)
        self._ended_cpu_seconds += used.ru_utime + used.ru_stime


def _is_here(name: str) -> bool:
    """Whether the prover's module can be loaded: some need an extra."""
    return (
        name not in PROVERS or importlib.util.find_spec(PROVERS[name].partition(":")[0]) is not None
    )


def _ready(busy: Sequence[_Member], timeout_s: float) -> list[_Member]:
    of = {member.pipe: member for member in busy}
    return [of[pipe] for pipe in wait(list(of), max(timeout_s, 0)) if isinstance(pipe, Connection)]


def _agreeing(
    bounded: tuple[NoRun, str] | None, answer: Found | NoRun, who: str, question: Question
) -> Found | NoRun:
    """The answer; raises DisagreementError if another prover proved the opposite."""
    if bounded is not None and isinstance(answer, Found):
        raise DisagreementError(
            f"{bounded[1]} proved that there is no run with {question.objective.kind} above "
            f"{question.above}, and {who} found one. Please report this:\n{question}\n{answer}"
        )
    return answer


def _joined(reasons: dict[str, str]) -> str:
    """One reason for all if they agree."""
    if len(set(reasons.values())) == 1:
        return next(iter(reasons.values()))
    return "; ".join(f"{name}: {why}" for name, why in reasons.items()) or "no prover was given"
