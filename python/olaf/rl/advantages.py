"""Advantages of a rollout's steps (Schulman et al. 2016), and what they say of the value head."""

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


def explained_variance(advantages: NDArray[np.float32], returns: NDArray[np.float32]) -> float:
    """Share of the returns' variance that the value head predicts; both ``(steps,)``.

    1: the values are the returns. 0: a constant would predict as well. Below 0: a constant would
    predict better. 0 if all returns are equal. ``advantages`` are returns minus values.
    """
    spread = float(returns.var())
    return 1.0 - float(advantages.var()) / spread if spread > 0 else 0.0
