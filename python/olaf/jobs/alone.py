"""``olaf train --local``: one learner in one process, without a network, as a baseline.

The run has the same learner, environment, record, curve and report as a run through a switch. The
model is in this process, so this process writes the checkpoints itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from olaf.jobs.limits import Limits, Verdict
from olaf.jobs.progress import Earlier, Happening, Progress
from olaf.jobs.settings import Settings
from olaf.jobs.supervisor import Said
from olaf.jobs.training import Observer, Outcome, session_seed
from olaf.lines import Control
from olaf.outcome import Exit, RunError

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
    ) -> None:
        """Prepare a run; ``earlier`` holds the earlier sessions of a resumed run."""
        earlier = earlier or Earlier()
        self._settings = settings
        self._observer = observer
        self._control = control
        self._clock = clock
        self._begin = clock() - earlier.at_s
        self._next_sample_s = earlier.at_s
        self.progress = Progress(settings, earlier, local_version=0)
        self._limits = Limits(self.progress, control)
        self._updates = self._steps = self._turns = 0

    def run(self) -> Outcome:
        """Run to the end. Raises RunError for an invalid learner or a broken checkpoint."""
        cpu_began_s = time.process_time()
        with _one_thread():
            return self._train(self._learner(), cpu_began_s)

    def _train(self, learner: Any, cpu_began_s: float) -> Outcome:
        from olaf.modelfile import CHECKPOINT, MODEL

        folder = self._settings.train.folder
        every_s = self._checkpoint_every_s()
        next_save_s = self._now() + every_s
        verdict: Verdict | None = None
        try:
            while verdict is None:
                self._turn(learner)
                now = self._now()
                if now >= next_save_s:
                    self._save(learner, folder / CHECKPOINT)
                    next_save_s = self._now() + every_s
                verdict = self._limits.enough(now)
        finally:
            # The model is also saved if the environment fails in the middle.
            failed = [self._save(learner, folder / name) for name in (CHECKPOINT, MODEL)]
            learner.close()
        kind, reason, code = verdict
        if lost := next(filter(None, failed), None):
            kind, reason, code = "failed", lost, Exit.FAILED
        ended_s = self._now()
        self.progress.sample(ended_s)
        reward = self.progress.reward_so_far
        return Outcome(
            kind,
            reason,
            code,
            ended_s,
            reward,
            self.progress,
            {},
            folder / MODEL,
            time.process_time() - cpu_began_s,
        )

    def _checkpoint_every_s(self) -> float:
        server = self._settings.server
        if "checkpoint_every_ms" not in server.model_fields_set:
            return CHECKPOINT_EVERY_S
        return float(server.model_dump()["checkpoint_every_ms"]) / 1000

    def _learner(self) -> Any:
        from olaf.modelfile import CHECKPOINT, put_into, read_model
        from olaf.rl import process_environment
        from olaf.rl.environments import reward_threshold
        from olaf.rl.learner import LearnerConfig, LearnerError, named_parts
        from olaf.rl.making import make_learner
        from olaf.rl.seeding import seed_everything

        for name, value in process_environment().items():
            os.environ.setdefault(name, value)
        fields = self._settings.learner.model_dump()
        fields["hidden"] = tuple(fields["hidden"])
        if "gamma" not in self._settings.learner.model_fields_set:
            fields["gamma"] = self._settings.server.learning_rate
        if fields["schedule"] != "constant" and fields["schedule_steps"] is None:
            fields["schedule_steps"] = self._settings.train.steps
        earlier = self.progress.earlier
        seed = session_seed(self._settings.train.seed, len(earlier.sessions))
        seed_everything(seed, 0)
        try:
            learner: Any = make_learner(LearnerConfig(**fields, seed=seed))
        except LearnerError as error:
            raise RunError(str(error), Exit.USAGE) from None
        learner.steps_of_run = lambda: self.progress.steps
        version = 1
        checkpoint = self._settings.train.folder / CHECKPOINT
        if earlier.sessions and checkpoint.exists():
            saved = read_model(checkpoint)
            put_into(learner, saved)
            version = saved.version
        self.progress.local_version = version
        environment = self._settings.learner.environment
        self._hear(
            "ready",
            environment=environment,
            parameters=learner.parameters,
            layout=[[name, list(part.shape)] for name, part in named_parts(learner).items()],
            reward_threshold=reward_threshold(environment),
        )
        self._hear("joined", version=version)
        return learner

    def _turn(self, learner: Any) -> None:
        """Play one turn of the learner, and report it as a worker does."""
        turn = learner.iterate()
        if learner.config.gradient_kind == "gradient":
            # No server applies the update, so its step is taken here.
            for part, update in zip(learner.parts(), turn.update, strict=True):
                np.add(part, self._settings.server.learning_rate * update, out=part)
        self._turns += 1
        worker = self._settings.worker
        if worker.turns_per_push > 1:
            self._updates += self._turns % worker.turns_per_push == 0
        else:
            self._updates += turn.passes if worker.push_every == "pass" else 1
        self._steps += turn.steps
        self.progress.local_version = (self.progress.local_version or 0) + 1
        self._hear(
            "update",
            updates=self._updates,
            steps=self._steps,
            episode_rewards=turn.episode_rewards,
            episode_steps=turn.episode_steps,
            episode_numbers=turn.episode_numbers,
            losses=turn.losses,
            reward=turn.reward,
            pushes_at_s=[self._clock()],
        )

    def _hear(self, event: str, **fields: Any) -> None:
        message = {"event": event, "worker": 0, **fields}
        now = self._now()
        happening: Happening | None = self.progress.take(Said(WORKER, 1, message), now)
        if happening:
            self._observer.happened(happening)
        if now >= self._next_sample_s:
            self._next_sample_s = now + self._settings.train.every_s
            self.progress.sample(now)
        self._observer.stands(self.progress, "training")

    def _save(self, learner: Any, file: Path) -> str | None:
        """Write the model. On an error keep the previous file and return the message."""
        from olaf.modelfile import NotFiniteError, write_model
        from olaf.rl.learner import named_parts

        try:
            write_model(file, self.progress.local_version or 0, named_parts(learner))
        except (OSError, NotFiniteError) as error:
            why = getattr(error, "strerror", None) or error
            text = f"{file} could not be written: {why}"
            happening = Happening(self._now(), "run", text, trouble=True)
            self.progress.happenings.append(happening)
            self._observer.happened(happening)
            return text
        return None

    def _now(self) -> float:
        return self._clock() - self._begin


def _one_thread() -> AbstractContextManager[object]:
    """Use one thread in the algebra library, as in a worker's process.

    `process_environment` works only for libraries that are not loaded yet, but numpy is. Two
    threads would take twice the CPU time for matrices of this size, and flatter every comparison.
    """
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(1)
    return limits
