"""What the operating system says of this machine, on systems that say it differently."""

from __future__ import annotations

import os


def cores() -> int:
    """Processor cores that this process may use. macOS does not restrict a process to some."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
