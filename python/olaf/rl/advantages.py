"""Advantages of a rollout's steps (Schulman et al. 2016)."""

import numpy as np
from numpy.typing import NDArray


def generalised_advantages(
    rewards: NDArray[np.float32],
    values: NDArray[np.float32],
    *,
    following: NDArray[np.float32],
    terminated: NDArray[np.bool_],
    ended: NDArray[np.bool_],
    discount: float,
    trace: float,
) -> NDArray[np.float32]:
    """Advantages by GAE; all arrays ``(steps, environments)``, rewards scaled.

    following: value of the state after each step, before any reset. terminated: the state is
    terminal. ended: the episode ended, so later steps' advantages do not belong to it.
    """
    deltas = rewards + discount * following * ~terminated - values
    decay = discount * trace * ~ended
    advantages = np.empty_like(rewards)
    for index in range(rewards.shape[1]):  # plain floats are faster here than tiny arrays
        running, column = 0.0, []
        pairs = zip(deltas[::-1, index].tolist(), decay[::-1, index].tolist(), strict=True)
        for delta, factor in pairs:
            running = delta + factor * running
            column.append(running)
        advantages[::-1, index] = column
    return advantages
