"""PPO's objective on a minibatch, with its hand-written gradient (Schulman et al. 2017)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olaf.rl.actor_critic import Floats, Layout, Real, backward, forward
from olaf.rl.distributions import HALF_LOG_2PI, first_columns, log_softmax, taken, valid
from olaf.rl.learner import LearnerConfig

FURTHEST = 20.0
"""Largest logarithm of a ratio of probabilities: a gradient beyond would not be finite."""


@dataclass(frozen=True)
class Batch:
    """Steps to learn from; the first axis of every array is the step."""

    observations: Floats
    """``(steps, *observation_shape)``"""
    actions: NDArray[Any]
    """``(steps,)`` indices, ``(steps, parts)`` if an action has several parts, or ``(steps,
    actions)`` floats before clipping."""
    log_probabilities: Floats
    """Log probabilities ``(steps,)`` of the actions under the policy of PPO's bound."""
    advantages: Floats
    """``(steps,)``"""
    returns: Floats
    """``(steps,)`` targets of the value head, in scaled reward."""
    importance: Floats
    """``(steps,)`` factors on the advantages; 1 if the same policy collected."""
    masks: NDArray[np.bool_] | None = None
    """``(steps, actions)``, False for invalid actions; None if all are valid."""

    def rows(self, which: Any) -> "Batch":
        """A part of the steps: a slice (views) or indices (copies)."""
        return Batch(
            self.observations[which],
            self.actions[which],
            self.log_probabilities[which],
            self.advantages[which],
            self.returns[which],
            self.importance[which],
            None if self.masks is None else self.masks[which],
        )

    def normalised(self) -> "Batch":
        """The batch with advantages of mean 0 and standard deviation 1, times their importance."""
        spread = self.advantages.std() + 1e-8
        return Batch(
            self.observations,
            self.actions,
            self.log_probabilities,
            (self.advantages - self.advantages.mean()) / spread * self.importance,
            self.returns,
            self.importance,
            self.masks,
        )


def objective(
    layout: Layout,
    weights: NDArray[Real],
    batch: Batch,
    config: LearnerConfig,
    gradient: NDArray[Real],
) -> dict[str, float]:
    """Clipped PPO loss of a minibatch; its gradient is written into ``gradient`` ``(size,)``.

    loss = -mean(min(ratio A, clip(ratio) A)) + value mean((v - R)^2) / 2 - entropy mean(H).
    Works in the precision of ``weights``, so that the tests can use float64.
    """
    views, into = layout.views(weights), layout.views(gradient)
    observations: NDArray[Real] = batch.observations.astype(weights.dtype, copy=False)
    outputs, activations = forward(layout, views, observations)
    policy, values = outputs[:, :-1], outputs[:, -1]
    count = len(values)
    log_std = views.get("log_std")

    parts = layout.parts
    if log_std is None:
        logs = log_softmax(valid(policy, batch.masks), parts)
        probabilities = np.exp(logs)
        chosen = taken(batch.actions, parts)
        logp = logs[chosen]
        if len(parts) > 1:
            logp = logp.sum(axis=1)
            # The entropy of each part, at each of the part's columns.
            each = -np.add.reduceat(probabilities * logs, first_columns(parts), axis=1)
            entropies, entropy = np.repeat(each, parts, axis=1), float(each.sum(axis=1).mean())
        else:
            entropies = -(probabilities * logs).sum(axis=1, keepdims=True)
            entropy = float(entropies.mean())
    else:
        deviation = np.exp(log_std)
        z = (batch.actions - policy) / deviation
        logp = -(0.5 * z * z + log_std + HALF_LOG_2PI).sum(axis=1)
        entropy = float((log_std + 0.5 + HALF_LOG_2PI).sum())

    log_ratio = logp - batch.log_probabilities
    ratio = np.exp(np.minimum(log_ratio, FURTHEST))
    plain = ratio * batch.advantages
    bounded = np.clip(ratio, 1 - config.clip, 1 + config.clip) * batch.advantages
    error = values - batch.returns
    losses = {
        "policy": -float(np.minimum(plain, bounded).mean()),
        "value": 0.5 * float((error * error).mean()),
        "entropy": entropy,
        "kl": float((ratio - 1 - log_ratio).mean()),
        "clipped": float((np.abs(ratio - 1) > config.clip).mean()),
    }
    losses["loss"] = (
        losses["policy"] + config.value * losses["value"] - config.entropy * losses["entropy"]
    )

    d_logp = np.where(plain <= bounded, plain, 0) * (-1 / count)
    d_outputs = np.empty_like(outputs)
    d_outputs[:, -1] = error * (config.value / count)
    if log_std is None:
        d_policy = probabilities * ((logs + entropies) * (config.entropy / count) - d_logp[:, None])
        d_policy[chosen] += d_logp if len(parts) < 2 else d_logp[:, None]
        d_outputs[:, :-1] = d_policy
    else:
        d_outputs[:, :-1] = d_logp[:, None] * (z / deviation)
        into["log_std"][:] = d_logp @ (z * z - 1) - config.entropy
    backward(layout, views, activations, d_outputs, into)
    return losses
