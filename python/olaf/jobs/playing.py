"""What every process does that runs an environment: make it, show heartbeats, close it."""

from __future__ import annotations

import contextlib
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any

from olaf.errors.outcome import Exit, RunError
from olaf.jobs.faults import end_with_fault
from olaf.processes.lines import Control, Reporter

ALIVE_S = 2.0
"""Seconds between two heartbeats of a worker that has nothing else to say."""


@contextlib.contextmanager
def made(config: Any, reporter: Reporter, worker: int = 0) -> Iterator[Any]:
    """A learner, which is closed whatever happens.

    A configuration that cannot work is a RunError. An error of the user's own code ends the role.
    """
    from olaf.rl.learner import LearnerError
    from olaf.rl.making import make_learner
    from olaf.rl.seeding import seed_everything

    seed_everything(config.seed, worker)
    try:
        learner = make_learner(config, worker=worker)
    except LearnerError as error:
        raise RunError(str(error), Exit.USAGE) from None
    except (Exception, SystemExit) as error:
        end_with_fault(reporter, error, worker=worker)
    try:
        yield learner
    finally:
        _close(learner)


def _close(learner: Any) -> None:
    """Close the environments. An error there is printed, and changes nothing."""
    try:
        if callable(close := getattr(learner, "close", None)):
            close()
    except Exception:
        traceback.print_exc(file=sys.stderr)


class Pulse:
    """Called after each row of steps: says that the worker lives, and ends a turn early."""

    def __init__(self, reporter: Reporter, control: Control, worker: int, learner: Any) -> None:
        from olaf.rl.worker_loop import InterruptedTurn

        self._interrupted = InterruptedTurn
        self._reporter, self._control, self._worker = reporter, control, worker
        config = learner.config
        self._turn_steps = 0 if config.episodes_per_update else config.steps_per_update
        self._slowest_s = 0.0
        self._last_s = self._began_s = time.monotonic()
        self._due_s = self._began_s + ALIVE_S
        self._steps = self._before = 0
        self._longest_episode = learner.longest_episode

    def __call__(self, steps: int) -> None:
        """``steps``: environment steps so far. Raises `InterruptedTurn` if the run ends."""
        control = self._control
        if control.stopping or control.finishing:
            raise self._interrupted
        now = time.monotonic()
        took_s, self._last_s = now - self._last_s, now
        self._slowest_s = max(self._slowest_s, took_s)
        self._steps = steps
        if now >= self._due_s:
            self._say(now)

    def told(self) -> None:
        """The worker has just reported a turn, which is a heartbeat too."""
        self._last_s = time.monotonic()
        self._begin(self._last_s)

    def _say(self, now: float) -> None:
        self._reporter.say(
            "alive",
            worker=self._worker,
            steps=self._steps,
            steps_per_s=(self._steps - self._before) / max(now - self._began_s, 1e-9),
            slowest_step_s=self._slowest_s,
            turn_steps=self._turn_steps,
            longest_episode=self._longest_episode(),
        )
        self._begin(now)

    def _begin(self, now: float) -> None:
        self._before, self._began_s = self._steps, now
        self._due_s = now + ALIVE_S
