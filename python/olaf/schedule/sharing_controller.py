"""The sharing controller as a process: the core's, and the command that tears a tree down."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from olaf import _olaf

SLICE_S = 0.05
"""It looks for Ctrl-C, and whether a tree is torn down, so often."""
FENCE_AGAIN_S = 0.5
"""A command that failed is run again after this."""


class Fences:
    """Commands that tear trees down, one a job, until each has succeeded.

    command: its words; the job's number is added. Without one nothing is ever torn down, so that
    what a dead job held stays held: nobody can know that its packets are gone.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.command = list(command)
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._again: dict[int, float] = {}

    def begin(self, job: int) -> None:
        """Tear this job's tree down."""
        if self.command:
            self._again[job] = 0.0

    def done(self) -> list[int]:
        """Jobs whose trees are down since the last look."""
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

    say: what happens, each with ``ns`` of the machine's monotonic clock; at the end how many grants
    there were and how late its timers woke, in microseconds.
    """
    controller = _olaf.SharingController(config)
    say({"event": "listening", "address": controller.address, "ns": time.monotonic_ns()})
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
