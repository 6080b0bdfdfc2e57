"""What the tests of the command line share: waiting with deadlines, stand-ins for the roles."""

import sys
import time
from pathlib import Path

import pytest

FAKES = Path(__file__).with_name("fake_roles.py")


def fake_command(role):
    """Start a stand-in for a role."""
    return [sys.executable, str(FAKES), role]


def until(condition, timeout_s=20.0, what="the condition"):
    """Poll until the condition holds; its value. Fails at the deadline."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.01)
    pytest.fail(f"waited {timeout_s} s for {what}")


class Watcher:
    """An observer of a run that keeps what it saw and may act on it."""

    def __init__(self, act=lambda progress, phase: None):
        self.lines = []
        self.phases = []
        self._act = act

    def happened(self, happening):
        self.lines.append(happening.text)

    def stands(self, progress, phase):
        if phase not in self.phases:
            self.phases.append(phase)
        self._act(progress, phase)
