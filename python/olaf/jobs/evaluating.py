"""Evaluates the model of a run while it trains: when, by which process, and what if that fails.

The server writes its model when the parent asks for it (``save JOB``). A process of its own, the
evaluator, plays with that file and says what it scored. It runs on the parent's machine and is
no part of the job: its death, or an episode without an end, costs an evaluation and not the run.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from olaf.errors.outcome import RunError
from olaf.files.modelfile import BEST, read_model, write_named
from olaf.jobs.evaluation import Evaluation, Played, best_of, sentence
from olaf.jobs.progress import Happening, Progress
from olaf.jobs.supervisor import Ended, Occurrence, Printed, Program, Said, Started, Supervisor
from olaf.rl import process_environment
from olaf.values.numbers import counted

EVALUATOR = "evaluator"
"""Name and role of the process."""

FOLDER = ".evaluation"
"""Folder in the run's for the models under evaluation; it is gone after the run."""

SAVED_S = 20.0
"""Seconds for the server to write its model; then it is asked again."""

FAILURES = 3
"""Failed evaluations in a row, after which there are no more in this session."""


@dataclass(frozen=True)
class Model:
    """A model under evaluation, and the state of the run when it was taken."""

    file: Path
    updates: int
    steps: int


class Evaluating:
    """The evaluations of one session of a run. Without `train.evaluate_every` it does nothing."""

    def __init__(
        self,
        progress: Progress,
        *,
        ask_for_model: Callable[[], None],
        bring: Callable[[Path], None],
        say: Callable[[Happening], None],
        command: Callable[[str], Sequence[str]],
        learner: Mapping[str, Any],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``ask_for_model``: make the server write its model and say ``saved``.

        bring: make a file of the server's machine available here. learner: the fields of a worker's
        `olaf.rl.LearnerConfig`.
        """
        self._progress, self._train = progress, progress.settings.train
        self._ask_for_model, self._bring, self._say = ask_for_model, bring, say
        self._command, self._learner, self._clock = command, learner, clock
        self._every = self._train.evaluate_every
        self._begun = progress.updates // self._every if self._every else 0
        """Multiples of ``evaluate_every`` up to which evaluations have begun."""
        self._supervisor: Supervisor | None = None
        self._asked_at: float | None = None
        self._model: Model | None = None
        self._told_at = 0.0
        self._failures = 0
        self._complaint = ""
        self._is_given_up = False
        self._is_killed = False
        """True from the end of an evaluator's time to the end of its process."""

    @property
    def folder(self) -> Path:
        """Where the server writes models for evaluations."""
        return self._train.folder / FOLDER

    @property
    def is_busy(self) -> bool:
        """True while a model is under way or under evaluation."""
        return self._asked_at is not None or self._model is not None

    def take(self, occurrence: Occurrence) -> None:
        """Take in what a process of the job says: the server has written its model."""
        if self._asked_at is None or not isinstance(occurrence, Said):
            return
        if occurrence.message["event"] != "saved":
            return
        self._asked_at = None
        if reason := occurrence.message.get("reason"):
            self._complaint = str(reason)
            self._failed(f"the model was not evaluated: {reason}")
        elif occurrence.message["file"] is not None:
            file = Path(occurrence.message["file"])
            self._bring(file)
            # Updates have gone on since the server was asked: this is the newest mark's model.
            self._begun = self._progress.updates // (self._every or 1)
            self._play(Model(file, self._progress.updates, self._progress.steps))

    def turn(self) -> None:
        """Begin an evaluation if one is due, and take in what the evaluator says. Never waits."""
        if not self._every or self._is_given_up:
            return
        self._hear()
        now = self._clock()
        if self._asked_at is not None and now > self._asked_at + SAVED_S:
            self._asked_at = None  # the server died, or is dead; the next one is asked
            self._begun -= 1
        if self._model is not None and now > self._told_at + self._train.evaluate_timeout_s:
            self._took_too_long(self._model)
        due = self._progress.updates // self._every
        if not self.is_busy and due > self._begun and not self._is_given_up:
            self._begun = due
            self._asked_at = now
            self._ask_for_model()

    def last(self, file: Path, goes_on: Callable[[], bool]) -> None:
        """Evaluate the last model, and wait for it while ``goes_on()``, with the same time limit.

        An evaluation that is under way ends first.
        """
        if not self._every or self._is_given_up:
            return
        self._asked_at = None
        deadline = self._clock() + self._train.evaluate_timeout_s
        is_told = False
        while self._clock() < deadline and goes_on() and not self._is_given_up:
            if self._model is None:
                if is_told or not self._is_new(file):
                    return
                is_told = True
                self._play(Model(file, self._progress.updates, self._progress.steps))
            self._hear(0.05)
        if self._model is not None and not self._is_given_up:
            self._tell(f"the last model was not evaluated: {self._too_slow()}", trouble=True)

    def close(self) -> None:
        """End the evaluator, and remove the models that it played with."""
        if self._supervisor is not None:
            self._supervisor.close()
            self._supervisor = None
        shutil.rmtree(self.folder, ignore_errors=True)

    # The evaluator.

    def _play(self, model: Model) -> None:
        self._model = model
        if self._supervisor is None:
            self._supervisor = Supervisor(restarts=FAILURES - 1, restart_delay_s=0.1)
            told = {
                "learner": dict(self._learner),
                "seed": self._train.seed,
                "copies": self._train.workers * int(self._learner["environments"]),
                "episodes": self._train.evaluate_episodes,
                "most_steps": self._train.evaluate_steps,
            }
            command = self._command(EVALUATOR)
            program = Program(EVALUATOR, command, json.dumps(told), process_environment())
            self._supervisor.start(dataclasses.replace(program, last_event="stopped"))
        self._order()

    def _is_new(self, file: Path) -> bool:
        """True if there is a model in the file, and it was not evaluated last."""
        known = self._progress.evaluations
        try:
            version = read_model(file).version
        except RunError:
            return False
        return not known or known[-1].version != version

    def _order(self) -> None:
        if self._model is not None and self._supervisor is not None:
            self._told_at = self._clock()
            self._supervisor.tell(EVALUATOR, f"evaluate {self._model.file}")

    def _hear(self, timeout_s: float = 0.0) -> None:
        occurrences = self._supervisor.poll(timeout_s) if self._supervisor is not None else []
        for occurrence in occurrences:
            match occurrence:
                case Said() if self._is_killed:
                    pass  # of a model that has been given up
                case Said(_, _, message) if message["event"] == "evaluated":
                    self._evaluated(message)
                case Said(_, _, message) if message["event"] == "not_evaluated":
                    self._complaint = str(message["reason"])
                    self._failed()
                case Printed(_, _, text):
                    self._complaint = text
                case Ended():
                    self._ended(occurrence)
                case Started(_, incarnation, _) if incarnation > 1:
                    self._complaint = ""
                    self._order()

    def _evaluated(self, message: Mapping[str, Any]) -> None:
        model, self._model = self._model, None
        if model is None:
            return
        self._failures = 0
        found = Evaluation(
            at_s=self._progress.now_s,
            updates=model.updates,
            steps=model.steps,
            version=int(message["version"]),
            greedy=Played.told(message["greedy"]),
            sampled=Played.told(message["sampled"]),
        )
        self._progress.evaluations.append(found)
        is_best = best_of(self._progress.evaluations) is found
        self._tell(sentence(found, is_best=is_best))
        if is_best:
            self._keep(model.file)

    def _keep(self, file: Path) -> None:
        """Keep the model as the best one."""
        layout = next((told.get("layout") for told in self._progress.ready.values()), None)
        try:
            write_named(file, self._train.folder / BEST, layout or ())
        except (OSError, RunError, ValueError) as error:
            self._tell(f"{BEST} could not be written: {error}", trouble=True)

    def _ended(self, ended: Ended) -> None:
        if ended.expected:
            return
        was_killed, self._is_killed = self._is_killed, False
        if was_killed and ended.back_in_s is not None:
            return  # its failure is counted
        self._complaint = ": ".join(filter(None, (ended.how, self._complaint)))
        self._failed(f"the evaluator ended: {self._complaint}")
        if ended.back_in_s is None:
            self._give_up(self._complaint)

    def _took_too_long(self, model: Model) -> None:
        self._complaint = self._too_slow()
        self._failed(
            f"model of {counted(model.updates, 'update')} was not evaluated: {self._complaint}"
        )
        if self._supervisor is not None and not self._is_given_up:
            self._is_killed = True
            self._supervisor.kill(EVALUATOR)

    def _too_slow(self) -> str:
        train = self._train
        episodes = counted(2 * train.evaluate_episodes, "episode")
        return (
            f"{episodes} took longer than train.evaluate_timeout_s = "
            f"{train.evaluate_timeout_s:g}; play fewer (train.evaluate_episodes), or cut them "
            f"(train.evaluate_steps = {train.evaluate_steps})"
        )

    def _failed(self, how: str = "") -> None:
        self._model = None
        self._failures += 1
        if how:
            self._tell(how, trouble=True)
        if self._failures >= FAILURES:
            self._give_up(self._complaint)

    def _give_up(self, why: str) -> None:
        if self._is_given_up:
            return
        self._is_given_up, self._model = True, None
        self._tell(f"no more evaluations in this session: {why}", trouble=True)
        if self._supervisor is not None:
            self._supervisor.close()
            self._supervisor = None

    def _tell(self, text: str, *, trouble: bool = False) -> None:
        happening = Happening(self._progress.now_s, EVALUATOR, text, trouble)
        self._progress.happenings.append(happening)
        self._say(happening)
