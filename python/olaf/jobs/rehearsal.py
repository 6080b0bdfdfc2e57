"""Builds one learner as the workers will build theirs, before any process starts.

An unknown environment or a missing extra is thus reported at once and only once. The size of the
model then sets the size of the queue.
"""

from __future__ import annotations

import os
from typing import Any

from olaf.jobs.section import Section
from olaf.jobs.settings import Settings, WorkerSettings
from olaf.outcome import Exit, RunError

PASSES_POWER = 0.33
"""Default ``server.staleness_power`` for updates of single passes. They are fresher than the
updates of whole turns, for which the server's own default is made (docs/training.md)."""

UPDATES_IN_QUEUE = 8
"""Default number of whole updates that a queue holds (``switch.slots``, ``leaf.slots``). The
paper's 8 slots hold one segment each, and its models have one segment (OLAF §8.1)."""


def rehearse(settings: Settings) -> Settings:
    """Return the settings with the defaults that follow from the model. Raises RunError."""
    from olaf.rl import process_environment
    from olaf.rl.learner import LearnerConfig, LearnerError
    from olaf.rl.making import make_learner
    from olaf.tcp import frames

    for name, value in process_environment().items():
        os.environ.setdefault(name, value)
    try:
        fields = settings.learner.model_dump()
        learner: Any = make_learner(LearnerConfig(**fields, seed=settings.train.seed))
    except LearnerError as error:
        raise RunError(str(error), Exit.USAGE) from None
    # What was measured here counts for all workers.
    measured = {key: getattr(learner.config, key) for key in ("normalise", "scales")}
    settings = with_learner(settings, **measured)
    segments = -(-learner.parameters // _segment_lanes(settings.worker))
    queues: dict[str, Section] = {
        name: queue.model_copy(update={"slots": UPDATES_IN_QUEUE * segments})
        for name, queue in (("switch", settings.switch), ("leaf", settings.leaf))
        if "slots" not in queue.model_fields_set
    }
    tcp = settings.tcp
    if tcp.buffer_bytes is None:
        buffer_bytes = frames.largest(learner.parameters)
        queues["tcp"] = tcp.model_copy(update={"buffer_bytes": buffer_bytes})
    return with_power(settings.model_copy(update=queues))


def with_power(settings: Settings) -> Settings:
    """Set the keys that depend on each other, unless the user set them.

    If updates are collected (`server.aggregate`), the passes of a round all start from one model
    and overshoot together. Workers then push whole turns. Otherwise, passes have a staleness power
    of their own.
    """
    server, worker = settings.server, settings.worker
    if server.aggregate != "each":
        if "push_every" in worker.model_fields_set:
            return settings
        return settings.model_copy(
            update={"worker": worker.model_copy(update={"push_every": "turn"})}
        )
    by_pass = worker.push_every == "pass" and worker.turns_per_push == 1
    if not by_pass or "staleness_power" in server.model_fields_set:
        return settings
    fresher = server.model_copy(update={"staleness_power": PASSES_POWER})
    return settings.model_copy(update={"server": fresher})


def with_learner(settings: Settings, **fields: Any) -> Settings:
    """The settings with fields of the learner that the user need not have set."""
    return settings.model_copy(update={"learner": settings.learner.model_copy(update=fields)})


def _segment_lanes(worker: WorkerSettings) -> int:
    """Parameters per segment, as the core will choose them."""
    if worker.segment_lanes is not None:
        return worker.segment_lanes
    if worker.mtu_bytes is None:
        return 2208
    headers = 40 + 8 + 96  # IPv6, UDP, ours
    return min(2208, (worker.mtu_bytes - headers) // 4)
