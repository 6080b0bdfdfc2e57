"""Answers a switch that asks before a cluster joins, through a separate program with a time limit.

The switch never waits: a thread answers questions, and a prover runs in a process that is killed
at the time limit. ``docs/design/012-asking-before-a-cluster-joins.md`` explains why questions are
answered one at a time, and what the switch does without an answer.
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
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from olaf.jobs.reality import Declared, Mismatch, Reality
from olaf.processes.lines import Message

LOOK_EVERY_S = 1.0
"""Interval between looks at what the clusters do."""
STOP_PATIENCE_S = 5.0
"""Time limit for a killed verifier to disappear."""


class WireCluster(NamedTuple):
    """A cluster, by its ids on the wire."""

    job: int
    cluster: int


@dataclass(frozen=True)
class Policy:
    """Admission settings of a switch's process; JSON-able."""

    file: str
    """The clusters that may run: a SPEC.toml whose clusters have ``ids``."""
    timeout_s: float
    unanswered: str
    """``admit`` or ``refuse``: the answer if none arrives in time."""
    command: list[str] = field(default_factory=lambda: [sys.executable, "-m", "olaf.verify.ask"])
    """Program that reads a `Question` with its file as JSON on stdin, and writes an `Answer`."""
    mismatch: str = "say"
    """``say`` or ``refuse``: what follows if a cluster does not do what the file says."""
    own_mismatches: list[str] = field(default_factory=list)
    """What the switch's own queue has otherwise than the file's, for people."""
    declared: list[Declared] = field(default_factory=list)
    newcomer: Declared | None = None

    @classmethod
    def told(cls, fields: Mapping[str, Any]) -> Policy:
        """The policy from its JSON."""

        def declared(one: Mapping[str, Any]) -> Declared:
            return Declared(**{**one, "ids": tuple(one["ids"])})

        newcomer = fields.get("newcomer")
        more = {
            "declared": [declared(one) for one in fields.get("declared", ())],
            "newcomer": None if newcomer is None else declared(newcomer),
        }
        return cls(**{**fields, **more})


@dataclass(frozen=True)
class Question:
    """Asks whether a cluster may join the present ones."""

    newcomer: WireCluster
    running: tuple[WireCluster, ...]
    until_s: float
    """Unix time in seconds at which the switch gives its configured answer."""


@dataclass(frozen=True)
class Answer:
    """An answer with its reason."""

    answer: Literal["admit", "refuse", "undecided"]
    reason: str


class Asks(Protocol):
    """Anything that can answer a `Question`."""

    def ask(self, question: Question) -> Answer:
        """Return the answer; undecided at the question's deadline at the latest."""

    def stop(self) -> None:
        """Stop answering."""


class Program:
    """Starts a program for each question, and kills it at the deadline."""

    def __init__(self, command: Sequence[str], file: str) -> None:
        self._command = list(command)
        self._file = file
        self._stopped = threading.Event()
        self._running: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def ask(self, question: Question) -> Answer:
        """The program's answer, or undecided with the reason."""
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
            # Its children end with it; they hold its stderr open until then.
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
        """Kill the running program, and start no more."""
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
                # A process group of its own, so that its children die with it.
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
        self,
        policy: Policy,
        decide: Callable[[int, int, bool | None], bool],
        asks: Asks,
        status: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        """``status``: the switch's report; without it nothing is compared with the policy."""
        self._policy = policy
        self._decide = decide
        self._asks = asks
        self._settled: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._stopping = False
        self._status = status
        self._reality = Reality(policy.declared, policy.newcomer)
        self._mismatches: list[Mismatch] = []
        self._looks_at_s = 0.0
        for reason in policy.own_mismatches:
            told = {"job": None, "cluster": None, "what": "switch", "reason": reason}
            self._settled.put({"event": "admission_mismatch", **told})

    def take(self, event: Mapping[str, Any]) -> None:
        """Take an ``admission_wanted`` event of the switch, and begin to answer it."""
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
        """The answers since the last call: ``cluster_admitted`` or ``cluster_refused`` events."""
        self._look(time.monotonic())
        messages = []
        while not self._settled.empty():
            messages.append(self._settled.get())
        return messages

    def stop(self) -> None:
        """Stop answering."""
        self._stopping = True
        self._asks.stop()
        for thread in self._threads:
            thread.join(STOP_PATIENCE_S)

    def _look(self, now_s: float) -> None:
        """Compare, once a second, and say each mismatch when it begins."""
        if self._status is None or now_s < self._looks_at_s or self._stopping:
            return
        self._looks_at_s = now_s + LOOK_EVERY_S
        found = self._reality.look(self._status(), now_s)
        known = {(one.job, one.cluster, one.what) for one in self._mismatches}
        for one in found:
            if (one.job, one.cluster, one.what) not in known:
                self._settled.put({"event": "admission_mismatch", **asdict(one)})
        self._mismatches = found

    def _asked(self, question: Question) -> Answer:
        """The verifier's answer, unless what runs is not what the proof would be about."""
        if self._policy.mismatch == "refuse" and self._mismatches:
            reasons = "; ".join(one.reason for one in self._mismatches[:3])
            return Answer("refuse", f"what runs is not what the policy says: {reasons}")
        return self._asks.ask(question)

    def _answer(self, question: Question) -> None:
        began = time.monotonic()
        answer = self._asked(question)
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
        return Answer("undecided", f"the verifier printed {out.strip()[:80]!r}, which is no answer")
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
