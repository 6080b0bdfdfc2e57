"""A worker in a process of its own: many operations, each checked, while its switch may die."""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

import olaf

OPS = ("sum", "mean", "exact", "min", "max", "broadcast", "int")


def main() -> None:
    """Do the operations; print each number, and at the end what came of them."""
    switch, order = sys.argv[1], json.loads(sys.argv[2])
    steps, seed, at_once = order["steps"], order["seed"], order["at_once"]
    digests: dict[int, str] = {}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with olaf.connect_sum(switch, **order["options"]) as connection:
            rank, workers = connection.rank, connection.workers
            running: deque[tuple[int, olaf.SumFuture[Any]]] = deque()

            def end() -> None:
                step, future = running.popleft()
                array = future.wait()
                check(array, seed, step, workers)
                digests[step] = hashlib.sha256(array.tobytes()).hexdigest()
                # The program goes on with its array; nobody may need it any more.
                array[:] = -1
                say(step=step)

            for step in range(steps):
                if step == order["waits_at"]:
                    # The switch dies before the last operations, however slow this machine is.
                    sys.stdin.readline()
                array = lanes(seed, step, rank, size_of(order, step))
                running.append((step, begin(connection, step, array)))
                if len(running) == at_once:
                    end()
            while running:
                end()
            stats = connection.stats()
    texts = [str(one.message) for one in warned if one.category is RuntimeWarning]
    say(digests=list(digests.values()), fall_back=stats["fall_back"], warnings=texts)


def size_of(order: dict[str, Any], step: int) -> int:
    """Lanes of an operation, the same at all workers."""
    generator = np.random.default_rng((order["seed"], step))
    return int(generator.integers(1, order["largest"] + 1))


def lanes(seed: int, step: int, rank: int, size: int) -> NDArray[Any]:
    """A worker's lanes, which depend on everything."""
    generator = np.random.default_rng((seed, step, rank))
    if OPS[step % len(OPS)] == "int":
        return generator.integers(-(1 << 40), 1 << 40, size)
    return generator.standard_normal(size, np.float32)


def begin(
    connection: olaf.SumConnection, step: int, array: NDArray[Any]
) -> olaf.SumFuture[NDArray[Any]]:
    """Begin one operation."""
    op: Any = OPS[step % len(OPS)]
    if op == "broadcast":
        return connection.broadcast_async(array, step % connection.workers)
    known = {"exact": "sum", "int": "sum"}.get(op, op)
    return connection.all_reduce_async(array, known, exact=op == "exact")


def check(array: NDArray[Any], seed: int, step: int, workers: int) -> None:
    """Compare a result with that of all workers' lanes."""
    op = OPS[step % len(OPS)]
    each = np.array([lanes(seed, step, rank, array.size) for rank in range(workers)])
    if op == "broadcast":
        np.testing.assert_array_equal(array, each[step % workers])
    elif op in ("min", "max"):
        np.testing.assert_array_equal(array, getattr(each, op)(axis=0))
    elif op == "int":
        np.testing.assert_array_equal(array, each.sum(axis=0))
    else:
        whole = each.astype(np.float64)
        expected = whole.mean(axis=0) if op == "mean" else whole.sum(axis=0)
        np.testing.assert_allclose(array, expected, rtol=1e-4, atol=1e-4)


def say(**fields: Any) -> None:
    """Print one line."""
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    main()
