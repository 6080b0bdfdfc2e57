"""Workers fit a line together: each has its own data, and they share their gradients.

olaf switch --engines reduce --listen 127.0.0.1:5555
python examples/all_reduce.py 127.0.0.1:5555 2      # start this twice
"""

import sys

import numpy as np

import olaf


def main(switch: str, workers: int) -> None:
    """Descend along the mean of all workers' gradients."""
    with olaf.connect_sum(switch, workers=workers) as job:
        random = np.random.default_rng(job.rank)
        x = random.normal(size=(200, 2)).astype(np.float32)
        y = x @ np.array([3, -1], np.float32) + np.float32(0.5)
        weights = random.normal(size=3).astype(np.float32)
        job.broadcast(weights)  # all start from the weights of rank 0
        for _ in range(200):
            error = x @ weights[:2] + weights[2] - y
            gradient = np.append(x.T @ error, error.sum()).astype(np.float32) / len(x)
            job.all_reduce(gradient, "mean")
            weights -= 0.1 * gradient
        print(f"worker {job.rank} of {job.workers}: {weights.round(3)}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
