"""Facts about this machine that operating systems report in different ways."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def cores() -> int:
    """Number of CPU cores that this process may use. macOS does not restrict a process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """The CPU's model name, as far as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
