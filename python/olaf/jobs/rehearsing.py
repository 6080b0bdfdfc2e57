"""The rehearsal's process: one learner, made as the workers will make theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from olaf.jobs.playing import made
from olaf.processes.lines import Reporter


def run_rehearsal(told: Mapping[str, Any], reporter: Reporter) -> None:
    """Make the learner, say what it is, and close it. ``told``: ``learner`` and ``seed``."""
    from olaf.rl.environments import reward_threshold
    from olaf.rl.learner import LearnerConfig, named_parts

    config = LearnerConfig(**told["learner"], seed=told["seed"])
    with made(config, reporter) as learner:
        reporter.say(
            "rehearsed",
            measured={"normalise": learner.config.normalise, "scales": learner.config.scales},
            parameters=learner.parameters,
            layout=[[name, list(part.shape)] for name, part in named_parts(learner).items()],
            reward_threshold=reward_threshold(config.environment),
        )
