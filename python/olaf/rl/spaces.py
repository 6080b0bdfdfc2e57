"""Observations and actions of an environment, as a policy sees them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Spaces:
    """Observations and actions of an environment."""

    observation: int
    """Number of floats in one observation."""

    actions: int
    """Number of discrete actions, or of dimensions of a continuous one."""

    continuous: bool

    start: int
    """First value of a discrete action space."""

    low: NDArray[np.float32]
    """Lower bounds of a continuous action, ``(actions,)``; empty for discrete ones."""

    high: NDArray[np.float32]

    shape: tuple[int, ...]
    """Shape in which the environment wants a continuous action."""

    seen: tuple[int, ...] = ()
    """Shape of one observation that is not flat: ``(height, width, channels)`` of an image."""

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one observation; ``(observation,)`` if it is flat."""
        return self.seen or (self.observation,)

    def to_environment(self, actions: NDArray[np.float32]) -> NDArray[np.float32]:
        """Map a policy's actions ``(count, actions)`` to the environment's ``(count, *shape)``.

        -1..1 becomes the bounds, clipped; dimensions without finite bounds pass unchanged.
        """
        mapped: NDArray[np.float32] = np.clip(
            actions * self._half + self._middle, self._lowest, self._highest
        )
        return mapped.reshape(len(actions), *self.shape)

    @cached_property
    def _bounded(self) -> NDArray[np.bool_]:
        return np.isfinite(self.low) & np.isfinite(self.high)

    @cached_property
    def _ends(self) -> NDArray[np.float32]:
        low, high = np.where(self._bounded, (self.low, self.high), ((-1,), (1,)))
        return np.array((low, high), np.float32)

    @cached_property
    def _half(self) -> NDArray[np.float32]:
        low, high = self._ends
        half: NDArray[np.float32] = (high - low) / 2
        return half

    @cached_property
    def _middle(self) -> NDArray[np.float32]:
        low, high = self._ends
        middle: NDArray[np.float32] = (high + low) / 2
        return middle

    @cached_property
    def _lowest(self) -> NDArray[np.float32]:
        return np.where(self._bounded, self.low, -np.inf).astype(np.float32)

    @cached_property
    def _highest(self) -> NDArray[np.float32]:
        return np.where(self._bounded, self.high, np.inf).astype(np.float32)
