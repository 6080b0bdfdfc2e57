"""One host of a job as a process (MINA §IV-B): it plays the job's all-reduces in real time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from olaf import _olaf

SLICE_S = 0.02


def play(config: str, say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Play all steps; return the statistics.

    say: receives the address that the host serves its metrics on, where it does.

    Raises UnreachableError with the name of the host that did not answer.
    """
    host = _olaf.SharingHost(config)
    if host.metrics_address is not None:
        say({"event": "playing", "metrics": f"http://{host.metrics_address}"})
    while not host.is_done():
        time.sleep(SLICE_S)  # its threads do the work; this thread handles Ctrl-C
    said: dict[str, Any] = json.loads(host.finish())
    return said
