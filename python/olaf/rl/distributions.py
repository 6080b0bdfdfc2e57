"""Distributions of actions: sampling, and logarithms of probabilities.

A policy's outputs are means of independent normal distributions, or logits of choices. An action of
several parts (MultiDiscrete, MultiBinary) is one independent choice for each part: ``parts`` has
the number of choices of each, and the logits of all parts stand side by side. With a single part,
an array of actions is ``(steps,)``; with several, ``(steps, parts)``.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olaf.rl.actor_critic import Real

HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))

MASKED = -1e9
"""Logit of an invalid action: its probability is exactly 0, and no noise makes it the largest."""


def draw(rng: np.random.Generator, shape: tuple[int, ...], continuous: bool) -> NDArray[np.float32]:
    """Noise for a rollout's actions: normal, or Gumbel, whose argmax with logits is a sample."""
    if continuous:
        return rng.standard_normal(shape, np.float32)
    uniform = rng.random(shape, np.float32)
    uniform += np.float32(1e-12)
    gumbel: NDArray[np.float32] = -np.log(-np.log(uniform) + np.float32(1e-12))
    return gumbel


def valid(logits: NDArray[Real], masks: NDArray[np.bool_] | None) -> NDArray[Real]:
    """The logits with `MASKED` where ``masks`` is False; all as they are without masks."""
    if masks is None:
        return logits
    masked: NDArray[Real] = np.where(masks, logits, logits.dtype.type(MASKED))
    return masked


def first_columns(parts: Sequence[int]) -> NDArray[np.int64]:
    """The column of each part's first logit, ``(parts,)``."""
    return np.cumsum([0, *parts[:-1]])


def likeliest(logits: NDArray[Real], parts: Sequence[int]) -> NDArray[np.int64]:
    """The index of the largest logit of each part: ``(steps,)``, or ``(steps, parts)``."""
    if len(parts) == 1:
        one: NDArray[np.int64] = logits.argmax(axis=1)
        return one
    edges = first_columns(parts)[1:]
    return np.stack([part.argmax(axis=1) for part in np.split(logits, edges, axis=1)], axis=1)


def log_softmax(logits: NDArray[Real], parts: Sequence[int] = ()) -> NDArray[Real]:
    """Logarithms of the probabilities of each part's choices, ``(steps, actions)``."""
    shifted: NDArray[Real]
    if len(parts) > 1:
        first = first_columns(parts)
        shifted = logits - np.repeat(np.maximum.reduceat(logits, first, axis=1), parts, axis=1)
        total = np.add.reduceat(np.exp(shifted), first, axis=1)
        shifted -= np.repeat(np.log(total), parts, axis=1)
        return shifted
    shifted = logits - logits.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shifted


def taken(actions: NDArray[Any], parts: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Rows and columns of the logits of ``actions``: each ``(steps,)``, or ``(steps, parts)``."""
    rows = np.arange(len(actions))
    if len(parts) < 2:
        return rows, actions
    return rows[:, None], actions + first_columns(parts)


def log_probability(
    policy: NDArray[Real],
    actions: NDArray[Any],
    log_std: NDArray[Real] | None,
    parts: Sequence[int] = (),
) -> NDArray[Real]:
    """Logarithm of the probability of ``actions``, ``(steps,)``, for the policy head's outputs."""
    if log_std is None:
        chosen: NDArray[Real] = log_softmax(policy, parts)[taken(actions, parts)]
        return chosen if chosen.ndim == 1 else chosen.sum(axis=1)
    z = (actions - policy) / np.exp(log_std)
    logp: NDArray[Real] = -(0.5 * z * z + log_std + HALF_LOG_2PI).sum(axis=1)
    return logp
