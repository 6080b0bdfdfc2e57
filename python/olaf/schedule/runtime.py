"""One host of a job as a process (MINA §IV-B): it plays the job's all-reduces in real time."""

from __future__ import annotations

import json
import time
from typing import Any

from olaf import _olaf

SLICE_S = 0.02


def play(config: str) -> dict[str, Any]:
    """Play all steps; return the statistics.

    Raises UnreachableError with the name of the host that did not answer.
    """
    host = _olaf.SharingHost(config)
    while not host.is_done():
        time.sleep(SLICE_S)  # its threads do the work; this thread handles Ctrl-C
    said: dict[str, Any] = json.loads(host.finish())
    return said
