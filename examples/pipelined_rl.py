"""REINFORCE on CartPole, trained asynchronously without a server (iSwitch's Algorithm 1).

olaf switch --engines iswitch --listen 127.0.0.1:5555
python examples/pipelined_rl.py 127.0.0.1:5555 --workers 2      # start this twice
"""

import argparse
import json
import time

import gymnasium
import numpy as np
from numpy.typing import NDArray

import olaf

Array = NDArray[np.float32]


def play(env: gymnasium.Env, weights: Array, rng: np.random.Generator) -> tuple[Array, int]:
    """One episode: for each step the gradient of the action's log-probability; and the steps."""
    state, _ = env.reset(seed=int(rng.integers(2**31)))
    steps, is_over = [], False
    while not is_over:
        features = np.append(state, 1.0)
        chance = 1 / (1 + np.exp(-features @ weights))
        action = int(rng.random() < chance)
        steps.append((action - chance) * features)
        state, _, failed, cut, _ = env.step(action)
        is_over = failed or cut
    return np.array(steps, np.float32), len(steps)


def gradient(env: gymnasium.Env, weights: Array, rng: np.random.Generator) -> tuple[Array, float]:
    """The descent direction of four episodes, and their mean score."""
    episodes = [play(env, weights, rng) for _ in range(4)]
    left = np.concatenate([np.arange(steps, 0, -1.0) for _, steps in episodes])
    returns = (1 - 0.99**left) / (1 - 0.99)
    advantage = (returns - returns.mean()) / (returns.std() + 1e-8)
    logs = np.concatenate([log for log, _ in episodes])
    mean = -(logs * advantage[:, None]).mean(0)
    return mean.astype(np.float32), float(np.mean([steps for _, steps in episodes]))


def step(weights: Array, mean: Array) -> None:
    """LWU: one step of descent."""
    weights -= 8 * mean


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
