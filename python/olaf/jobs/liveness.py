"""Whether a run still gets anywhere: the workers' steps are heartbeats.

A slow environment may need minutes for an update. Its worker says ``alive`` after steps, at most
every two seconds. The patience of a run follows the slowest step so far. No clock: time is an
argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from olaf.jobs.supervisor import Occurrence, Said
from olaf.processes.lines import PROGRESS
from olaf.values import numbers

SLOWEST = 10.0
"""A step may take this many times as long as the slowest one so far."""

SLOW_TURN_S = 10.0
"""A first turn that takes longer is worth a sentence."""


@dataclass
class _Worker:
    at_s: float
    steps: int = 0
    per_s: float = 0.0
    slowest_s: float = 0.0


class Liveness:
    """The heartbeats of a run's workers."""

    def __init__(self, *, start_s: float, stall_s: float, now_s: float) -> None:
        """start_s: patience before the first step of any worker; stall_s: afterwards."""
        self._start_s, self._stall_s = start_s, stall_s
        self._heard_s = now_s
        self._workers: dict[str, _Worker] = {}
        self._is_told = False

    def take(self, occurrence: Occurrence, at_s: float) -> str | None:
        """Take in what a process says; return a sentence on a slow environment, once a run."""
        if not isinstance(occurrence, Said):
            return None
        message, event = occurrence.message, occurrence.message["event"]
        if event not in (*PROGRESS, "alive"):
            return None
        self._heard_s = max(self._heard_s, at_s)
        one = self._workers.setdefault(occurrence.name, _Worker(at_s))
        one.at_s, one.steps = at_s, int(message["steps"])
        if event in PROGRESS:
            self._is_told = True  # a turn has ended: the curves say how fast it is
            return None
        one.per_s = float(message["steps_per_s"])
        one.slowest_s = max(one.slowest_s, float(message["slowest_step_s"]))
        turn, per_s = int(message["turn_steps"]), one.per_s
        if self._is_told or not turn or not per_s or turn / per_s < SLOW_TURN_S:
            return None
        self._is_told = True
        return (
            f"{occurrence.name} takes {numbers.number(per_s)} environment steps a second: a turn "
            f"of {turn:,} steps takes {numbers.duration(turn / per_s)}, and its updates come then "
            "(learner.steps_per_update sets the length of a turn)"
        )

    def silent(self, now_s: float, names: Sequence[str]) -> dict[str, float]:
        """Those of these workers that were last heard longer ago than the run's patience: seconds.

        Each is named once, and the run has its whole patience again: the caller ends them.
        """
        known = {name: self._workers[name] for name in names if name in self._workers}
        patience_s = self._patience_s()
        found = {n: now_s - one.at_s for n, one in known.items() if now_s - one.at_s > patience_s}
        for name in found:
            self._heard_s = self._workers[name].at_s = now_s
        return found

    def _patience_s(self) -> float:
        slowest_s = max((one.slowest_s for one in self._workers.values()), default=0.0)
        return max(self._stall_s, SLOWEST * slowest_s)

    def too_quiet(self, now_s: float, alive: Sequence[str]) -> str | None:
        """The sentence on a run that has waited too long for a step or an update."""
        patience_s = self._start_s
        if self._workers:
            patience_s = self._patience_s()
        if now_s - self._heard_s <= patience_s:
            return None
        names = ", ".join(alive)
        if not self._workers:
            return f"waited {patience_s:g} s for the first step of {names}"
        last = max(self._workers.values(), key=lambda one: one.at_s)
        speed = f" at {numbers.number(last.per_s)} a second" if last.per_s else ""
        return (
            f"waited {patience_s:g} s for a step or an update of {names}: the last came after "
            f"{last.steps:,} steps{speed}; if a step may take longer, raise train.stall_timeout"
        )
