"""A worker in a process of its own: reads orders, one JSON object per line, and answers each."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

import olaf


def main() -> None:
    """Connect, say rank and workers, and obey."""
    address, options = sys.argv[1], json.loads(sys.argv[2])
    connection = olaf.connect_sum(address, **options)
    say(rank=connection.rank, workers=connection.workers)
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "close":
            connection.close()
            say(closed=True)
            return
        began = time.monotonic()
        try:
            say(**reduced(connection, order), took_s=time.monotonic() - began)
        except (olaf.SumError, TimeoutError, ValueError) as error:
            say(
                error=str(error),
                kind=type(error).__name__,
                reason=getattr(error, "reason", None),
                culprit=getattr(error, "culprit", None),
                took_s=time.monotonic() - began,
            )


def reduced(connection: olaf.SumConnection, order: dict[str, Any]) -> dict[str, Any]:
    """Do one operation; the first and the last value, and how many values differ from the first."""
    array = np.full(order["size"], order.get("value", connection.rank + 1), np.float32)
    timeout_s = order.get("timeout_s")
    if order["do"] == "broadcast":
        connection.broadcast(array, order["root"], timeout_s=timeout_s)
    elif order.get("elsewhere"):
        # The same call from another line.
        connection.all_reduce(array, order["do"], timeout_s=timeout_s)
    else:
        connection.all_reduce(array, order["do"], timeout_s=timeout_s)
    return {
        "value": float(array[0]),
        "differ": int((array != array[0]).sum()),
        "rank": connection.rank,
        "workers": connection.workers,
    }


def say(**fields: Any) -> None:
    """Print one answer."""
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    main()
