"""REINFORCE on CartPole through Olaf: run several, `python cartpole.py 127.0.0.1:5555 SEED`."""

import sys

import gymnasium
import numpy as np

import olaf

address, seed = sys.argv[1], int(sys.argv[2])
env, rng, mean = gymnasium.make("CartPole-v1"), np.random.default_rng(seed), 0.0
weights = np.zeros((4, 2), np.float32)  # a linear policy
with olaf.connect(f"udp://{address}", job=1, cluster=seed % 2) as switch:
    switch.join(weights)  # they now hold the job's model
    for episode in range(300):
        state, _ = env.reset(seed=None if episode else seed)
        reward, done, update = 0.0, False, weights * 0
        while not done:
            chance = np.exp(state @ weights) / np.exp(state @ weights).sum()
            action = rng.choice(2, p=chance)
            update += np.outer(state, (np.arange(2) == action) - chance)
            state, gain, over, cut, _ = env.step(action)
            reward, done = reward + float(gain), over or cut
        mean += 0.05 * (reward - mean)
        switch.push(0.001 * update * (reward - mean), reward=reward)  # a step uphill; never waits
        switch.pull(into=weights)  # the new model, if one has come
    switch.flush()
env.close()
print(f"mean reward {mean:.1f}, model version {switch.version}")
