"""PPO on CartPole in one file and one process: `python ppo_before.py SEED`."""

import sys
import time
from collections import deque

import gymnasium as gym
import numpy as np
import torch
from torch import nn

SEED = int(sys.argv[1])
ENVS, STEPS, EPOCHS, MINIBATCH, TOTAL_STEPS = 4, 128, 4, 64, 200_000
GAMMA, LAMBDA, CLIP, ENTROPY, LEARNING_RATE, GOAL = 0.99, 0.95, 0.2, 0.01, 1e-3, 200.0


class Agent(nn.Module):
    def __init__(self, observations: int, actions: int) -> None:
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(observations, 64), nn.Tanh(), nn.Linear(64, actions))
        self.critic = nn.Sequential(nn.Linear(observations, 64), nn.Tanh(), nn.Linear(64, 1))

    def policy(self, states: torch.Tensor) -> torch.distributions.Categorical:
        return torch.distributions.Categorical(logits=self.actor(states))

    def value(self, states: torch.Tensor) -> torch.Tensor:
        return self.critic(states).squeeze(-1)


torch.manual_seed(SEED)
torch.set_num_threads(1)
same_step = gym.vector.AutoresetMode.SAME_STEP  # otherwise some rows are resets without an action
makers = [lambda: gym.make("CartPole-v1")] * ENVS
envs = gym.vector.SyncVectorEnv(makers, autoreset_mode=same_step)
agent = Agent(4, 2)
optimiser = torch.optim.Adam(agent.parameters(), lr=LEARNING_RATE)
episodes: deque[float] = deque(maxlen=100)
running, began, steps, mean = np.zeros(ENVS), time.perf_counter(), 0, 0.0
states, actions = torch.zeros(STEPS, ENVS, 4), torch.zeros(STEPS, ENVS)
rewards, overs, advantages = (torch.zeros(STEPS, ENVS) for _ in range(3))
state = torch.as_tensor(envs.reset(seed=SEED * ENVS)[0])  # no environment shares another's seed

while steps < TOTAL_STEPS and (len(episodes) < 100 or mean < GOAL):
    turn: list[float] = []
    for step in range(STEPS):  # play
        with torch.no_grad():
            action = agent.policy(state).sample()
        states[step], actions[step] = state, action
        observed, reward, ended, cut, info = envs.step(action.numpy())
        state, over = torch.as_tensor(observed), ended | cut
        rewards[step], overs[step] = torch.as_tensor(reward), torch.as_tensor(over)
        for env in np.flatnonzero(cut & ~ended):  # a time limit is no end: the rest has a value
            with torch.no_grad():
                rewards[step, env] += GAMMA * agent.value(torch.as_tensor(info["final_obs"][env]))
        running += reward
        turn.extend(running[over])
        running[over] = 0.0
    steps += ENVS * STEPS
    episodes.extend(turn)
    mean = float(np.mean(episodes)) if episodes else 0.0

    with torch.no_grad():  # what each action was worth
        values, following = agent.value(states), agent.value(state)
        chances = agent.policy(states).log_prob(actions)
        advantage = torch.zeros(ENVS)
        for step in reversed(range(STEPS)):
            alive = 1.0 - overs[step]
            error = rewards[step] + GAMMA * alive * following - values[step]
            advantage = error + GAMMA * LAMBDA * alive * advantage
            advantages[step], following = advantage, values[step]
    batch = [x.flatten(0, 1) for x in (states, actions, chances, advantages, advantages + values)]

    for _ in range(EPOCHS):  # learn
        for some in torch.randperm(ENVS * STEPS).split(MINIBATCH):
            seen, done, chance, gain, worth = (x[some] for x in batch)
            policy = agent.policy(seen)
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            ratio = (policy.log_prob(done) - chance).exp()
            surrogate = torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            missed = (agent.value(seen) - worth).pow(2).mean()
            loss = 0.5 * missed - surrogate - ENTROPY * policy.entropy().mean()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimiser.step()

    seconds, ended_now = time.perf_counter() - began, " ".join(f"{reward:.0f}" for reward in turn)
    print(f"{seconds:.2f} s  {steps} steps  reward {mean:.1f}  episodes {ended_now}", flush=True)

envs.close()
