"""Checks in a worker's first rounds whether the job's model follows the worker's pushes.

A wrong factor, a gate or a lossy path can keep a job from learning without any error. The symptom
is always the same: the model hardly moves while the worker pushes. This module compares the
Euclidean norms of the pushes and of the pulled model's movement once, and then frees its memory.

Other workers move the model too, so the check is generous: it warns only if all workers together
moved the model by less than a thousandth of this worker's pushes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from olaf.memory.parameters import Parts
from olaf.push_pull.rule import Rule

ROUNDS = 20
"""Newer models that are taken before the verdict. Until then each push and each pull costs one more
pass over the model, and the worker keeps one copy of it; later it costs nothing."""

PUSHES = 200
"""Without ``ROUNDS`` newer models, the verdict comes after this number of pushes .."""

PATIENCE_S = 30.0
""".. and this number of seconds, if the worker has asked for models."""

SHARE = 1e-3
"""The worker is warned below this ratio of movement to pushes."""


class Movement:
    """Sums up pushes and pulls; ``verdict`` returns at most one warning."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: Parts | None = None
        self._pushed = self._moved = 0.0
        self._pushes = self._rounds = self._asked = 0
        self._began_s = 0.0
        self._not_finite = False
        self.over = False
        """True once nothing is measured any more."""

    def joined(self, model: Parts) -> None:
        """Record the first model."""
        self._last = [part.copy() for part in model]

    def pushed(self, update: Parts) -> None:
        """Record an update."""
        if self.over:
            return
        if self._pushes == 0:
            self._began_s = self._clock()
        size = _norm(update)
        self._not_finite |= not math.isfinite(size)
        self._pushed += size
        self._pushes += 1

    def pulled(self, model: Parts | None) -> None:
        """Record that the worker asked for a newer model, and took it if there was one."""
        if self.over or self._pushes == 0:
            return
        self._asked += 1
        if model is None:
            return
        if self._last is None:
            self.joined(model)
            return
        self._moved += _norm([now - was for now, was in zip(model, self._last, strict=True)])
        for was, now in zip(self._last, model, strict=True):
            was[...] = now
        self._rounds += 1

    def verdict(self, rule: Rule | None) -> str | None:
        """The warning for the worker, if any; ends the measurement."""
        if self.over or not (self._not_finite or self._is_long_enough()):
            return None
        self.over, self._last = True, None
        if self._not_finite:
            return (
                "an update holds numbers that are not finite (NaN or infinity): the server refuses "
                "such an update; look for a division by zero or a learning rate that is too high"
            )
        if self._pushed == 0.0:
            return (
                f"{self._pushes} updates were all zero, so this worker teaches nothing: copy "
                "the model before you train (before = olaf.snapshot(model)), then push_delta"
            )
        if self._moved >= SHARE * self._pushed:
            return None
        return (
            f"the model hardly follows this worker: {self._pushes} pushes, {self._rounds} newer "
            f"models, which moved by {self._moved / self._pushed:.1g} of the pushed change. "
            + _advice(rule)
        )

    def _is_long_enough(self) -> bool:
        if self._rounds >= ROUNDS:
            return True
        waited = self._pushes >= PUSHES and self._asked >= ROUNDS
        return waited and self._clock() - self._began_s >= PATIENCE_S


def _advice(rule: Rule | None) -> str:
    if rule is not None and rule.is_selective:
        return (
            f"Likely cause: {rule}. Pass the episode's reward with each push, or start the server "
            "with `--rule delta` and `server.gate` = none"
        )
    if rule is not None and rule.factor < 0.01:
        return (
            f"Likely cause: the server multiplies every update by {rule.factor:g}. Start it with "
            "`--learning-rate 1` (`server.learning_rate`), which applies a push unchanged"
        )
    return (
        "Likely cause: the updates do not reach the server, or it refuses them. Look at "
        "connection.stats(), and at the fates and drops that the switch and the server report"
    )


def _norm(parts: Parts) -> float:
    return math.sqrt(sum(_square(part.reshape(-1)) for part in parts))


def _square(lanes: NDArray[np.float32]) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        square = float(np.dot(lanes, lanes))
    if math.isfinite(square):
        return square
    return float(np.square(lanes, dtype=np.float64).sum())  # float32 overflows from 1.8e19 on
