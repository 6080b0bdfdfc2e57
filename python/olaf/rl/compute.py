"""The length of a worker's turn in virtual time."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Compute(Protocol):
    """A source of turn lengths, in seconds."""

    def turns(self, seed: int, worker: int) -> "Turns":
        """The turns of one worker: the same for the same (seed, worker)."""


class Turns(Protocol):
    """One worker's turns, in order."""

    def next(self, steps: int) -> tuple[float, float]:
        """Seconds of collecting and of learning in the next turn of ``steps`` environment steps."""


@dataclass(frozen=True)
class Steady(Compute):
    """Turns at a constant number of environment steps per second."""

    steps_per_s: float = 5000.0
    """Environment steps of a worker per second, including learning."""

    learning: float = 0.4
    """Share of a turn that is learning, from 0 to 1."""

    wobble: float = 0.1
    """Relative spread: each turn is drawn evenly from 1 - wobble to 1 + wobble of the mean."""

    def turns(self, seed: int, worker: int) -> "SteadyTurns":
        """The turns of one worker."""
        return SteadyTurns(self, np.random.default_rng([seed, 2**31, worker]))


class SteadyTurns:
    """One worker's turns at a steady pace."""

    def __init__(self, config: Steady, rng: np.random.Generator) -> None:
        self._config, self._rng = config, rng

    def next(self, steps: int) -> tuple[float, float]:
        """Seconds of collecting and of learning."""
        config = self._config
        drawn = self._rng.uniform(1 - config.wobble, 1 + config.wobble)
        seconds = steps / config.steps_per_s * drawn
        return (1 - config.learning) * seconds, config.learning * seconds


def speeds(workers: int, ratio: float) -> list[float]:
    """Speeds of ``workers`` machines, slowest first, evenly spread; their mean is 1.

    ratio: the fastest speed divided by the slowest. A single machine has speed 1.
    """
    if workers == 1:
        return [1.0]
    slowest = 2 / (1 + ratio)
    return [float(s) for s in np.linspace(slowest, ratio * slowest, workers)]
