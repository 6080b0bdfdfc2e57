"""CleanRL-style PPO of CartPole; Olaf adds the lines marked so. Start `olaf server`, `olaf switch`,
then several of `python cleanrl_ppo.py 127.0.0.1:5555 SEED [cpu|cuda]`: they train one agent."""

import sys

import gymnasium as gym
import torch
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from torch import nn
from torch.distributions import Categorical

import olaf

address, seed, device = sys.argv[1], int(sys.argv[2]), (sys.argv[3:] or ["cpu"])[0]
ENVS, STEPS, EPOCHS, MINIBATCH, GAMMA, LAMBDA, GOAL = 8, 64, 4, 128, 0.98, 0.9, 200.0
torch.manual_seed(seed)
actor = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
agent = nn.ModuleList([actor, critic]).to(device)
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3, eps=1e-5)
reset = gym.vector.AutoresetMode.SAME_STEP
makers = [lambda: gym.make("CartPole-v1")] * ENVS
envs = RecordEpisodeStatistics(gym.vector.SyncVectorEnv(makers, autoreset_mode=reset))
seen, mean, steps_taken = envs.reset(seed=seed * ENVS)[0], 0.0, 0  # seeds that no worker shares
switch = olaf.connect(address, cluster=seed % 2)  # olaf
switch.join(agent)  # olaf: the agent now holds the job's model
while mean < GOAL and steps_taken < 300_000:
    before, steps = olaf.snapshot(agent), []  # olaf
    for _ in range(STEPS):
        state = torch.as_tensor(seen, device=device)
        with torch.no_grad():
            policy, value = Categorical(logits=actor(state)), critic(state)[:, 0]
        action = policy.sample()
        seen, gained, over, cut, info = envs.step(action.cpu().numpy())
        reward, end = (torch.as_tensor(a, device=device).float() for a in (gained, over | cut))
        for env in (cut & ~over).nonzero()[0]:  # a time limit is no end: the rest has a value
            last = torch.as_tensor(info["final_obs"][env], device=device)
            reward[env] += GAMMA * critic(last)[0].detach()
        steps.append((state, action, policy.log_prob(action), value, reward, end))
    with torch.no_grad():
        after, gain, gains = critic(torch.as_tensor(seen, device=device))[:, 0], 0.0, []
    for _, _, _, value, reward, end in reversed(steps):
        gain = reward + GAMMA * (1 - end) * (after + LAMBDA * gain) - value
        after, gains = value, [gain, *gains]
    data = [torch.cat(a) for a in (*zip(*[step[:4] for step in steps], strict=True), gains)]
    for rows in (r for _ in range(EPOCHS) for r in torch.randperm(ENVS * STEPS).split(MINIBATCH)):
        state, action, log, value, gain = (a[rows.to(device)] for a in data)
        policy = Categorical(logits=actor(state))
        scaled = (gain - gain.mean()) / (gain.std() + 1e-8)
        ratio = (policy.log_prob(action) - log).exp()
        loss = -torch.min(ratio * scaled, ratio.clamp(0.8, 1.2) * scaled).mean()
        loss += 0.5 * (critic(state)[:, 0] - gain - value).square().mean()
        optimizer.zero_grad()
        (loss - 0.01 * policy.entropy().mean()).backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
    steps_taken += ENVS * STEPS
    mean = sum(envs.return_queue) / 100  # too low until 100 have ended
    switch.push_delta(before, agent, reward=mean)  # olaf
    switch.wait(0.05)  # olaf: a moment for the answer
    switch.pull(into=agent)  # olaf
envs.close()
switch.close()  # olaf
print(f"mean reward {mean:.1f} after {steps_taken} steps")
