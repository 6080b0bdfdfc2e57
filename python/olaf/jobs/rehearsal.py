"""One learner made as the workers will make theirs, before anything is started.

What cannot be (an unknown environment, a missing extra) is said at once and once, and the size of
the model settles the size of the queue.
"""

from __future__ import annotations

import os

from olaf.jobs.outcome import Exit, RunError
from olaf.jobs.settings import Settings, WorkerSettings

UPDATES_IN_QUEUE = 8
"""Whole updates a queue holds where nobody set ``switch.slots`` or ``leaf.slots``: the paper's 8
slots hold one segment each, and its models have one (OLAF §8.1)."""


def rehearse(settings: Settings) -> Settings:
    """Return the settings with what follows from the model. Raises RunError for a bad learner."""
    from olaf.rl import process_environment
    from olaf.rl.learner import LearnerConfig, LearnerError, make_learner

    for name, value in process_environment().items():
        os.environ.setdefault(name, value)
    try:
        fields = settings.learner.model_dump()
        fields["hidden"] = tuple(fields["hidden"])
        learner = make_learner(LearnerConfig(**fields, seed=settings.train.seed))
    except LearnerError as error:
        raise RunError(str(error), Exit.USAGE) from None
    segments = -(-learner.parameters // _segment_lanes(settings.worker))
    queues = {
        name: queue.model_copy(update={"slots": UPDATES_IN_QUEUE * segments})
        for name, queue in (("switch", settings.switch), ("leaf", settings.leaf))
        if "slots" not in queue.model_fields_set
    }
    return settings.model_copy(update=queues)


def _segment_lanes(worker: WorkerSettings) -> int:
    """Parameters in a segment, as the core will choose them."""
    if worker.segment_lanes is not None:
        return worker.segment_lanes
    if worker.mtu_bytes is None:
        return 2208
    headers = 40 + 8 + 96  # IPv6, UDP, ours
    return min(2208, (worker.mtu_bytes - headers) // 4)
