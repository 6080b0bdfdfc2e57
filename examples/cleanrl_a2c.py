"""CleanRL-style A2C of CartPole, in each mode of the wrapped optimizer: sum, pipeline or push.

olaf switch --engines reduce --listen 127.0.0.1:5555   # pipeline: iswitch; push: a server, too
python cleanrl_a2c.py 127.0.0.1:5555 SEED sum               # two of them, with seeds 0 and 1
"""

import sys

import gymnasium as gym
import torch
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from torch import nn
from torch.distributions import Categorical

import olaf.torch

address, seed, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
updates = int((sys.argv[4:] or ["600"])[0])
ENVS, STEPS, GAMMA, LAMBDA = 8, 16, 0.98, 0.95
torch.manual_seed(seed)
actor = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
agent = nn.ModuleList([actor, critic])
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)
reset = gym.vector.AutoresetMode.SAME_STEP
makers = [lambda: gym.make("CartPole-v1")] * ENVS
envs = RecordEpisodeStatistics(gym.vector.SyncVectorEnv(makers, autoreset_mode=reset))
seen, steps = envs.reset(seed=seed * ENVS)[0], 0
if mode == "push":  # olaf, and the next lines
    network = olaf.connect(address, cluster=seed)
else:
    protocol = "iswitch" if mode == "pipeline" else "reduce"
    network = olaf.connect_sum(address, workers=2, protocol=protocol)
if mode == "sum":
    olaf.torch.broadcast_parameters(agent, network)
total = updates if mode == "pipeline" else None
optimizer = olaf.torch.DistributedOptimizer(optimizer, through=network, mode=mode, iterations=total)
while not optimizer.is_over if mode == "pipeline" else steps < updates:
    states, logs, rewards, ends = [], [], [], []
    for _ in range(STEPS):
        states.append(torch.as_tensor(seen))
        policy = Categorical(logits=actor(states[-1]))
        action = policy.sample()
        seen, reward, over, cut, _ = envs.step(action.numpy())
        logs.append(policy.log_prob(action))
        rewards.append(torch.as_tensor(reward).float())
        ends.append(torch.as_tensor(over | cut).float())
    values = critic(torch.stack([*states, torch.as_tensor(seen)]))[..., 0]
    known, gain, gains = values.detach(), 0.0, []
    for at in reversed(range(STEPS)):
        left = GAMMA * (1 - ends[at])
        gain = rewards[at] + left * (known[at + 1] + LAMBDA * gain) - known[at]
        gains.insert(0, gain)
    gain = torch.stack(gains)
    loss = -(torch.stack(logs) * (gain - gain.mean()) / (gain.std() + 1e-8)).mean()
    loss += 0.5 * (values[:-1] - gain - known[:-1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    optimizer.step()
    steps += 1
optimizer.close()
network.close()
mean, weights = sum(envs.return_queue) / 100, float(agent[0][0].weight.sum())
print(f"mean reward {mean:.1f} after {steps} steps, weights {weights}")
