"""A worker that forks children, which use its connection and exit normally.

    python forking_worker.py SWITCH RANK [SECOND_SWITCH]

Prints what the children were told, and the sums before and after them, as a line of JSON.
"""

import json
import os
import sys
from typing import Any

import numpy as np

import olaf


def told(connection: olaf.SumConnection, open_sum: "olaf.SumFuture[Any]") -> list[str]:
    """What a use of the connection says here."""
    said = []
    for use in (
        lambda: connection.all_reduce(np.ones(3, np.float32)),
        lambda: connection.broadcast_async(np.ones(3, np.float32)),
        lambda: connection.rank,
        connection.stats,
        open_sum.done,
        open_sum.wait,
    ):
        try:
            said.append(f"nothing: {use()}")
        except RuntimeError as error:
            said.append(str(error))
    return said


def total(connection: olaf.SumConnection) -> float:
    """The first value of a sum of 1 and 2."""
    return float(connection.all_reduce(np.full(3, connection.rank + 1, np.float32))[0])


def main(switch: str, rank: int, second: str | None) -> None:
    reading, writing = os.pipe()
    with olaf.connect_sum(
        switch, workers=2, rank=rank, fall_back=second, operation_timeout_ms=20_000
    ) as connection:
        before = total(connection)
        # The other worker begins it when it has forked, too: it is open while this one forks.
        open_sum = connection.all_reduce_async(np.ones(1_000_000, np.float32))
        child = os.fork()
        if child == 0:
            os.write(writing, json.dumps(told(connection, open_sum)).encode())
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        summed = float(np.asarray(open_sum.wait())[0])
        sums = [before, summed, total(connection)]
    os.close(writing)
    with os.fdopen(reading) as answers:
        said = json.loads(answers.read())
    print(json.dumps({"sums": sums, "said": said, "status": status, "child": child}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
