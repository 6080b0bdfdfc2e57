"""The process of ``olaf train --local``: one learner, without a network.

It speaks as a worker does, plays a turn when its parent allows one, and writes the model itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from olaf.files.modelfile import MODEL
from olaf.jobs.faults import end_with_fault
from olaf.jobs.playing import Pulse, made
from olaf.processes.lines import Control, Reporter, clock_here


def run_alone(told: Mapping[str, Any], reporter: Reporter, control: Control) -> None:
    """Play turns until told to stop, then write the model; `olaf.jobs.alone` has the fields."""
    from olaf.rl.learner import LearnerConfig

    config = LearnerConfig(**told["learner"], seed=told["seed"])
    with made(config, reporter) as learner:
        _Alone(told, learner, reporter, control).run()
        reporter.say("stopped", why=control.why or "done", worker=0)


class _Alone:
    def __init__(
        self, told: Mapping[str, Any], learner: Any, reporter: Reporter, control: Control
    ) -> None:
        self._told, self._learner = told, learner
        self._reporter, self._control = reporter, control
        self._folder = Path(told["folder"])
        self._version = 1
        self._updates = self._steps = self._turns = 0
        learner.steps_of_run = lambda: told["steps"] + self._steps

    def run(self) -> None:
        from olaf.files.modelfile import CHECKPOINT
        from olaf.rl.worker_loop import InterruptedTurn

        self._begin(self._folder / CHECKPOINT)
        pulse = Pulse(self._reporter, self._control, 0, self._learner)
        self._learner.watch(pulse)
        every_s = float(self._told["checkpoint_every_s"])
        next_save_s = time.monotonic() + every_s
        try:
            while self._may_play():
                self._turn()
                pulse.told()
                self._hand_over()
                if time.monotonic() >= next_save_s:
                    self._save(self._folder / CHECKPOINT)
                    next_save_s = time.monotonic() + every_s
        except InterruptedTurn:
            pass
        except (Exception, SystemExit) as error:
            self._end()
            end_with_fault(self._reporter, error, worker=0)
        self._end()

    def _begin(self, checkpoint: Path) -> None:
        from olaf.files.modelfile import put_into, read_model
        from olaf.rl.environments import reward_threshold
        from olaf.rl.learner import named_parts

        if self._told["resumes"] and checkpoint.exists():
            saved = read_model(checkpoint)
            put_into(self._learner, saved)
            self._version = saved.version
        environment = self._told["learner"]["environment"]
        self._reporter.say(
            "ready",
            worker=0,
            environment=environment,
            parameters=self._learner.parameters,
            layout=[[name, list(part.shape)] for name, part in named_parts(self._learner).items()],
            reward_threshold=reward_threshold(environment),
            pid=os.getpid(),
            clock=clock_here(),
        )
        self._reporter.say("joined", worker=0, version=self._version)

    def _may_play(self) -> bool:
        """Wait until the parent allows another turn; False when the run ends."""
        control = self._control
        while not (control.stopping or control.finishing):
            if self._turns < control.updates_allowed:
                return True
            control.wait(60.0)
            self._hand_over()
        return False

    def _hand_over(self) -> None:
        """Write the model if the parent asks for it, and report the file."""
        for job in self._control.saves_wanted():
            file = Path(self._told["save_folder"]) / MODEL
            is_there = self._save(file)
            self._reporter.say("saved", job=job, file=str(file) if is_there else None)

    def _play(self) -> Any:
        """Play and learn one turn, with no more updates than are left."""
        learner, left = self._learner, self._told["updates"]
        if left is not None and self._each_pass and left - self._updates < learner.config.passes:
            learner.collect()
            return learner.learn(left - self._updates)
        return learner.iterate()

    @property
    def _each_pass(self) -> bool:
        """True if each pass over the steps of a turn counts as an update."""
        told = self._told
        return bool(told["turns_per_push"] == 1 and told["push_every"] == "pass")

    def _turn(self) -> None:
        """Play one turn, and report it as a worker does."""
        import numpy as np

        learner, told = self._learner, self._told
        turn = self._play()
        if learner.config.gradient_kind == "gradient":
            # No server applies the update, so its step is taken here.
            for part, update in zip(learner.parts(), turn.update, strict=True):
                np.add(part, told["learning_rate"] * update, out=part)
        self._turns += 1
        if told["turns_per_push"] > 1:
            self._updates += self._turns % told["turns_per_push"] == 0
        else:
            self._updates += turn.passes if self._each_pass else 1
        self._steps += turn.steps
        self._version += 1
        self._reporter.say(
            "update",
            worker=0,
            updates=self._updates,
            steps=self._steps,
            turns=self._turns,
            version=self._version,
            episode_rewards=turn.episode_rewards,
            episode_steps=turn.episode_steps,
            episode_numbers=turn.episode_numbers,
            losses=turn.losses,
            reward=turn.reward,
            pushes_at_s=[time.monotonic()],
        )

    def _end(self) -> None:
        """Write the model, also if the environment has failed in the middle of a turn."""
        from olaf.files.modelfile import CHECKPOINT

        for name in (CHECKPOINT, MODEL):
            self._save(self._folder / name, is_last=True)

    def _save(self, file: Path, *, is_last: bool = False) -> bool:
        """Write the model. On an error say so, keep the previous file, and return False."""
        from olaf.files.modelfile import write_model
        from olaf.rl.learner import named_parts

        try:
            write_model(file, self._version, named_parts(self._learner))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            self._reporter.say("save_failed", file=str(file), reason=reason, is_last=is_last)
            return False
        return True
