"""``olaf train --local``: one learner in one process, without a network, as a baseline.

The run has the same learner, environment, record, curve and report as a run through a switch. The
learner has a process of its own (`olaf.jobs.learning_alone`), which writes the model. It plays one
turn at a time, so that the run ends at exactly its limit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from olaf.errors.outcome import Exit, RunError
from olaf.files.modelfile import MODEL
from olaf.jobs import words
from olaf.jobs.attached import command
from olaf.jobs.evaluating import Evaluating
from olaf.jobs.hearing import Hearing
from olaf.jobs.limits import Limits, Verdict
from olaf.jobs.progress import Earlier, Progress
from olaf.jobs.settings import Settings
from olaf.jobs.supervisor import Ended, Occurrence, Program, Said, Supervisor
from olaf.jobs.training import (
    LAST_EVALUATION,
    LOOK_S,
    Observer,
    Outcome,
    olaf_command,
    session_seed,
)
from olaf.processes.lines import Control
from olaf.rl import process_environment

WORKER = "worker 0"

CHECKPOINT_EVERY_S = 10.0


class TrainingAlone:
    """One run from the first step to the last checkpoint."""

    def __init__(
        self,
        settings: Settings,
        observer: Observer,
        control: Control,
        *,
        earlier: Earlier | None = None,
        clock: Callable[[], float] = time.monotonic,
        descriptors: Sequence[int] = (),
    ) -> None:
        """Prepare a run; ``earlier`` holds the earlier sessions of a resumed run.

        descriptors: open files that the learner's process inherits.
        """
        earlier = earlier or Earlier()
        self._settings = settings
        self._train = settings.train
        self._observer = observer
        self._control = control
        self._clock = clock
        self._begin = clock() - earlier.at_s
        self._next_sample_s = earlier.at_s
        self.progress = Progress(settings, earlier, local_version=1)
        self._limits = Limits(self.progress, control)
        self._hearing = Hearing(self.progress, observer, self._now, self._train)
        self._place = Supervisor(restarts=0, descriptors=descriptors)
        self._evaluating = Evaluating(
            self.progress,
            ask_for_model=lambda: self._place.tell(WORKER, f"save {settings.worker.job}"),
            bring=lambda file: None,
            say=observer.happened,
            command=olaf_command,
            learner=self._learner(),
            clock=clock,
        )
        self._phase = "starting"
        self._unsaved: str | None = None

    def run(self) -> Outcome:
        """Run to the end. Raises RunError for an invalid learner or a broken checkpoint."""
        with self._place, contextlib.closing(self._evaluating):
            told = json.dumps(self._told())
            learner = Program(WORKER, command("alone"), told, process_environment())
            self._place.start(dataclasses.replace(learner, last_event="stopped"))
            verdict: Verdict | None = None
            while verdict is None:
                verdict = self._look()
            ended_s, reward = self._now(), self.progress.reward_so_far
            self._phase = "stopping"
            patience_s = self._train.stop_timeout_s
            for occurrence in self._place.stop([WORKER], patience_s):
                self._take(occurrence)
            kind, reason, code = verdict
            if self._unsaved is not None:
                kind, reason, code = "failed", self._unsaved, Exit.FAILED
            if kind not in ("failed", "interrupted"):
                self._evaluate_last()
        self._hearing.end()
        self.progress.sample(self._now())
        return Outcome(
            kind,
            reason,
            code,
            ended_s,
            reward,
            self.progress,
            {},
            self._train.folder / MODEL,
            self._place.cpu_s(),
        )

    def _learner(self) -> dict[str, Any]:
        settings = self._settings
        learner = settings.learner.model_dump(mode="json")
        if "gamma" not in settings.learner.model_fields_set:
            learner["gamma"] = settings.server.learning_rate
        if learner["schedule"] != "constant" and learner["schedule_steps"] is None:
            learner["schedule_steps"] = self._train.steps
        return learner

    def _told(self) -> dict[str, Any]:
        """The configuration of the learner's process."""
        settings, earlier = self._settings, self.progress.earlier
        limit = self._train.updates
        every_s = CHECKPOINT_EVERY_S
        if "checkpoint_every_ms" in settings.server.model_fields_set:
            every_s = float(settings.server.model_dump()["checkpoint_every_ms"]) / 1000
        return {
            "learner": self._learner(),
            "seed": session_seed(self._train.seed, len(earlier.sessions)),
            "folder": str(self._train.folder.absolute()),
            "resumes": bool(earlier.sessions),
            "steps": earlier.steps,
            "updates": None if limit is None else limit - earlier.updates,
            "save_folder": str(self._evaluating.folder.absolute()),
            "checkpoint_every_s": every_s,
            "learning_rate": settings.server.learning_rate,
            "turns_per_push": settings.worker.turns_per_push,
            "push_every": settings.worker.push_every,
        }

    def _look(self) -> Verdict | None:
        """Take in what has happened; return the reason to stop, if there is one."""
        for occurrence in self._place.poll(LOOK_S):
            if verdict := self._take(occurrence):
                return verdict
            if isinstance(occurrence, Said) and occurrence.message["event"] in ("joined", "update"):
                if verdict := self._limits.enough(self._now()):
                    return verdict
                turns = int(occurrence.message.get("turns", 0))
                self._place.tell(WORKER, f"updates {turns + 1}")
        self._evaluating.turn()
        if verdict := self._limits.enough(self._now()):
            return verdict
        quiet = self._hearing.too_quiet([WORKER])
        return None if quiet is None else ("failed", quiet, Exit.UNREACHABLE)

    def _take(self, occurrence: Occurrence) -> Verdict | None:
        if isinstance(occurrence, Said):
            self._hear(occurrence)
        if isinstance(occurrence, Ended):
            # There is no account of fates that its end would close.
            if not occurrence.expected:
                return self._gone(occurrence)
            why = self.progress.stopped.get(WORKER, "")
            reason = f"the learner's process was stopped by {why}"
            return ("interrupted", reason, Exit.INTERRUPTED) if why.startswith("SIG") else None
        self._hearing.take(occurrence)
        self._evaluating.take(occurrence)
        now = self._now()
        if now >= self._next_sample_s:
            self._next_sample_s = now + self._train.every_s
            self.progress.sample(now)
        self._observer.stands(self.progress, self._phase)
        return None

    def _evaluate_last(self) -> None:
        def goes_on() -> bool:
            self.progress.now_s = self._now()
            self._observer.stands(self.progress, LAST_EVALUATION)
            return not self._control.stopping

        self._evaluating.last(self._train.folder / MODEL, goes_on)

    def _hear(self, said: Said) -> None:
        message = said.message
        if "version" in message:
            self.progress.local_version = int(message["version"])
        if message["event"] == "joined":
            self._phase = "training"
        elif message["event"] == "save_failed" and message["is_last"]:
            self._unsaved = self._unsaved or words.sentence(message)

    def _gone(self, ended: Ended) -> Verdict:
        """The learner's process has ended by itself."""
        complaint = self.progress.complaints.get(WORKER)
        said = (complaint or ended.how).removeprefix("olaf: ")
        if ended.code == Exit.USAGE and self.progress.joined_at_s is None:
            raise RunError(said, Exit.USAGE)
        if self._hearing.faulty:
            return "failed", said, Exit.FAILED
        why = "" if complaint is None else f": {said}"
        return "failed", f"the learner's process {ended.how}{why}", Exit.FAILED

    def _now(self) -> float:
        return self._clock() - self._begin
