"""How long a worker's turn takes in virtual time."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Compute(Protocol):
    """Seconds of a worker's turns."""

    def turns(self, seed: int, worker: int) -> "Turns":
        """The turns of one worker: the same for the same (seed, worker)."""


class Turns(Protocol):
    """One worker's turns, in order."""

    def next(self, steps: int) -> tuple[float, float]:
        """Seconds of the next turn of ``steps`` environment steps: collecting, learning."""


@dataclass(frozen=True)
class Steady(Compute):
    """Turns of so many environment steps a second, none of them recorded."""

    steps_per_s: float = 5000.0
    """Environment steps that a worker takes in a second, learning included."""

    learning: float = 0.4
    """Share of a turn that is learning."""

    wobble: float = 0.1
    """Each turn's length is drawn evenly from 1 - wobble .. 1 + wobble of that."""

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

    ratio: the fastest's over the slowest's. One machine alone has speed 1.
    """
    if workers == 1:
        return [1.0]
    slowest = 2 / (1 + ratio)
    return [float(s) for s in np.linspace(slowest, ratio * slowest, workers)]
