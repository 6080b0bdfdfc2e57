"""Prints a running job as plain lines, for logs and pipes."""

from __future__ import annotations

import json
import time
from typing import IO

from olaf.jobs.instruments import phrases
from olaf.jobs.progress import Happening, Progress
from olaf.processes.sink import Sink, lost_as_json, lost_in_words
from olaf.values.numbers import score

STATUS_EVERY_S = 2.0
LEARNING_EVERY = 5
"""Status lines for one line of the learners' numbers."""
LEVELS = ("debug", "info", "warning", "error")


class Lines:
    """Prints each event when it occurs, and a status line every few seconds.

    as_json: lines are JSON objects with time and level. level: the least level that is printed.
    Trouble is a warning, all else is info.
    """

    def __init__(
        self,
        out: IO[str],
        every_s: float = STATUS_EVERY_S,
        *,
        as_json: bool = False,
        level: str = "info",
    ) -> None:
        self._sink = Sink(out, lost_as_json if as_json else lost_in_words)
        self._every_s = every_s
        self._as_json = as_json
        self._least = LEVELS.index(level)
        self._due_s = self._learning_due_s = 0.0
        self._phase = ""

    def happened(self, happening: Happening) -> None:
        """Print one line."""
        if not happening.echo:
            level = "warning" if happening.trouble else "info"
            self._print(happening.at_s, happening.text, "happening", level)

    def stands(self, progress: Progress, phase: str) -> None:
        """Print the status if it is due, and each change of phase."""
        if phase != self._phase:
            self._phase = phase
            self._print(progress.now_s, phase, "phase")
        if progress.now_s >= self._due_s and progress.updates:
            self._due_s = progress.now_s + self._every_s
            self._print(progress.now_s, status(progress), "status")
            self._tell_of_learning(progress)

    def _tell_of_learning(self, progress: Progress) -> None:
        """Print the learners' numbers with every few status lines."""
        learning = progress.learning
        said = phrases(learning.latest, learning.steps, learning.numbers)
        if said and progress.now_s >= self._learning_due_s:
            self._learning_due_s = progress.now_s + LEARNING_EVERY * self._every_s
            self._print(progress.now_s, f"learning: {', '.join(said)}", "learning")

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *error: object) -> None:
        self._sink.drain()

    def _print(self, at_s: float, text: str, event: str, level: str = "info") -> None:
        if LEVELS.index(level) < self._least:
            return
        if self._as_json:
            line = {
                "event": event,
                "time_unix_s": time.time(),
                "level": level,
                "at_s": round(at_s, 3),
                "text": text,
            }
            self._sink.write(json.dumps(line))
        else:
            self._sink.write(f"{at_s:7.1f} s  {text}")


def status(progress: Progress) -> str:
    """The state of a run in one line."""
    used, slots = progress.queue
    counts = progress.switch_counts()
    ages = " ".join(
        f"c{n} {'-' if c.age_s is None else round(c.age_s * 1e3)}"
        for n, c in sorted(progress.clusters.items())
    )
    if progress.settings.train.transport == "tcp":
        where = f"in TCP's buffers {progress.awaited}"
    else:
        where = (
            f"queue {used}/{slots}  alone {counts.get('sent_alone', 0)} "
            f"merged {counts.get('merged', 0)} replaced {counts.get('replaced', 0)} "
            f"filtered {counts.get('filtered', 0)} dropped {counts.get('dropped', 0)} "
            f"rejected {counts.get('rejected', 0)}"
        )
    return (
        f"updates {progress.updates} ({progress.updates_per_s:.0f}/s)  steps {progress.steps:,}  "
        f"reward {score(progress.reward_so_far)}  age ms [{ages}]  {where}"
    )
