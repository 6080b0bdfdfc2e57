"""Stable-Baselines3: programs that train one model, each in environments of its own.

python examples/sb3_distributed.py --algorithm SAC --workers 4   # a switch and four processes
olaf switch --engines reduce --listen 127.0.0.1:5555             # or the switch in one terminal,
python examples/sb3_distributed.py --workers 2 --switch 127.0.0.1:5555  # and this in two
"""

import argparse
import json
import subprocess
import sys

import stable_baselines3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import safe_mean

import olaf
from olaf.integrations.sb3 import distribute

ENVIRONMENTS = {"PPO": "CartPole-v1", "A2C": "CartPole-v1", "DQN": "CartPole-v1"}
ENVIRONMENTS |= dict.fromkeys(("DDPG", "TD3", "SAC"), "Pendulum-v1")


def train(job: olaf.SumConnection, algorithm: str, steps: int) -> None:
    environments = make_vec_env(ENVIRONMENTS[algorithm], n_envs=4)
    kind = getattr(stable_baselines3, algorithm)
    model = kind("MlpPolicy", environments, seed=1, device="cpu")
    distribute(model, through=job)
    model.learn(steps)
    reward = safe_mean([episode["r"] for episode in model.ep_info_buffer])
    weights = sum(float(parameter.detach().sum()) for parameter in model.policy.parameters())
    print(f"rank {job.rank}: mean reward {reward:.1f}, {steps} steps, sum of weights {weights}")


def start_all(workers: int, more: list[str]) -> int:
    """A switch and all workers as processes of this machine; the worst exit code."""
    argv = [sys.executable, "-m", "olaf", "switch", "--engines", "reduce", "--json"]
    argv += ["--listen", "127.0.0.1:0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as switch:
        try:
            assert switch.stdout is not None
            address = json.loads(switch.stdout.readline())["address"]
            own = [sys.executable, __file__, *more, "--switch", address]
            started = [subprocess.Popen(own) for _ in range(workers)]
            return max(abs(process.wait()) for process in started)
        finally:
            switch.terminate()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--algorithm", choices=list(ENVIRONMENTS), default="PPO")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20_000, help="of each worker")
    parser.add_argument("--switch", help="host:port; without it everything is started here")
    given = parser.parse_args()
    if given.switch is None:
        return start_all(given.workers, sys.argv[1:])
    with olaf.connect_sum(given.switch, workers=given.workers) as job:
        train(job, given.algorithm, given.steps)
    return 0


if __name__ == "__main__":
    sys.exit(main())
