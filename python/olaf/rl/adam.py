"""The embedded learner's optimiser."""

import numpy as np
from numpy.typing import NDArray


class Adam:
    """Adam (Kingma and Ba 2015), in place, without allocating per step."""

    def __init__(self, size: int, beta1: float, beta2: float, epsilon: float = 1e-5) -> None:
        self._mean = np.zeros(size, np.float32)
        self._square = np.zeros(size, np.float32)
        self._scratch = np.zeros(size, np.float32)
        self._beta1, self._beta2, self._epsilon = beta1, beta2, epsilon
        self._steps = 0

    def step(
        self, weights: NDArray[np.float32], gradient: NDArray[np.float32], rate: float
    ) -> None:
        """Move ``weights`` downhill by one step of size ``rate``; both ``(size,)``."""
        self._steps += 1
        scratch = self._scratch
        np.multiply(gradient, np.float32(1 - self._beta1), out=scratch)
        self._mean *= np.float32(self._beta1)
        self._mean += scratch
        np.multiply(gradient, gradient, out=scratch)
        scratch *= np.float32(1 - self._beta2)
        self._square *= np.float32(self._beta2)
        self._square += scratch
        # The bias corrections of the moments, folded into the rate and into epsilon.
        root = float(np.sqrt(1 - self._beta2**self._steps))
        np.sqrt(self._square, out=scratch)
        scratch += np.float32(self._epsilon * root)
        np.divide(self._mean, scratch, out=scratch)
        scratch *= np.float32(rate * root / (1 - self._beta1**self._steps))
        weights -= scratch
