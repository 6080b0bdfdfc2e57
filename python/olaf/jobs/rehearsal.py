"""Builds one learner as the workers will build theirs, before any of them starts.

An unknown environment or a missing extra is thus reported at once and only once. The size of the
model then sets the size of the queue.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from olaf.errors.outcome import Exit, RunError
from olaf.jobs import forking, words
from olaf.jobs.attached import command
from olaf.jobs.section import Section
from olaf.jobs.settings import Settings, WorkerSettings
from olaf.jobs.supervisor import Ended, Printed, Program, Said, Supervisor
from olaf.processes.lines import Control
from olaf.rl import process_environment

NAME = "rehearsal"

SLOW_S = 2.0
"""Seconds after which a rehearsal says what it does."""

CLOSE_S = 5.0
"""Seconds for the environment to close."""

SHOWN = 20
"""Last printed lines that are shown if the process dies."""

PASSES_POWER = 0.33
"""Default ``server.staleness_power`` for updates of single passes. They are fresher than the
updates of whole turns, for which the server's own default is made (docs/training.md)."""

UPDATES_IN_QUEUE = 8
"""Default number of whole updates that a queue holds (``switch.slots``, ``leaf.slots``). The
paper's 8 slots hold one segment each, and its models have one segment (OLAF §8.1)."""


def print_to_stderr(text: str) -> None:
    """Print a sentence for people."""
    print(text, file=sys.stderr, flush=True)


def rehearse(
    settings: Settings,
    control: Control | None = None,
    say: Callable[[str], None] = print_to_stderr,
) -> Settings:
    """Return the settings with the defaults that follow from the model. Raises RunError.

    control: ends the rehearsal when the run is asked to stop. say: takes a sentence if it is slow.
    """
    return settled(settings, rehearsed(settings, control, say))


def rehearsed(
    settings: Settings,
    control: Control | None = None,
    say: Callable[[str], None] = print_to_stderr,
) -> Mapping[str, Any]:
    """What the rehearsal's process says of the learner: `olaf.jobs.rehearsing`. Raises RunError.

    The user's code runs in that process, never in this one: it may change the folder, start
    programs, or crash.
    """
    told = {"learner": settings.learner.model_dump(mode="json"), "seed": settings.train.seed}
    environment, limit_s = settings.learner.environment, settings.train.start_timeout_s
    printed: deque[str] = deque(maxlen=SHOWN)
    began_s = time.monotonic()
    slow_at_s = began_s + SLOW_S
    forking.prepare(settings.learner.learner, environment)
    with Supervisor(restarts=0) as supervisor:
        # As `olaf.jobs.attached` sets them, but before the process starts.
        given = {name: os.environ.get(name, value) for name, value in process_environment().items()}
        supervisor.start(Program(NAME, command(NAME), json.dumps(told), given))
        while time.monotonic() < began_s + limit_s:
            for occurrence in supervisor.poll(0.1):
                match occurrence:
                    case Said(_, _, message) if message["event"] == "rehearsed":
                        # The environment may be slow to close: that is the supervisor's deadline.
                        list(supervisor.stop([NAME], CLOSE_S))
                        return message
                    case Said(_, _, message) if message["event"] == "fault":
                        raise RunError(words.sentence(message), Exit.FAILED)
                    case Printed(_, _, text):
                        printed.append(text)
                    case Ended() as end:
                        raise _failed(end, list(printed))
            if control is not None and control.stopping:
                raise RunError("interrupted while starting", Exit.INTERRUPTED)
            if time.monotonic() >= slow_at_s:
                slow_at_s = math.inf
                say(f"making environment {environment!r} and its network once, to see their size")
    raise RunError(
        f"environment {environment!r} and its network were not made within {limit_s:g} s; give "
        "them more time with --set train.start_timeout=5min",
        Exit.UNREACHABLE,
    )


def _failed(end: Ended, printed: list[str]) -> RunError:
    last = printed[-1] if printed else ""
    if last.startswith("olaf: "):
        code = Exit(end.code) if end.code in list(Exit) else Exit.FAILED
        return RunError(last.removeprefix("olaf: "), code)
    lines = "".join(f"\n  {line}" for line in printed)
    then = f":{lines}" if lines else ""
    return RunError(f"the process that makes the environment {end.how}{then}")


def settled(settings: Settings, found: Mapping[str, Any]) -> Settings:
    """The settings with the defaults that follow from a rehearsal's message."""
    from olaf.tcp import frames

    # What was measured there counts for all workers.
    measured = found["measured"]
    settings = with_learner(settings, **{**measured, "scales": tuple(measured["scales"])})
    parameters = int(found["parameters"])
    segments = -(-parameters // _segment_lanes(settings.worker))
    queues: dict[str, Section] = {
        name: queue.model_copy(update={"slots": UPDATES_IN_QUEUE * segments})
        for name, queue in (("switch", settings.switch), ("leaf", settings.leaf))
        if "slots" not in queue.model_fields_set
    }
    tcp = settings.tcp
    if tcp.buffer_bytes is None:
        buffer_bytes = frames.largest(parameters)
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
