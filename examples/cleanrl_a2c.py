"""CleanRL-style A2C of CartPole, in each mode of the wrapped optimizer: push, sum or pipeline.

olaf switch --engines reduce --listen 127.0.0.1:5555   # pipeline: iswitch; push: a server, too
python cleanrl_a2c.py 127.0.0.1:5555 SEED sum          # two of them, with seeds 0 and 1
"""

import sys

import gymnasium as gym
import torch
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from torch import nn
from torch.distributions import Categorical

import olaf.torch

address, seed, mode = sys.argv[1], int(sys.argv[2]), (sys.argv[3:] or ["push"])[0]
total = int((sys.argv[4:] or [200_000])[0])
ENVS, STEPS, GAMMA, LAMBDA = 32, 16, 0.98, 0.95
torch.manual_seed(seed)
actor = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
agent = nn.ModuleList([actor, critic])
optimizer = torch.optim.Adam(agent.parameters(), lr=5e-3)
reset = gym.vector.AutoresetMode.SAME_STEP
makers = [lambda: gym.make("CartPole-v1")] * ENVS
envs = RecordEpisodeStatistics(gym.vector.SyncVectorEnv(makers, autoreset_mode=reset))
seen, taken = envs.reset(seed=seed * ENVS)[0], 0
if mode == "push":  # olaf, and the next lines
    network = olaf.connect(address, cluster=seed)
else:
    protocol = "iswitch" if mode == "pipeline" else "reduce"
    network = olaf.connect_sum(address, workers=2, protocol=protocol)
    olaf.torch.broadcast_parameters(agent, network)
options = {"iterations": total // (ENVS * STEPS)} if mode == "pipeline" else {}
optimizer = olaf.torch.DistributedOptimizer(optimizer, through=network, mode=mode, **options)
while not optimizer.is_over if mode == "pipeline" else taken < total:
    states, logs, rewards, overs = [], [], [], []
    for _ in range(STEPS):
        states.append(torch.as_tensor(seen))
        policy = Categorical(logits=actor(states[-1]))
        action = policy.sample()
        seen, gained, over, cut, info = envs.step(action.numpy())
        logs.append(policy.log_prob(action))
        rewards.append(torch.as_tensor(gained).float())
        overs.append(torch.as_tensor(over | cut).float())
        for env in (cut & ~over).nonzero()[0]:  # a time limit is no end: the rest has a value
            left = torch.as_tensor(info["final_obs"][env])
            rewards[-1][env] += GAMMA * critic(left)[0].detach()
    values = critic(torch.stack([*states, torch.as_tensor(seen)]))[..., 0]
    rewards, overs, known, gain, gains = *map(torch.stack, (rewards, overs)), values.detach(), 0, []
    for at in reversed(range(STEPS)):
        gain = rewards[at] + GAMMA * (1 - overs[at]) * (known[at + 1] + LAMBDA * gain) - known[at]
        gains.insert(0, gain)
    gains = torch.stack(gains)
    loss = -(torch.stack(logs) * (gains - gains.mean()) / (gains.std() + 1e-8)).mean()
    optimizer.zero_grad()
    (loss + 0.5 * (values[:-1] - gains - known[:-1]).square().mean()).backward()
    optimizer.step()
    taken += ENVS * STEPS
optimizer.close()
network.close()
envs.close()
mean, weights = sum(envs.return_queue) / 100, agent[0][0].weight.sum().item()
print(f"mean reward {mean:.1f} after {taken} steps, weights {weights}")
