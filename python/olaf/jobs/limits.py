"""Decides when a run has done what the settings ask for."""

from __future__ import annotations

from olaf.errors.outcome import Exit
from olaf.jobs.progress import Progress
from olaf.processes.lines import Control
from olaf.values.numbers import counted, score

Verdict = tuple[str, str, Exit]
"""Why a run ends: (kind, sentence, exit code)."""


def goal_of(progress: Progress) -> float | None:
    """The mean reward that a run stops at, once it is known."""
    wanted = progress.settings.train.until_reward
    if wanted != "solved":
        return wanted
    for message in progress.ready.values():
        threshold = message.get("reward_threshold")
        return None if threshold is None else float(threshold)
    return None


class Limits:
    """The reward, the numbers of updates and steps, the time limit, and a request to stop."""

    def __init__(self, progress: Progress, control: Control) -> None:
        self._progress = progress
        self._train = progress.settings.train
        self._control = control

    @property
    def goal(self) -> float | None:
        """The mean reward to stop at, once it is known."""
        return goal_of(self._progress)

    def enough(self, now_s: float) -> Verdict | None:
        """The reason to stop, if there is one at ``now_s`` seconds of the run."""
        progress, goal = self._progress, self.goal
        if goal is not None and progress.reward is not None and progress.reward >= goal:
            return "reached", f"mean reward {score(progress.reward)} >= {goal:g}", Exit.OK
        if self._control.stopping:
            return "interrupted", f"stopped by {self._control.why}", Exit.INTERRUPTED
        if self._control.concluded:
            return "stopped", self._control.concluded, Exit.OK
        return self._spent(now_s)

    def _spent(self, now_s: float) -> Verdict | None:
        """The budget that is used up: updates, steps or time."""
        progress, train = self._progress, self._train
        if train.updates is not None and progress.updates >= train.updates:
            return self.ran_out("updates", f"{counted(progress.updates, 'update')} pushed")
        if train.steps is not None and progress.steps >= train.steps:
            taken = counted(progress.steps, "environment step")
            return self.ran_out("steps", f"{taken} taken")
        trained_s = progress.earlier.trained_s + now_s - (progress.joined_at_s or now_s)
        if train.time_limit_s is not None and trained_s >= train.time_limit_s:
            return self.ran_out("time", f"{train.time_limit_s:g} s of training are over")
        return None

    def ran_out(self, kind: str, reason: str) -> Verdict:
        """The verdict on a run that ends for ``reason``: failed where a reward was asked for."""
        asked = isinstance(self._train.until_reward, float | int)
        if asked and self.goal is not None:
            return kind, f"{reason} without reaching mean reward {self.goal:g}", Exit.FAILED
        return kind, reason, Exit.OK
