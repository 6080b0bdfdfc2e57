"""The sharing controller as a process: the core's, and the command that tears down trees."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from olaf import _olaf

SLICE_S = 0.05
"""Seconds between checks for Ctrl-C and for trees that are torn down."""
FENCE_AGAIN_S = 0.5
"""Seconds before a command that failed runs again."""


class Fences:
    """Commands that tear down trees, one per job, repeated until each succeeds.

    command: its words; the job's number is appended. Without a command no tree is ever torn down,
    and a dead job keeps its resources, since its packets may still be under way.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.command = list(command)
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._again: dict[int, float] = {}

    def begin(self, job: int) -> None:
        """Tear down this job's tree."""
        if self.command:
            self._again[job] = 0.0

    def done(self) -> list[int]:
        """The jobs whose trees were torn down since the last call."""
        now = time.monotonic()
        for job in [job for job, at in self._again.items() if at <= now]:
            del self._again[job]
            self._running[job] = subprocess.Popen(
                [*self.command, str(job)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
        down = []
        for job, process in list(self._running.items()):
            code = process.poll()
            if code is None:
                continue
            del self._running[job]
            if code == 0:
                down.append(job)
            else:
                self._again[job] = now + FENCE_AGAIN_S
        return down


def control(
    config: str, fences: Fences, say: Callable[[dict[str, Any]], None], *, jobs: int
) -> None:
    """Share until all jobs have left or are torn down, or another controller has taken over.

    say: receives the events, each with ``ns`` of the machine's monotonic clock; the last has the
    number of grants and the lateness of its timers in microseconds.
    """
    controller = _olaf.SharingController(config)
    seen = (
        {}
        if controller.metrics_address is None
        else {"metrics": f"http://{controller.metrics_address}"}
    )
    say({"event": "listening", "address": controller.address, **seen, "ns": time.monotonic_ns()})
    while jobs:
        for line in controller.run(SLICE_S):
            event = json.loads(line)
            say(event)
            if event["event"] == "fence":
                fences.begin(event["job"])
            jobs -= event["event"] == "left"
            if event["event"] == "superseded":
                return
        for job in fences.done():
            say({"event": "fenced", "job": job, "ns": time.monotonic_ns()})
            controller.fenced(job)
            jobs -= 1
    say({"event": "ended", **json.loads(controller.statistics()), "ns": time.monotonic_ns()})
