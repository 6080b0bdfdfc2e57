"""Observations and actions of an environment, as a policy sees them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

NO_BOUND = 1e30
"""A bound of this size is none: some environments write the largest float for infinity."""


class Range(NamedTuple):
    """How continuous actions are mapped: ``clip(action * half + middle, low, high)``.

    Each array is ``(actions,)``; ``low`` and ``high`` are infinite on a side without a bound.
    """

    low: NDArray[np.float32]
    high: NDArray[np.float32]
    half: NDArray[np.float32]
    middle: NDArray[np.float32]


@dataclass(frozen=True)
class Spaces:
    """Observations and actions of an environment."""

    observation: int
    """Number of floats in one observation."""

    actions: int
    """Number of the policy's outputs: the sum of `discrete`, or the dimensions of a continuous
    action."""

    discrete: tuple[int, ...]
    """Number of choices of each part of an action: ``(n,)`` for Discrete(n), one number for each
    part of MultiDiscrete, 2 for each bit of MultiBinary. Empty for continuous actions."""

    starts: tuple[int, ...]
    """First value of each part. Empty for continuous actions."""

    low: NDArray[np.float64]
    """Lower bounds of a continuous action, ``(actions,)``; empty for discrete ones."""

    high: NDArray[np.float64]

    shape: tuple[int, ...]
    """Shape of an action in the environment; ``()`` for a single choice."""

    dtype: np.dtype[Any]
    """Type of an action's numbers in the environment."""

    seen: tuple[int, ...] = ()
    """Shape of one observation that is not flat: ``(height, width, channels)`` of an image."""

    @property
    def continuous(self) -> bool:
        """True if the policy gives means of normal distributions, not logits of choices."""
        return not self.discrete

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one observation; ``(observation,)`` if it is flat."""
        return self.seen or (self.observation,)

    def to_environment(self, actions: NDArray[Any]) -> list[Any]:
        """The environment's form of each of a policy's actions.

        Discrete: ``(count, parts)`` indices, or ``(count,)`` if there is one part. A single choice
        becomes an int, several an array of `shape`.

        Continuous: ``(count, actions)`` floats. -1..1 becomes the bounds, and what is beyond is
        clipped. In a dimension with one finite bound, -1 becomes the lower bound (or 1 the upper
        one), the scale stays, and what is beyond that bound is clipped: Box(0, inf) maps a to
        max(0, a + 1). A dimension without bounds passes unchanged. Whole numbers are rounded.
        """
        if self.discrete and not self.shape:
            (start,) = self.starts
            return [choice + start for choice in actions.ravel().tolist()]
        count = len(actions)
        if self.discrete:
            chosen = actions.reshape(count, len(self.discrete)) + np.array(self.starts)
            return list(chosen.reshape(count, *self.shape).astype(self.dtype))
        low, high, half, middle = self.range
        mapped: NDArray[Any] = np.clip(actions * half + middle, low, high)
        if self.dtype != np.float32:
            # The bounds again: in float32 they may lie beyond those of the environment.
            whole = np.rint(mapped) if self.whole else mapped
            mapped = np.clip(whole, self.low, self.high).astype(self.dtype)
        return list(mapped.reshape(count, *self.shape))

    @property
    def whole(self) -> bool:
        """True if a continuous action is rounded to whole numbers."""
        return self.continuous and np.issubdtype(self.dtype, np.integer)

    @cached_property
    def range(self) -> Range:
        """The mapping of continuous actions, see `to_environment`."""
        below, above = self.low > -NO_BOUND, self.high < NO_BOUND
        low = np.where(below, self.low, -np.inf).astype(np.float32)
        high = np.where(above, self.high, np.inf).astype(np.float32)
        # A missing end is 2 away from the other one, so that the scale stays.
        first = np.where(below, low, np.where(above, high - 2, -1)).astype(np.float32)
        last = np.where(above, high, np.where(below, low + 2, 1)).astype(np.float32)
        half: NDArray[np.float32] = (last - first) / np.float32(2)
        middle: NDArray[np.float32] = (last + first) / np.float32(2)
        return Range(low, high, half, middle)
