"""The process that plays with models while a run trains: ``python -m olaf.runs.evaluator``.

`olaf.jobs.evaluating` starts it. The first line of stdin is its configuration; then come lines
``evaluate FILE``. It answers each with ``evaluated`` or ``not_evaluated``.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from olaf.errors.outcome import Exit, RunError
from olaf.jobs.attached import run
from olaf.processes.lines import Control, Reporter

PURPOSE = int.from_bytes(b"evaluation")
"""Sets the seeds of evaluations apart from all seeds of training."""

WAIT_S = 1.0


def evaluation_seed(seed: int) -> int:
    """The seed of the first episode of each evaluation, from the seed of the run."""
    import numpy as np

    return int(np.random.SeedSequence([seed, PURPOSE]).generate_state(1)[0])


def run_evaluator(told: Mapping[str, Any], reporter: Reporter, control: Control) -> None:
    """Play with each model that the parent names, until told to stop."""
    from olaf.rl.learner import LearnerError
    from olaf.runs.model import learner_of

    seed = evaluation_seed(told["seed"])
    fields = {key: value for key, value in told["learner"].items() if key != "seed"}
    try:
        # The numbers of the workers' copies are taken: a simulator's port is in use.
        learner = learner_of(fields, worker=told["copies"])
    except LearnerError as error:
        raise RunError(str(error), Exit.USAGE) from None
    learner.close()
    reporter.say("ready", pid=os.getpid())
    while not control.wait(WAIT_S):
        for file in control.files_wanted():
            begin = time.monotonic()
            try:
                found = evaluate(learner, Path(file), told, seed)
            except (RunError, LearnerError) as error:
                reporter.say("not_evaluated", file=file, reason=str(error))
            except SystemExit as error:
                reason = f"the environment ended its process: SystemExit({error.code!r})"
                reporter.say("not_evaluated", file=file, reason=reason)
            else:
                reporter.say("evaluated", **found, seconds=time.monotonic() - begin)
    reporter.say("stopped", why=control.why)


def evaluate(learner: Any, file: Path, told: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The scores of the model in ``file``, greedy and sampled, on the same episodes each time."""
    from olaf.files.modelfile import put_into, read_model
    from olaf.runs.evaluation import play, score

    saved = read_model(file)
    put_into(learner, saved)
    found: dict[str, Any] = {"version": saved.version}
    for name, is_sampled in (("greedy", False), ("sampled", True)):
        episodes = list(
            play(
                learner,
                learner.config.environment,
                episodes=told["episodes"],
                seed=seed,
                is_sampled=is_sampled,
                most_steps=told["most_steps"],
            )
        )
        cut = sum(episode.is_cut for episode in episodes)
        found[name] = {**score(episodes).to_json(), "cut": cut}
    return found


if __name__ == "__main__":
    sys.exit(run(run_evaluator))
