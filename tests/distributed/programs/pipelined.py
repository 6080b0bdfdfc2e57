"""A worker of pipelined training: SWITCH WORKERS RANK ITERATIONS.

It goes on after the death of another worker.

Prints each iteration at which it began, and at the end the weights.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from numpy.typing import NDArray

import olaf

Array = NDArray[np.float32]


def main() -> None:
    switch, workers, rank, iterations = sys.argv[1], *map(int, sys.argv[2:5])
    rng = np.random.default_rng(rank)
    weights, moments = np.full(500, rank + 1, np.float32), np.zeros(500, np.float32)
    errors = []

    def step(weights: Array, mean: Array) -> None:
        moments[:] = 0.5 * moments + 0.5 * mean
        weights -= 0.01 * moments

    done = 0
    with olaf.connect_sum(switch, workers=workers, rank=rank, protocol="iswitch") as job:
        while done < iterations:
            training = job.pipeline(
                weights, step, iterations=iterations, iteration=done, state=[moments]
            )
            say(began=training.began)
            with training:
                try:
                    for copy in training:
                        time.sleep(0.002)
                        noise = rng.normal(size=500).astype(np.float32)
                        training.commit(copy + np.float32(0.1) * noise)
                except olaf.SumError as error:
                    errors.append([error.reason, error.culprit])
            done = training.iteration
        bits = [weights.tobytes().hex(), moments.tobytes().hex()]
        say(ended=done, errors=errors, bits=bits, largest=float(abs(weights).max()))


def say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    main()
