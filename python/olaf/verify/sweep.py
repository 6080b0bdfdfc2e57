"""The prover that tries everything: all classes of deterministic senders' phases, in the engine.

Its answers are about the queue itself and not about a model of it. How few runs suffice is told in
``crates/olaf-sim/src/study/sweep``.
"""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple

from olaf import _olaf
from olaf.verify.instance import Instance, Objective, Ties
from olaf.verify.prover import NoRun, UndecidedError
from olaf.verify.schedule import Schedule, Send

MOST_CLASSES = 10**9
"""Most classes of phases. Each needs at least a run of some microseconds."""
STEP_S = 0.05
"""Seconds of work between looks at the deadline and at Ctrl-C."""
HYPERPERIODS = 16
"""A run must repeat itself within this many hyperperiods, for values that hold for ever."""
HYPERPERIOD_SHARE = 4
"""Longest hyperperiod that is tried, in horizons: longer ones would take all the time."""
PATIENCE = 0.2
"""Share of the time after which only the horizon is decided."""


class Maximum(NamedTuple):
    """The largest value of an objective."""

    value: Fraction | None
    """Nanoseconds, a share or a count; None: no run has a value."""
    schedule: Schedule | None
    """A run that reaches it."""
    forever: bool
    """True if it is the largest beyond the horizon; for averages also of their limits."""


@dataclass(frozen=True)
class ForEver:
    """The largest value for ever; for the fair objectives and loss, of the runs' limits."""

    value: Fraction | None
    """Nanoseconds, a share or a count; None: infinite, since a cluster stops delivering."""
    schedule: Schedule
    """A run that has it, up to the begin of its second repetition."""
    begin: int
    """Tick at which the repetition begins."""
    period: int
    """Ticks."""


class Sweep:
    """Proves for senders without jitter and control; its work serves later questions."""

    name = "sweep"

    def __init__(
        self,
        instance: Instance,
        objective: Objective,
        *,
        forever: bool = True,
        threads: int | None = None,
    ) -> None:
        """``forever``: look for cycles, in longer runs. ``threads``: None uses one per core."""
        self._instance = instance
        self._objective = objective
        count = threads or os.cpu_count() or 1
        question = _question(instance, objective, forever=forever)
        self._parts = [_Part(question, part, count) for part in range(count)]

    @staticmethod
    def takes(instance: Instance, objective: Objective) -> str | None:
        """Why it cannot decide the question, or None."""
        if instance.control is not None:
            return "updates may be held back: phases alone do not decide a run"
        if any(sender.jitter for sender in instance.senders):
            return "updates may be late: phases alone do not decide a run"
        if instance.ties is not Ties.CONTINUOUS:
            return "arrivals of one instant come in any order, anew each time"
        try:
            part = _Part(_question(instance, objective, forever=False), 0, 1)
        except ValueError as error:
            return str(error).removeprefix("sweep: ")
        if part.classes > MOST_CLASSES:
            return (
                f"{part.classes:.1e} classes of phases, more than {MOST_CLASSES:.0e}: a longer "
                "tick (times with a larger common divisor), fewer clusters or more equal ones "
                "have fewer"
            )
        return None

    def exists(self, above: Fraction, deadline: float) -> Schedule | NoRun:
        """A run whose value is above ``above`` (ns or share), or a proof that there is none."""
        self._sweep(deadline, above)
        best = self._largest()
        if best is not None and self._value(best) > above:
            return self._schedule(best, self._instance.horizon)
        return NoRun(forever=self._holds_for_ever(above))

    def maximum(self, deadline: float) -> Maximum:
        """The largest value of all runs. ``deadline``: on `time.monotonic`; UndecidedError."""
        self._sweep(deadline)
        best = self._largest()
        if best is None:
            return Maximum(None, None, forever=False)
        value = self._value(best)
        schedule = self._schedule(best, self._instance.horizon)
        return Maximum(value, schedule, self._holds_for_ever(value))

    def for_ever(self, deadline: float) -> ForEver | None:
        """The largest value for ever; None if a run showed no cycle, or no run has a value."""
        self._sweep(deadline)
        best = self._largest("for_ever")
        if best is None or not self._repeats():
            return None
        begin, period = best["cycle"]
        value = None if _infinite(best) else self._value(best)
        return ForEver(value, self._schedule(best, begin + period - 1), begin, period)

    def progress(self) -> tuple[int, int, int]:
        """Finished classes of phases, all classes, and runs."""
        done, runs = (sum(part.state[key] for part in self._parts) for key in ("done", "runs"))
        return done, self._parts[0].classes, runs

    def _sweep(self, deadline: float, above: Fraction | None = None) -> None:
        """Run to the end, or to a run above the bound. Ctrl-C leaves a consistent state."""
        begin, done_before = time.monotonic(), self.progress()[0]
        with ThreadPoolExecutor(len(self._parts)) as pool:
            while open_parts := [part for part in self._parts if not part.state["finished"]]:
                best = self._largest()
                if above is not None and best is not None and self._value(best) > above:
                    return
                now = time.monotonic()
                done, classes, _ = self.progress()
                if now >= deadline:
                    raise UndecidedError(
                        f"out of time, after {done} of {classes} classes of phases"
                    )
                spent = (now - begin) / (deadline - begin)
                if spent > PATIENCE and (done - done_before) / (classes - done_before) < spent:
                    for part in open_parts:
                        part.to_horizon_only()
                for _ in pool.map(_Part.step, open_parts):
                    pass

    def _largest(self, key: str = "largest") -> dict[str, Any] | None:
        found = [part.state[key] for part in self._parts if part.state[key] is not None]
        return max(found, key=lambda each: (_infinite(each), _fraction(each)), default=None)

    def _repeats(self) -> bool:
        return all(part.state["repeats"] for part in self._parts)

    def _holds_for_ever(self, bound: Fraction) -> bool:
        best = self._largest("for_ever")
        if not self._repeats() or best is None:
            return self._repeats()
        return not _infinite(best) and self._value(best) <= bound

    def _value(self, found: dict[str, Any]) -> Fraction:
        unit = self._instance.tick_ns if self._objective.kind.is_time else 1
        return _fraction(found) * unit

    def _schedule(self, found: dict[str, Any], last: int) -> Schedule:
        # Ranks are nanoseconds: a tick has a thousand, and there are at most 64 senders.
        sends = [
            Send(tick, found["ranks"][index], index)
            for index, sender in enumerate(self._instance.senders)
            for tick in range(found["phases"][index], last + 1, sender.interval)
        ]
        return Schedule(tuple(sorted(sends)), last_counts=found["last_counts"])


class _Part:
    """A part of the classes, and its progress."""

    def __init__(self, question: str, part: int, parts: int) -> None:
        self._sweep = _olaf.Sweep(question, chunk=part, chunks=parts)
        self._runs = 64
        self.state: dict[str, Any] = json.loads(self._sweep.step(0))
        self.classes: int = self.state["classes"]

    def to_horizon_only(self) -> None:
        self._sweep.to_horizon_only()
        self.state = json.loads(self._sweep.step(0))

    def step(self) -> None:
        begin = time.monotonic()
        self.state = json.loads(self._sweep.step(self._runs))
        took = time.monotonic() - begin
        if took < STEP_S / 2:
            self._runs *= 2
        elif took > 2 * STEP_S:
            self._runs = max(1, self._runs // 2)


def _question(instance: Instance, objective: Objective, *, forever: bool) -> str:
    hyperperiod = lcm(*(sender.interval for sender in instance.senders))
    look = forever and hyperperiod <= HYPERPERIOD_SHARE * instance.horizon
    return json.dumps(
        {
            "service": instance.service,
            "slots": instance.slots,
            "horizon": instance.horizon,
            "senders": [
                {"cluster": sender.cluster, "interval": sender.interval}
                for sender in instance.senders
            ],
            "alike": instance.alike,
            "kind": objective.kind.value,
            "about": objective.clusters,
            "hyperperiods": HYPERPERIODS if look else 0,
        }
    )


def _infinite(found: dict[str, Any]) -> bool:
    return bool(found["value"][1] == 0)


def _fraction(found: dict[str, Any]) -> Fraction:
    """0 for an infinite value: `_infinite` is checked first."""
    numerator, denominator = found["value"]
    return Fraction(numerator, denominator) if denominator else Fraction(0)
