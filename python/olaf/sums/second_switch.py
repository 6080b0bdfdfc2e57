"""Says once that a job of sums has moved to its second switch.

The core decides and does everything else (`crates/olaf-host/src/collective/fall_back`).
docs/design/029-second-switch.md has the protocol and its cost.
"""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olaf._olaf import SumClient


def warn_of_move(client: SumClient) -> threading.Thread:
    """Warn when the job has moved, in a thread that ends then, or with the connection."""
    thread = threading.Thread(target=_warn, args=(client,), name="olaf-move", daemon=True)
    thread.start()
    return thread


def _warn(client: SumClient) -> None:
    text = client.next_move()
    if text is None:
        return
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        # A program that makes warnings errors must not lose its job here.
        warnings.showwarning(text, RuntimeWarning, __file__, 0)
