"""What learners report about their learning and their episodes, gathered over all workers.

A worker's message has ``losses``, ``episode_steps`` and ``episode_numbers``; each may be absent.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from olaf.values.numbers import counted_shortly, percent, short

MOST_NUMBERS = 16
"""Names of `Readings.numbers` that are followed; later ones are left out."""

SUCCESS = "success"
"""The number of an episode that is 1 if the environment says that its task was done."""

KEPT_DIGITS = 5
"""Significant digits of a reading: a long run keeps many of them."""


class Instrument(NamedTuple):
    """One of the learner's numbers: how files and people call it."""

    tag: str
    name: str
    meaning: str
    text: Callable[[float], str] = short


INSTRUMENTS: Mapping[str, Instrument] = {
    "policy": Instrument(
        "policy_loss", "policy loss", "the loss of the policy, which a turn makes smaller"
    ),
    "value": Instrument(
        "value_loss",
        "value loss",
        "half of the mean squared error of the predicted returns, in scaled reward",
    ),
    "entropy": Instrument(
        "entropy", "entropy", "mean entropy of the policy, in nats: how much it still tries"
    ),
    "kl": Instrument(
        "approx_kl",
        "KL",
        "approximate Kullback-Leibler divergence of the policy from the one before the pass",
    ),
    "clipped": Instrument(
        "clip_fraction",
        "clipped",
        "share of the steps whose probability changed by more than `learner.clip`",
        lambda share: percent(share, 0),
    ),
    "explained_variance": Instrument(
        "explained_variance",
        "explained variance",
        "share of the returns' variance that the value head predicts: 1 is all of it, 0 none",
        lambda share: short(share, 2),
    ),
    "gradient_norm": Instrument(
        "gradient_norm",
        "gradient norm",
        "Euclidean norm of a minibatch gradient before it is cut to `learner.max_gradient_norm`",
    ),
    "learning_rate": Instrument(
        "learning_rate", "learning rate", "step size of the optimiser in the workers"
    ),
}
"""The names in a message's ``losses``."""


@dataclass(frozen=True)
class Readings:
    """Means of the learners' numbers at one moment."""

    losses: dict[str, float] = field(default_factory=dict)
    """By name, over the turns since the reading before; empty if no turn ended since."""
    steps: float | None = None
    """Length of the last `train.reward_window` episodes, in environment steps."""
    numbers: dict[str, float] = field(default_factory=dict)
    """Numbers of the environment at the end of those episodes, such as ``success``."""


class Gathered:
    """Takes in messages; gives readings."""

    def __init__(self, window: int, lengths: Iterable[int] = ()) -> None:
        """window: number of episodes; lengths: of those before a resumption."""
        self._steps: deque[float] = deque(lengths, maxlen=window)
        self._numbers: dict[str, deque[float]] = {}
        self._window = window
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self.latest: dict[str, float] = {}
        """The losses of the last reading that had some."""

    def take(self, message: Mapping[str, Any]) -> None:
        """Take in a turn of a worker."""
        for name, value in finite(message.get("losses")).items():
            self._sums[name] = self._sums.get(name, 0.0) + value
            self._counts[name] = self._counts.get(name, 0) + 1
        self._steps.extend(float(steps) for steps in message.get("episode_steps") or ())
        for episode in message.get("episode_numbers") or ():
            for name, value in finite(episode).items():
                if name not in self._numbers and len(self._numbers) == MOST_NUMBERS:
                    continue
                self._numbers.setdefault(name, deque(maxlen=self._window)).append(value)

    def reading(self) -> Readings:
        """The means now; those of the losses begin anew."""
        losses = {name: kept(total / self._counts[name]) for name, total in self._sums.items()}
        self._sums, self._counts = {}, {}
        self.latest = losses or self.latest
        return Readings(losses, self.steps, self.numbers)

    @property
    def steps(self) -> float | None:
        """Mean length of the last episodes."""
        return kept(sum(self._steps) / len(self._steps)) if self._steps else None

    @property
    def numbers(self) -> dict[str, float]:
        """Means of the environment's numbers over the last episodes that had them."""
        return {name: kept(sum(of) / len(of)) for name, of in self._numbers.items()}


def finite(numbers: Any) -> dict[str, float]:
    """The finite numbers of an object, by name."""
    if not isinstance(numbers, Mapping):
        return {}
    known = {str(name): value for name, value in numbers.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in known.items() if math.isfinite(value)}


def kept(value: float) -> float:
    """The value with the digits that are kept."""
    return float(f"{value:.{KEPT_DIGITS}g}")


def phrases(
    losses: Mapping[str, float], steps: float | None, numbers: Mapping[str, float]
) -> list[str]:
    """The readings in short words, the most telling ones first: for one line of a display."""
    order = (
        "entropy", "kl", "clipped", "explained_variance", "policy", "value", "gradient_norm",
        "learning_rate",
    )  # fmt: skip
    said = []
    if steps is not None:
        said.append(f"length {counted_shortly(steps, 'step')}")
    if SUCCESS in numbers:
        said.append(f"success {percent(numbers[SUCCESS], 0)}")
    for key in order:
        if key in losses:
            said.append(f"{INSTRUMENTS[key].name} {INSTRUMENTS[key].text(losses[key])}")
    said += [f"{name} {short(value)}" for name, value in numbers.items() if name != SUCCESS]
    return said
