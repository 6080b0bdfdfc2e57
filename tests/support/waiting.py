"""Waiting for a condition, with a deadline. No test waits by sleeping."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")

PATIENCE_S = 60.0
"""Long enough for a busy machine; a test that passes never waits for all of it."""


def until(
    condition: Callable[[], T], what: str = "the condition", timeout_s: float = PATIENCE_S
) -> T:
    """Polls until the condition holds; its value. Fails at the deadline, and says what for."""
    deadline = time.monotonic() + timeout_s
    while True:
        if value := condition():
            return value
        if time.monotonic() >= deadline:
            pytest.fail(f"waited {timeout_s:g} s for {what}")
        time.sleep(0.005)


def is_gone(pid: int) -> bool:
    """True if the process has exited, also where nobody has waited for it yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"
