"""The server's rule in numpy: the same as `_olaf.apply_rule`, but it keeps its state.

Tests compare it with the core's, update by update.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from olaf.tcp.frames import Lanes
from olaf.values.defaults import SERVER


@dataclass(frozen=True)
class RuleConfig:
    """Names and meanings as in `olaf.jobs.settings.ServerSettings`."""

    rule: Literal["delta", "paper-literal"] = SERVER["rule"]
    learning_rate: float = SERVER["learning_rate"]
    step: Literal["overlap", "mean", "sum"] = SERVER["step"]
    """overlap and mean are the same here: no switch merges, so every update arrives alone."""
    gate: Literal["none", "best", "recent"] = SERVER["gate"]
    gate_margin: float = SERVER["gate_margin"]
    staleness_power: float = SERVER["staleness_power"]


RECENT = 0.1
"""Weight of the newest reward in the recent mean, as in the core."""


class Rule:
    """A model, and how updates change it."""

    def __init__(self, config: RuleConfig) -> None:
        self._config = config
        self.weights: Lanes | None = None
        self.version = 0
        self._best = -np.inf
        self._recent: float | None = None
        self._average: Lanes | None = None

    def start(self, weights: Lanes, version: int = 1) -> None:
        """Take the first model (OLAF §2.1); ignore later ones."""
        if self.weights is None:
            self.weights, self.version = weights.copy(), version

    def apply(
        self, update: Lanes, *, weight: float, reward: float, behind: int, others: int = 0
    ) -> bool:
        """Take an update that was computed ``behind`` versions ago; return whether it was applied.

        others: number of the job's other workers. The weights become a new array, so a reader of
        the old array always has a whole model.
        """
        if self.weights is None:
            raise ValueError("no model yet")
        if self._config.rule == "paper-literal":
            step = self._literal(update, reward)
        else:
            overlapped = max(behind, others) if self._config.step == "overlap" else behind
            step = self._delta(update, weight, reward, overlapped)
        if step is None:
            return False
        self.weights = self.weights + step
        self.version += 1
        return True

    def _delta(self, update: Lanes, weight: float, reward: float, behind: int) -> Lanes | None:
        config = self._config
        passes = self._passes(reward)
        self._best = max(self._best, reward)
        before = reward if self._recent is None else self._recent
        self._recent = before + RECENT * (reward - before)
        if not passes:
            return None
        factor = config.learning_rate * (1.0 + behind) ** -config.staleness_power
        if config.step == "sum":
            factor *= weight
        return update * np.float32(factor)

    def _passes(self, reward: float) -> bool:
        config = self._config
        if config.gate == "best":
            return bool(reward >= self._best - config.gate_margin)
        if config.gate == "recent" and self._recent is not None:
            return reward >= self._recent - config.gate_margin
        return True

    def _literal(self, update: Lanes, reward: float) -> Lanes | None:
        # OLAF §2.1: applied only above the best reward so far, and averaged with the applied
        # updates before; its reward then becomes the best.
        if reward <= self._best:
            return None
        self._best = reward
        before = self._average
        self._average = update if before is None else (before + update) / np.float32(2)
        return self._average * np.float32(self._config.learning_rate)
