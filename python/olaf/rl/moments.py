"""Moments of observations and rewards: arrays of the model, which all workers fill together.

A worker adds the moments of its own steps to these arrays, as it adds a step to the weights. They
then travel as any update does. The network may scale an update by any factor above 0 (staleness,
overlap, a limit on norms): the steps behind it then count more or less, and the mean and the
variance are still those of a weighted set of steps. `docs/design/038-normalised-observations.md`
has the reasons.
"""

import dataclasses
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from olaf.files.modelfile import OBSERVATIONS, REWARDS
from olaf.rl.learner import LearnerConfig, LearnerError, Parts
from olaf.rl.spaces import Spaces

UNIT = 2.0**-40
"""The count of one turn. So small a number leaves the norm of an update, on which the switch and
the server set limits, to the weights. Floats are as exact there as near 1."""

MOST = 1.0
"""Largest entry of one addition. A batch with larger ones counts less, as a whole."""

LIMIT = 10.0
"""Normalised observations are clipped to -10..10."""

_LEAST, _MOST = np.float32(-LIMIT), np.float32(LIMIT)

STEPS, SECONDS = 256, 1.0
"""Bounds of the first look at an environment, see `resolve`."""

LARGE = 10.0
"""Root mean square of a feature above which observations count as unscaled."""

SMALL = 0.02
"""The same below which they do, if the feature changes at all. Of the environments that gymnasium
brings, the smallest feature of MountainCar's has 0.008, that of all others 0.04 or more."""

COUNT, SUM, SQUARES, CENTER, SCALE = range(5)


class ObservationMoments:
    """Mean and spread of each feature, and the normalisation with them.

    ``array`` has a row for each feature: count, sum and sum of squares of (x - center) / scale,
    then center and scale, which never change. The five are neighbours, so that the border of a
    segment tears at most one feature apart.
    """

    def __init__(self, scales: "NDArray[np.floating[Any]]") -> None:
        """scales: center and scale of each feature, ``(features, 2)``."""
        self.array = np.zeros((len(scales), 5), np.float32)
        self.array[:, CENTER:] = scales
        self.refresh()

    def refresh(self) -> None:
        """Take over the array as it is now; before this the earlier moments count."""
        rows = self.array.astype(np.float64)
        count = np.maximum(rows[:, COUNT], 0)
        is_known = count > 0
        count = np.where(is_known, count, 1)
        mean = np.where(is_known, rows[:, SUM] / count, 0)
        square = mean * mean
        # Float32 sums cannot tell a smaller variance from a rounding error.
        variance = np.maximum(rows[:, SQUARES] / count - square, 1e-8 + 1e-6 * square)
        spread = rows[:, SCALE] * np.where(is_known, np.sqrt(variance), 1)
        self.shift = (rows[:, CENTER] + rows[:, SCALE] * mean).astype(np.float32)
        self.factor = (1 / spread).astype(np.float32)

    def normalised(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """``(x - mean) / spread``, clipped, for observations ``(.., features)``."""
        seen: NDArray[np.float32] = observations - self.shift
        seen *= self.factor
        # Faster than np.clip for the few rows of a step.
        np.maximum(seen, _LEAST, out=seen)
        np.minimum(seen, _MOST, out=seen)
        return seen

    def of(self, observations: NDArray[np.float32], turns: float) -> NDArray[np.float32]:
        """The addition for observations ``(steps, features)`` that count as so many turns."""
        rows = self.array
        apart = (observations.astype(np.float64) - rows[:, CENTER]) / rows[:, SCALE]
        added = np.zeros(rows.shape)
        added[:, COUNT] = 1
        added[:, SUM] = apart.mean(axis=0)
        added[:, SQUARES] = (apart * apart).mean(axis=0)
        return bounded(added * (turns * UNIT))


class ReturnMoments:
    """Mean and spread of the discounted return, for a factor on rewards.

    ``array``: count, sum and sum of squares. Each worker follows its own running episodes.
    """

    def __init__(self, environments: int, discount: float) -> None:
        self.array = np.zeros(3, np.float32)
        self._discount = discount
        self._returns = np.zeros(environments)

    def of(
        self, rewards: NDArray[np.float32], done: NDArray[np.bool_], turns: float
    ) -> NDArray[np.float32]:
        """The addition for a rollout: rewards and ends, both ``(steps, environments)``."""
        seen = np.empty(rewards.shape)
        for turn, (reward, end) in enumerate(zip(rewards, done, strict=True)):
            self._returns = seen[turn] = self._returns * self._discount + reward
            self._returns = np.where(end, 0.0, self._returns)
        added = np.array([1, seen.mean(), (seen * seen).mean()])
        return bounded(added * (turns * UNIT))

    def factor(self, added: NDArray[np.float32]) -> float:
        """1 / the spread, with an addition of the worker's own; 1 if there is no spread yet."""
        count, total, squares = self.array.astype(np.float64) + added
        if count <= 0:
            return 1.0
        mean = total / count
        variance = squares / count - mean * mean
        if variance <= 1e-6 * mean * mean:
            return 1.0
        return float(1 / (np.sqrt(variance) + 1e-8))


def bounded(added: "NDArray[np.floating[Any]]") -> NDArray[np.float32]:
    """An addition whose largest entry in each row is at most `MOST`: its steps then count less."""
    largest = np.abs(added).max(axis=-1, keepdims=True)
    scaled: NDArray[np.float32] = (added * (MOST / np.maximum(largest, MOST))).astype(np.float32)
    return scaled


class Carried:
    """The arrays that a model carries beside its weights, and what a turn adds to them."""

    def __init__(self, config: LearnerConfig, features: int, *, returns: bool) -> None:
        """returns: carry the moments of the discounted return, for a factor on rewards."""
        self._config = config
        self.observations: ObservationMoments | None = None
        self.returns: ReturnMoments | None = None
        if config.normalise == "on":
            scales = np.array(config.scales, np.float64).reshape(-1, 2)
            if len(scales) != features:
                raise LearnerError(
                    f"scales has {len(config.scales)} numbers, and the environment {features} "
                    "features: two numbers for each; leave it empty and it is measured"
                )
            self.observations = ObservationMoments(scales)
        if returns:
            self.returns = ReturnMoments(config.environments, config.discount)
        self._added = [np.zeros_like(part) for part in self.parts()]
        self._updates = [np.zeros_like(part) for part in self.parts()]

    def named(self) -> dict[str, NDArray[np.float32]]:
        """The live arrays by name, in the order of `parts`."""
        found: dict[str, NDArray[np.float32]] = {}
        if self.observations:
            found[OBSERVATIONS] = self.observations.array
        if self.returns:
            found[REWARDS] = self.returns.array
        return found

    def parts(self) -> Parts:
        """The live arrays."""
        return list(self.named().values())

    @property
    def size(self) -> int:
        """Number of floats."""
        return sum(part.size for part in self.parts())

    def see(
        self,
        observations: NDArray[np.float32],
        rewards: NDArray[np.float32],
        done: NDArray[np.bool_],
    ) -> float:
        """Take in a turn's steps, the addition of its passes; return the factor on its rewards.

        observations: ``(steps, features)``; rewards, done: ``(rows, environments)``.
        """
        turns = rewards.size / self._config.steps_per_update
        self._added, factor = [], 1.0
        if self.observations:
            self._added.append(self.observations.of(observations, turns))
        if self.returns:
            self._added.append(self.returns.of(rewards, done, turns))
            factor = self.returns.factor(self._added[-1])
        return factor

    def step(self, share: float) -> Parts:
        """Add this share of the turn's addition; return the update, as `Iteration.update` has it.

        Every pass adds its share, so that the updates of a turn do not differ in kind.
        """
        config = self._config
        moves = config.gradient_kind == "accumulated"  # else the server alone moves the model
        share *= config.strength if moves else 1
        for part, update, added in zip(self.parts(), self._updates, self._added, strict=True):
            np.multiply(added, np.float32(share), out=update)
            if moves:
                np.add(part, update, out=part)
                np.divide(update, np.float32(config.gamma), out=update)
        return self._updates


class Wanderer(Protocol):
    """What `resolve` needs of a learner."""

    @property
    def spaces(self) -> Spaces:
        """The environment's spaces."""

    def wander(self, steps: int, seconds: float) -> NDArray[np.float32]:
        """Play, and return the observations ``(rows, features)``."""


def resolve(
    config: LearnerConfig,
    learner: Wanderer,
    *,
    steps: int = STEPS,
    seconds: float = SECONDS,
) -> LearnerConfig:
    """Decide ``normalise = auto``, and measure ``scales`` if it is on; return the configuration.

    learner: a learner with this configuration but ``normalise = off``. It plays at most ``steps``
    steps, and stops after ``seconds``, so it is of no further use. Raises ``LearnerError`` for
    ``on`` with images, and what its environment raises.
    """
    if config.is_resolved:
        return config
    if learner.spaces.seen:
        if config.normalise == "on":
            raise LearnerError(
                f"normalise = 'on': observations have the shape {learner.spaces.seen}, and only "
                "vectors are normalised; scale images in the network (divide by 255)"
            )
        return config.replaced(normalise="off")
    seen = learner.wander(steps, seconds).astype(np.float64)
    if config.normalise == "auto" and not is_unscaled(seen):
        return config.replaced(normalise="off")
    return dataclasses.replace(config, normalise="on", scales=rough_scales(seen)).check()


def is_unscaled(seen: "NDArray[np.floating[Any]]") -> bool:
    """Whether a network learns badly from such observations ``(steps, features)`` as they are."""
    is_flag = ((seen == 0) | (seen == 1)).all(axis=0)
    size = np.sqrt((seen * seen).mean(axis=0))
    is_small = (size < SMALL) & (seen.std(axis=0) > 1e-9)
    return bool((((size > LARGE) | is_small) & ~is_flag).any())


def rough_scales(seen: "NDArray[np.floating[Any]]") -> tuple[float, ...]:
    """Center and scale of each feature in turn, rounded so that chance seldom changes them."""
    mean, spread = seen.mean(axis=0), seen.std(axis=0)
    spread = np.where(spread > 1e-7 * np.maximum(1, np.abs(mean)), spread, 1)
    scale = np.exp2(np.round(np.log2(spread)))
    center = 4 * scale * np.round(mean / (4 * scale)) + 0.0  # no -0.0
    return tuple(float(number) for pair in zip(center, scale, strict=True) for number in pair)
