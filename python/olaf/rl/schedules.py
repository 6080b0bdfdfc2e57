"""How the learning rate goes down during a run."""

import math

from olaf.rl.learner import LearnerConfig, LearnerError

LAST = 0.01
"""Part of the learning rate that is left at the end of a schedule and after it."""


def rate(config: LearnerConfig, steps: int) -> float:
    """Adam's step size after ``steps`` environment steps of all workers together.

    ``linear`` and ``cosine`` go from ``learning_rate`` to `LAST` of it at ``schedule_steps``, and
    stay there. Raises ``LearnerError`` if the end of the schedule is unknown.
    """
    if config.schedule == "constant":
        return config.learning_rate
    if config.schedule_steps is None:
        raise LearnerError(
            f"schedule = {config.schedule!r} needs an end: set schedule_steps, or the run's --steps"
        )
    part = min(1.0, steps / config.schedule_steps)
    left = 1 - part if config.schedule == "linear" else (1 + math.cos(math.pi * part)) / 2
    return config.learning_rate * (LAST + (1 - LAST) * left)
