"""Steps of each worker until a model of Stable-Baselines3 reaches a mark: one worker, and several.

    python benchmarks/sb3_steps.py --algorithm PPO [--workers 1 4] [--seeds 5]

Each training is a switch and processes of this machine, with `olaf.integrations.sb3.distribute`.
The mark is a mean reward over the last episodes of all workers. Steps do not depend on how busy the
machine is; seconds do, and are not shown.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import stable_baselines3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

import olaf
from olaf.integrations.sb3 import distribute

# Environment, mark, most steps of a worker, arguments of the model.
TASKS: dict[str, tuple[str, float, int, dict[str, Any]]] = {
    "PPO": ("CartPole-v1", 300.0, 200_000, {"n_steps": 128, "batch_size": 128}),
    "A2C": ("CartPole-v1", 300.0, 300_000, {}),
    "DQN": (
        "CartPole-v1",
        150.0,
        200_000,
        {
            "learning_rate": 2.3e-3,
            "batch_size": 64,
            "learning_starts": 1000,
            "gamma": 0.99,
            "target_update_interval": 10,
            "train_freq": 256,
            "gradient_steps": 128,
            "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04,
            "policy_kwargs": {"net_arch": [256, 256]},
        },
    ),
    "SAC": ("Pendulum-v1", -250.0, 30_000, {"learning_rate": 1e-3}),
}
ENVS = {"PPO": 4, "A2C": 4, "DQN": 1, "SAC": 1}
EPISODES = 20
EVERY = 512
"""Steps between two looks at the mark, of all workers together."""


class UntilMark(BaseCallback):  # type: ignore[misc]
    """Stops all workers at the same step, when their mean reward is at the mark."""

    def __init__(self, job: olaf.SumConnection, mark: float) -> None:
        super().__init__()
        self._job, self._mark, self._next = job, mark, EVERY
        self.reached = False

    def _on_step(self) -> bool:
        if self.num_timesteps < self._next:
            return True
        self._next += EVERY
        rewards = [episode["r"] for episode in self.model.ep_info_buffer or ()][-EPISODES:]
        sums = np.array([sum(rewards), len(rewards)], np.float32)
        self._job.all_reduce(sums)
        self.reached = bool(sums[1] >= EPISODES and sums[0] / sums[1] >= self._mark)
        return not self.reached


def work(given: argparse.Namespace) -> None:
    """One worker; rank 0 prints how far it came."""
    name, mark, most, options = TASKS[given.algorithm]
    with olaf.connect_sum(given.switch, workers=given.workers[0], timeout_s=120) as job:
        environments = make_vec_env(name, n_envs=ENVS[given.algorithm])
        kind = getattr(stable_baselines3, given.algorithm)
        model = kind("MlpPolicy", environments, seed=1000 * given.seed, device="cpu", **options)
        distribute(model, through=job)
        until = UntilMark(job, mark)
        model.learn(most, callback=until)
        if job.rank == 0:
            print(json.dumps({"steps": model.num_timesteps, "reached": until.reached}), flush=True)


def train(algorithm: str, workers: int, seed: int) -> dict[str, Any]:
    """A switch and its workers; what rank 0 said."""
    argv = [sys.executable, "-m", "olaf", "switch", "--engines", "reduce", "--json"]
    argv += ["--listen", "127.0.0.1:0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as switch:
        try:
            assert switch.stdout is not None
            address = json.loads(switch.stdout.readline())["address"]
            own = [sys.executable, str(Path(__file__)), "--switch", address]
            own += ["--algorithm", algorithm, "--workers", str(workers), "--seed", str(seed)]
            environment = os.environ | {"OMP_NUM_THREADS": "1"}
            started = [
                subprocess.Popen(own, stdout=subprocess.PIPE, text=True, env=environment)
                for _ in range(workers)
            ]
            said = "".join(process.communicate()[0] for process in started)
        finally:
            switch.terminate()
    found: dict[str, Any] = json.loads(said)
    return found


def main() -> None:
    """All seeds with each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithm", choices=list(TASKS), default="PPO")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--switch", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.switch:
        work(given)
        return
    name, mark, most, _ = TASKS[given.algorithm]
    print(f"{given.algorithm} on {name}: steps of each worker to a mean reward of {mark:g}")
    for workers in given.workers:
        ended = []
        for seed in range(given.seeds):
            ended.append(train(given.algorithm, workers, seed))
            print(f"  {workers} workers, seed {seed}: {ended[-1]}", flush=True)
        steps = [one["steps"] for one in ended]
        print(
            f"{workers} workers: mean {statistics.fmean(steps):.0f} steps "
            f"({min(steps)} .. {max(steps)}), "
            f"{sum(one['reached'] for one in ended)} of {len(ended)} within {most}"
        )


if __name__ == "__main__":
    main()
