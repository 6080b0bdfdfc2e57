"""The example `pipelined_rl.py` with its times and scores measured, for the tests.

Prints one JSON line at the end. ``--synchronous`` trains with the same gradients, step by step.
"""

import argparse
import json
import runpy
import time
from pathlib import Path

import gymnasium
import numpy as np

import olaf

EXAMPLE = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "pipelined_rl.py"))
gradient, play, step = EXAMPLE["gradient"], EXAMPLE["play"], EXAMPLE["step"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("switch")
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--iterations", type=int, default=80)
    parser.add_argument("--staleness", type=int, default=3)
    parser.add_argument("--synchronous", action="store_true", help="wait for all workers")
    parser.add_argument("--slower-ms", type=float, default=0, help="extra time of each gradient")
    args = parser.parse_args()
    env, weights = gymnasium.make("CartPole-v1"), np.zeros(5, np.float32)
    with olaf.connect_sum(
        args.switch, workers=args.workers, rank=args.rank, protocol="iswitch"
    ) as job:
        rng, began, longest = np.random.default_rng(job.rank), time.monotonic(), 0.0
        fates = {"sent": args.iterations, "stale": 0}
        if args.synchronous:
            for _ in range(args.iterations):
                time.sleep(args.slower_ms / 1000)
                own, _ = gradient(env, weights, rng)
                step(weights, job.all_reduce(own, "mean"))
        else:
            with job.pipeline(
                weights, step, iterations=args.iterations, staleness=args.staleness
            ) as training:
                asked = time.monotonic()
                for copy in training:
                    longest = max(longest, time.monotonic() - asked)  # LGC waited this long
                    time.sleep(args.slower_ms / 1000)
                    own, _ = gradient(env, copy, rng)
                    asked = time.monotonic()
                    training.commit(own)
            fates = dict(training.gradients)
        took = time.monotonic() - began
        score = float(
            np.mean([play(env, weights, np.random.default_rng(at))[1] for at in range(20)])
        )
        print(
            json.dumps(
                {
                    "rank": job.rank,
                    "score": score,
                    "seconds": round(took, 3),
                    "longest_wait_s": round(longest, 3),
                    "gradients": fates,
                    "weights": [float(weight).hex() for weight in weights],
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
