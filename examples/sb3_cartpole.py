"""Stable-Baselines3's PPO on CartPole, in several processes that train one policy.

Start a switch and a server (`olaf server`, `olaf switch`), then this program several times:
`python sb3_cartpole.py 127.0.0.1:5555 0`, `.. 1`, and so on: the number is the worker's seed.
"""

import sys

from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.env_util import make_vec_env

from olaf.integrations.sb3 import OlafCallback

address, seed = sys.argv[1], int(sys.argv[2])
goal = float(sys.argv[3]) if len(sys.argv) > 3 else 200.0


class UntilSolved(BaseCallback):
    """Stop at the goal: mean reward of the last 100 training episodes."""

    def _on_step(self) -> bool:
        return len(self.model.ep_info_buffer) < 100 or olaf.mean_reward() < goal


olaf = OlafCallback(f"udp://{address}", cluster=seed % 2)
model = PPO(
    "MlpPolicy",
    make_vec_env("CartPole-v1", n_envs=8),  # each with a Monitor, which counts rewards
    n_steps=32,
    batch_size=256,
    n_epochs=20,
    gae_lambda=0.8,
    gamma=0.98,
    learning_rate=1e-3,
    seed=8 * seed,  # environment i gets this + i, which no other worker's has
    device="cpu",
)
model.learn(150_000, callback=CallbackList([olaf, UntilSolved()]))
model.get_env().close()
print(f"mean reward {olaf.mean_reward():.1f} after {model.num_timesteps} steps")
