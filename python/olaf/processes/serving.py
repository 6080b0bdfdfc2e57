"""The loop of every serving process: start, pass on events, report, and stop when asked to."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from olaf.errors.outcome import Exit, failure_of
from olaf.processes.lines import Control, Reporter, apart, orders_apart

POLL_S = 0.1
"""Seconds between looks for events: short for a person, long for a processor."""


class Endpoint(Protocol):
    """A switch or a server of the core, see ``olaf/_olaf.pyi``."""

    @property
    def address(self) -> str:
        """Where it listens."""

    def start(self) -> None:
        """Serve, in a thread of its own."""

    def stats(self) -> str:
        """Counters so far, as JSON."""

    def events(self) -> list[str]:
        """The events since the last call, as JSON."""

    def stop(self) -> None:
        """Close."""


class Desk(Protocol):
    """Answers the questions of a switch: `olaf.jobs.admission.Admission`."""

    def take(self, event: Mapping[str, Any]) -> None:
        """Take a question in."""

    def settled(self) -> Iterable[Mapping[str, Any]]:
        """The answers since the last call, as events."""


def serve(
    endpoint: Endpoint,
    every_s: float,
    reporter: Reporter,
    control: Control,
    *,
    before_stop: Callable[[], None] = lambda: None,
    desk: Desk | None = None,
    hand_over: Callable[[int], None] = lambda job: None,
) -> None:
    """Start an endpoint, report its events, and report statistics until asked to stop."""
    endpoint.start()
    engines: Mapping[str, str] = getattr(endpoint, "addresses", {})  # a switch has engines
    more: dict[str, Any] = {"engines": dict(engines)} if engines else {}
    if metrics := getattr(endpoint, "metrics_address", None):
        more["metrics"] = f"http://{metrics}"
    reporter.say("listening", address=endpoint.address, pid=os.getpid(), **more)
    due = time.monotonic() + every_s
    while not control.wait(min(POLL_S, every_s)):
        pass_on(endpoint, reporter, desk)
        for job in control.saves_wanted():
            hand_over(job)
        now = time.monotonic()
        if control.stats_wanted() or now >= due:
            reporter.say("stats", stats=json.loads(endpoint.stats()))
            due = now + every_s
    pass_on(endpoint, reporter)
    before_stop()
    # The state of the last checkpoint.
    pass_on(endpoint, reporter)
    stats = json.loads(endpoint.stats())
    endpoint.stop()
    reporter.say("stopped", why=control.why, stats=stats)


Role = Callable[[Mapping[str, Any], Reporter, Control], None]
"""A role of a process that a parent starts: (configuration, reporter, control)."""


def run_attached(role: Role | None) -> int:
    """Read the configuration from the first line, run the role to its end; return the exit code.

    None: the process was not started as a parent does.
    """
    control = Control().catch_signals()
    faulthandler.enable()
    orders = orders_apart()
    told = json.loads(orders.readline() or "null")
    if told is None or role is None:
        print("this process is started by `olaf train`", file=sys.stderr)
        return int(Exit.USAGE)
    control.watch(orders)
    try:
        with contextlib.closing(control), apart() as messages:
            role(told, Reporter(as_json=True, out=messages, human=str), control)
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            raise
        print(f"olaf: {failure}", file=sys.stderr)
        return int(failure.code)
    return int(Exit.OK)


class _Events(Protocol):
    def events(self) -> list[str]: ...


def pass_on(source: _Events, reporter: Reporter, desk: Desk | None = None) -> None:
    """Report what has happened since the last call, and put its questions to the desk."""
    for text in source.events():
        event = json.loads(text)
        if desk and event["event"] == "admission_wanted":
            desk.take(event)
        reporter.say(event.pop("event"), **event)
    for message in desk.settled() if desk else ():
        reporter.say(**message)
