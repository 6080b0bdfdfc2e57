"""RLlib's PPO on CartPole, in several programs that train one policy.

Start a switch and a server (`olaf server`, `olaf switch`), then this program several times:
`python rllib_cartpole.py 127.0.0.1:5555 0`, `.. 1`, and so on: the number is the worker's seed.
"""

import sys

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from olaf.integrations.rllib import OlafPPOTorchLearner

address, seed = sys.argv[1], int(sys.argv[2])
goal = float(sys.argv[3]) if len(sys.argv) > 3 else 200.0

ray.init(include_dashboard=False, log_to_driver=False)  # RAY_ADDRESS names a running cluster
config = (
    PPOConfig()
    .environment("CartPole-v1")
    .env_runners(num_env_runners=0, num_envs_per_env_runner=8)
    .training(
        train_batch_size_per_learner=1024,
        minibatch_size=128,
        num_epochs=8,
        lr=1e-3,
        gamma=0.98,
        vf_loss_coeff=0.01,
    )
    .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64, 64]))
    .learners(
        num_learners=0,
        learner_class=OlafPPOTorchLearner,
        learner_config_dict={"olaf": {"address": address, "cluster": seed % 2}},
    )
    .debugging(seed=seed)
)
algorithm = config.build_algo()
mean, steps = 0.0, 0
while mean < goal and steps < 300_000:
    found = algorithm.train()["env_runners"]
    mean = found.get("episode_return_mean", 0.0)  # of the last 100 episodes
    steps = int(found["num_env_steps_sampled_lifetime"])
algorithm.stop()
print(f"mean reward {mean:.1f} after {steps} steps")
