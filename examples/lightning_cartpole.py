"""Policy gradients on CartPole as a Lightning module. Start `olaf server`, `olaf switch`, then
several of `python lightning_cartpole.py 127.0.0.1:5555 SEED`: they train one module."""

import sys
from collections import deque

import gymnasium
import lightning
import torch
from torch import nn
from torch.distributions import Categorical

from olaf.integrations.lightning import OlafCallback

address, seed = sys.argv[1], int(sys.argv[2])
EPISODES, EPOCHS, GAMMA, GOAL = 8, 8, 0.98, 200.0
env, rewards = gymnasium.make("CartPole-v1"), deque(maxlen=100)


class Agent(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))

    def train_dataloader(self):
        while True:  # some episodes of the policy as it is now, then some epochs on them
            states, actions, logs, gains = [], [], [], []
            for _ in range(EPISODES):
                state, done, length = env.reset(seed=None if rewards else seed)[0], False, 0
                while not done:
                    states.append(torch.as_tensor(state))
                    choice = Categorical(logits=self.policy(states[-1]).detach())
                    actions.append(choice.sample())
                    logs.append(choice.log_prob(actions[-1]))
                    state, _, over, cut, _ = env.step(actions[-1].item())
                    done, length = over or cut, length + 1
                rewards.append(length)
                # No critic says what a time limit cut off: it counts as the end.
                gains += [(1 - GAMMA**left) / (1 - GAMMA) for left in range(length, 0, -1)]
            batch = [torch.stack(each) for each in (states, actions, logs)]
            yield from [(*batch, torch.tensor(gains))] * EPOCHS

    def training_step(self, batch):
        states, actions, logs, gains = batch
        ratio = (Categorical(logits=self.policy(states)).log_prob(actions) - logs).exp()
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        self.log("reward", mean := sum(rewards) / 100)  # too low until 100 have ended
        self.trainer.should_stop = mean >= GOAL
        return -torch.min(ratio * gains, ratio.clamp(0.8, 1.2) * gains).mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


lightning.seed_everything(seed, verbose=False)
olaf = OlafCallback(address, cluster=seed % 2, every=EPOCHS, reward="reward")
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
trainer = lightning.Trainer(accelerator="cpu", max_steps=4000, callbacks=[olaf], **quiet)
trainer.fit(Agent())
env.close()
print(f"mean reward {sum(rewards) / 100:.1f} after {trainer.global_step} optimiser steps")
