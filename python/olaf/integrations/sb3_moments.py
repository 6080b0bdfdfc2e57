"""The running moments of ``VecNormalize``, as parameters beside those of the policy.

Each worker adds what it has seen since its last exchange; the sum of all workers comes back with
the model. `olaf.rl.moments` does the same for Olaf's own learners and says why it is a sum.
"""

# mypy checks this file with and without the framework; without it everything of it is Any.
# mypy: disable-error-code="import-untyped,import-not-found,misc,unused-ignore"

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import Tensor, from_numpy, nn

from olaf.files.modelfile import OBSERVATIONS, REWARDS
from olaf.rl.moments import CENTER, COUNT, SCALE, SQUARES, SUM

STEP = 2.0**-50
"""The count of one step: so small that the norm of an update is that of its weights."""


class Shared(nn.Module):
    """A policy and the moments of its environments as one module to join with."""

    def __init__(self, policy: nn.Module, normalise: Any) -> None:
        """normalise: the model's ``VecNormalize``."""
        super().__init__()
        self._policy = policy
        self._moments = dict(_moments_of(normalise))

    def named_parameters(self, *given: Any, **options: Any) -> Iterator[tuple[str, Any]]:
        """The policy's parameters, then the moments."""
        yield from self._policy.named_parameters(*given, **options)
        for name, moments in self._moments.items():
            yield name, moments.tensor

    def add(self) -> None:
        """Before an exchange: add what the environments have shown since the last one."""
        for moments in self._moments.values():
            moments.add()

    def take(self) -> None:
        """After joining and after an exchange: give the environments the moments of all."""
        for moments in self._moments.values():
            moments.take()


class _Moments:
    """One ``RunningMeanStd`` and its row for each feature, as in `ObservationMoments`."""

    def __init__(self, running: Any) -> None:
        self._running = running
        mean = np.ravel(running.mean)
        self._rows = np.zeros((mean.size, 5), np.float32)
        # What the first worker has seen at its start is near enough to keep sums small.
        self._rows[:, CENTER], self._rows[:, SCALE] = mean, 1
        self._rows[:, COUNT : SQUARES + 1] = STEP * self._sums()
        self.tensor: Tensor = nn.Parameter(from_numpy(self._rows), requires_grad=False)
        self._known = self._sums()

    def _sums(self) -> Any:
        """Count, sum and sum of squares of the running moments, ``(features, 3)``."""
        running, center = self._running, self._rows[:, CENTER].astype(np.float64)
        mean = np.ravel(running.mean) - center
        squares = np.ravel(running.var) + mean * mean
        return running.count * np.stack([np.ones_like(mean), mean, squares], axis=1)

    def add(self) -> None:
        sums = self._sums()
        self._rows[:, COUNT : SQUARES + 1] += STEP * (sums - self._known)
        self._known = sums

    def take(self) -> None:
        rows = self._rows.astype(np.float64)
        count = np.maximum(rows[:, COUNT], np.finfo(np.float32).tiny)
        mean = rows[:, SUM] / count
        variance = rows[:, SQUARES] / count - mean * mean
        running, shape = self._running, np.shape(self._running.mean)
        running.mean = (rows[:, CENTER] + mean).reshape(shape)
        # Float32 sums cannot tell a smaller variance from a rounding error.
        running.var = np.maximum(variance, 1e-6 * mean * mean).reshape(shape)
        running.count = float(count.mean()) / STEP
        self._known = self._sums()


def _moments_of(normalise: Any) -> Iterator[tuple[str, _Moments]]:
    if normalise.norm_obs:
        observed = normalise.obs_rms
        if isinstance(observed, dict):
            for key in sorted(observed):
                yield f"{OBSERVATIONS}.{key}", _Moments(observed[key])
        else:
            yield OBSERVATIONS, _Moments(observed)
    if normalise.norm_reward:
        yield REWARDS, _Moments(normalise.ret_rms)
