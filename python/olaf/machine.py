"""What the operating system says of this machine, on systems that say it differently."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def cores() -> int:
    """Processor cores that this process may use. macOS does not restrict a process to some."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """The processor's model, as far as the system names it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
