"""Distributions of actions: sampling, and logarithms of probabilities."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from olaf.rl.actor_critic import Real

HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))


def draw(rng: np.random.Generator, shape: tuple[int, ...], continuous: bool) -> NDArray[np.float32]:
    """Noise for a rollout's actions: normal, or Gumbel, whose argmax with logits is a sample."""
    if continuous:
        return rng.standard_normal(shape, np.float32)
    uniform = rng.random(shape, np.float32)
    uniform += np.float32(1e-12)
    gumbel: NDArray[np.float32] = -np.log(-np.log(uniform) + np.float32(1e-12))
    return gumbel


def log_softmax(logits: NDArray[Real]) -> NDArray[Real]:
    """Logarithms of the probabilities, ``(steps, actions)``."""
    shifted: NDArray[Real] = logits - logits.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shifted


def log_probability(
    policy: NDArray[Real], actions: NDArray[Any], log_std: NDArray[Real] | None
) -> NDArray[Real]:
    """Logarithm of the probability of ``actions``, ``(steps,)``, for the policy head's outputs."""
    if log_std is None:
        logs = log_softmax(policy)
        chosen: NDArray[Real] = logs[np.arange(len(actions)), actions]
        return chosen
    z = (actions - policy) / np.exp(log_std)
    logp: NDArray[Real] = -(0.5 * z * z + log_std + HALF_LOG_2PI).sum(axis=1)
    return logp
