"""The command line in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest


def olaf(
    *argv: str,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 100,
) -> subprocess.CompletedProcess[str]:
    """Runs ``python -m olaf`` to its end. environment: the whole of it; None: this process's."""
    return subprocess.run(
        [sys.executable, "-m", "olaf", *argv],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def message_of(process: subprocess.Popen[str], event: str) -> dict[str, Any]:
    """The next message of that kind on the process's standard output."""
    assert process.stdout is not None
    for line in process.stdout:
        message: dict[str, Any] = json.loads(line)
        if message["event"] == event:
            return message
    pytest.fail(f"the process ended without saying {event}")
