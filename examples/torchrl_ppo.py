"""TorchRL's PPO of CartPole with a wrapped optimizer; olaf's lines are marked so.

olaf switch --engines reduce --listen 127.0.0.1:5555
python torchrl_ppo.py 127.0.0.1:5555 SEED                # two of them, with seeds 0 and 1
"""

import sys

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import GymEnv, RewardSum, StepCounter, TransformedEnv
from torchrl.modules import OneHotCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import olaf
import olaf.torch

address, seed = sys.argv[1], int(sys.argv[2])
FRAMES, ROLLOUTS, EPOCHS, MINIBATCH = 1024, int((sys.argv[3:] or ["20"])[0]), 6, 128
torch.manual_seed(seed)
env = TransformedEnv(GymEnv("CartPole-v1"))
env.append_transform(RewardSum())
env.append_transform(StepCounter())
env.set_seed(seed)


def layers(outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, outputs))


policy = TensorDictModule(layers(2), in_keys=["observation"], out_keys=["logits"])
actor = ProbabilisticActor(
    policy, in_keys=["logits"], distribution_class=OneHotCategorical, return_log_prob=True
)
critic = ValueOperator(layers(1), in_keys=["observation"])
advantage = GAE(gamma=0.98, lmbda=0.9, value_network=critic)
loss_of = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
optimizer = torch.optim.Adam(loss_of.parameters(), lr=1e-3)
job = olaf.connect_sum(address, workers=2)  # olaf
olaf.torch.broadcast_parameters(loss_of, job)  # olaf
optimizer = olaf.torch.DistributedOptimizer(optimizer, through=job, overlap=False)  # olaf
collector = Collector(
    env, actor, frames_per_batch=FRAMES, total_frames=FRAMES * ROLLOUTS, device="cpu"
)
for rollout in collector:
    for _ in range(EPOCHS):
        with torch.no_grad():
            advantage(rollout)
        for rows in torch.randperm(FRAMES).split(MINIBATCH):
            losses = loss_of(rollout[rows])
            optimizer.zero_grad()
            sum(losses[f"loss_{name}"] for name in ("objective", "critic", "entropy")).backward()
            optimizer.step()
    ended = rollout["next", "episode_reward"][rollout["next", "done"]]
collector.shutdown()
job.close()  # olaf
print(f"mean reward {ended.mean():.1f} after {FRAMES * ROLLOUTS} steps")
