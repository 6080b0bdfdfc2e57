"""What the tests of the command line share: stand-ins for the roles."""

import sys
from collections.abc import Callable
from pathlib import Path

from olaf.jobs.progress import Happening, Progress

FAKES = Path(__file__).with_name("fake_roles.py")


def fake_command(role: str) -> list[str]:
    """Start a stand-in for a role."""
    return [sys.executable, str(FAKES), role]


class Watcher:
    """An observer of a run that keeps what it saw and may act on it."""

    def __init__(self, act: Callable[[Progress, str], None] = lambda progress, phase: None) -> None:
        self.lines: list[str] = []
        self.phases: list[str] = []
        self._act = act

    def happened(self, happening: Happening) -> None:
        self.lines.append(happening.text)

    def stands(self, progress: Progress, phase: str) -> None:
        if phase not in self.phases:
            self.phases.append(phase)
        self._act(progress, phase)
