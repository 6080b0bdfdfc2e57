"""Answering a switch that asks before a cluster joins: by a program of its own, within its time.

The switch never waits: questions are answered in a thread, and whoever proves something does so in
a process that is killed when the time is up. Why it is one question at a time, and what the switch
does without an answer, stands in ``docs/design/012-asking-before-a-cluster-joins.md``.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from olaf.lines import Message

STOP_PATIENCE_S = 5.0
"""How long a killed verifier may take to be gone."""


class WireCluster(NamedTuple):
    """A cluster by the numbers it has on the wire."""

    job: int
    cluster: int


@dataclass(frozen=True)
class Policy:
    """What a switch's process is told; JSON-able."""

    file: str
    """The clusters that may run: a SPEC.toml whose clusters have ``ids``."""
    timeout_s: float
    unanswered: str
    """``admit`` or ``refuse``: the answer where none comes in time."""
    command: list[str] = field(default_factory=lambda: [sys.executable, "-m", "olaf.verify.ask"])
    """Reads a `Question` with its file as JSON on standard input, and writes an `Answer`."""


@dataclass(frozen=True)
class Question:
    """May that cluster join those?"""

    newcomer: WireCluster
    running: tuple[WireCluster, ...]
    until_s: float
    """When the switch gives its stated answer, Unix time."""


@dataclass(frozen=True)
class Answer:
    """The word, and why."""

    answer: Literal["admit", "refuse", "undecided"]
    reason: str


class Asks(Protocol):
    """Whoever knows."""

    def ask(self, question: Question) -> Answer:
        """The answer; undecided at the question's time at the latest."""

    def stop(self) -> None:
        """No answer is wanted any more."""


class Program:
    """Asks a program, started for each question and killed when its time is up."""

    def __init__(self, command: Sequence[str], file: str) -> None:
        self._command = list(command)
        self._file = file
        self._stopped = threading.Event()
        self._running: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def ask(self, question: Question) -> Answer:
        """The program's answer; undecided, with the reason, where it gave none."""
        began = time.time()
        left_s = max(question.until_s - began, 0.0)
        try:
            process = self._start()
        except OSError as error:
            return Answer("undecided", f"cannot start {self._command[0]}: {error.strerror}")
        try:
            out, complaint = process.communicate(json.dumps(self._told(question)), left_s)
        except subprocess.TimeoutExpired:
            _kill(process)
            # What it has started ends with it, and holds its standard error until then.
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=STOP_PATIENCE_S)
            return Answer("undecided", f"no answer within {left_s:.1f} s")
        finally:
            with self._lock:
                self._running = None
        if process.returncode != 0:
            return Answer("undecided", _last_line(complaint) or _how_it_ended(process.returncode))
        return _read(out)

    def stop(self) -> None:
        """Kill what runs, and start nothing more."""
        self._stopped.set()
        with self._lock:
            if self._running is not None:
                _kill(self._running)

    def _start(self) -> subprocess.Popen[str]:
        with self._lock:
            if self._stopped.is_set():
                raise OSError(0, "the switch stops")
            self._running = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                # Its own group, so that it dies with all it has started.
                start_new_session=True,
            )
            return self._running

    def _told(self, question: Question) -> dict[str, Any]:
        return {
            "file": self._file,
            "newcomer": question.newcomer,
            "running": question.running,
            "until_s": question.until_s,
        }


class Admission:
    """Takes the questions of one switch, and has them answered."""

    def __init__(
        self, policy: Policy, decide: Callable[[int, int, bool | None], bool], asks: Asks
    ) -> None:
        self._policy = policy
        self._decide = decide
        self._asks = asks
        self._settled: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._stopping = False

    def take(self, event: Mapping[str, Any]) -> None:
        """An ``admission_wanted`` of the switch: its answer is on the way."""
        question = Question(
            WireCluster(event["job"], event["cluster"]),
            tuple(WireCluster(one["job"], one["cluster"]) for one in event["running"]),
            event["at_ns"] / 1e9 + self._policy.timeout_s,
        )
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=self._answer, args=(question,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def settled(self) -> list[Message]:
        """What was answered since the last call: ``cluster_admitted`` or ``cluster_refused``."""
        messages = []
        while not self._settled.empty():
            messages.append(self._settled.get())
        return messages

    def stop(self) -> None:
        """Nothing is answered any more."""
        self._stopping = True
        self._asks.stop()
        for thread in self._threads:
            thread.join(STOP_PATIENCE_S)

    def _answer(self, question: Question) -> None:
        began = time.monotonic()
        answer = self._asks.ask(question)
        if self._stopping:
            return
        seconds = round(time.monotonic() - began, 3)
        word = {"admit": True, "refuse": False}.get(answer.answer)
        job, cluster = question.newcomer
        in_time = self._decide(job, cluster, word)
        reason = answer.reason
        if word is None or not in_time:
            if word is not None:
                reason = f"too late: {answer.answer}, {reason}"
            reason = f"{reason}; without an answer in time: {self._policy.unanswered}"
            word = self._policy.unanswered == "admit"
        self._settled.put(
            {
                "event": "cluster_admitted" if word else "cluster_refused",
                "job": job,
                "cluster": cluster,
                "answer": answer.answer if in_time else "undecided",
                "reason": reason,
                "seconds": seconds,
                "running": [one._asdict() for one in question.running],
            }
        )


def _read(out: str) -> Answer:
    try:
        told = json.loads(out)
        answer, reason = told["answer"], str(told["reason"])
    except (ValueError, KeyError, TypeError):
        return Answer("undecided", f"the verifier said {out.strip()[:80]!r}, which is no answer")
    if answer not in ("admit", "refuse", "undecided"):
        return Answer("undecided", f"the verifier answered {answer!r}")
    return Answer(answer, reason)


def _kill(process: subprocess.Popen[str]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""


def _how_it_ended(code: int) -> str:
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
    return f"the verifier {how}"
