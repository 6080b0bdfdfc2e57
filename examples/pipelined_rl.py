"""REINFORCE on CartPole, trained asynchronously without a server (iSwitch's Algorithm 1).

olaf switch --engines iswitch --listen 127.0.0.1:5555
python examples/pipelined_rl.py 127.0.0.1:5555 2      # start this twice
"""

import sys

import gymnasium
import numpy as np
from numpy.typing import NDArray

import olaf

Array = NDArray[np.float32]


def play(env: gymnasium.Env, weights: Array, rng: np.random.Generator) -> tuple[Array, int]:
    """One episode: for each step the gradient of the action's log-probability; and the steps."""
    (state, _), steps, is_over = env.reset(seed=int(rng.integers(2**31))), [], False
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
    descent = -(np.concatenate([log for log, _ in episodes]) * advantage[:, None]).mean(0)
    return descent.astype(np.float32), float(np.mean([steps for _, steps in episodes]))


def step(weights: Array, mean: Array) -> None:
    """LWU: one step of descent."""
    weights -= 8 * mean


def main() -> None:
    env, weights = gymnasium.make("CartPole-v1"), np.zeros(5, np.float32)
    with olaf.connect_sum(sys.argv[1], workers=int(sys.argv[2]), protocol="iswitch") as job:
        rng = np.random.default_rng(job.rank)
        with job.pipeline(weights, step, iterations=80, staleness=3) as training:
            for copy in training:
                own, score = gradient(env, copy, rng)
                training.commit(own)
                print(f"iteration {training.iteration}: four episodes of {score:.0f} steps")
        print(weights)  # the same at all workers
    env.close()


if __name__ == "__main__":
    main()
