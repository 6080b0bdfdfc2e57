"""Dense networks on one flat vector, as iSwitch sends it: values and gradients, in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class Dense:
    """Layers with tanh between them; the last one is linear."""

    def __init__(self, sizes: Sequence[int]) -> None:
        """sizes: inputs, units of each hidden layer, outputs."""
        self._shapes = list(pairwise(sizes))
        self.size = sum(inputs * outputs + outputs for inputs, outputs in self._shapes)
        """Number of parameters."""

    def initial(self, random: np.random.Generator, last: float = 1.0) -> Floats:
        """Weights of variance 1 / inputs; the last layer's are ``last`` times that size."""
        weights = np.zeros(self.size, np.float32)
        layers = self._layers(weights)
        for matrix, _ in layers:
            matrix[...] = random.normal(size=matrix.shape) / np.sqrt(matrix.shape[0])
        layers[-1][0][...] *= last
        return weights

    def forward(self, weights: Floats, inputs: Floats) -> list[Floats]:
        """The inputs ``(batch, inputs)`` and the values of each layer; the last are the outputs."""
        values = [inputs]
        layers = self._layers(weights)
        for at, (matrix, bias) in enumerate(layers):
            sums = values[-1] @ matrix + bias
            values.append(np.tanh(sums) if at < len(layers) - 1 else sums)
        return values

    def backward(
        self, weights: Floats, values: Sequence[Floats], slope: Floats
    ) -> tuple[Floats, Floats]:
        """Gradients of a loss by the weights, ``(size,)``, and by the inputs.

        values: what `forward` gave. slope: the loss's gradient by the outputs.
        """
        gradient = np.empty(self.size, np.float32)
        parts, layers = self._layers(gradient), self._layers(weights)
        for at in reversed(range(len(layers))):
            if at < len(layers) - 1:
                slope = slope * (1 - values[at + 1] ** 2)
            np.matmul(values[at].T, slope, out=parts[at][0])
            parts[at][1][...] = slope.sum(0)
            slope = slope @ layers[at][0].T
        return gradient, slope

    def _layers(self, flat: Floats) -> list[tuple[Floats, Floats]]:
        """Matrix and bias of each layer, on the vector's memory."""
        layers, at = [], 0
        for inputs, outputs in self._shapes:
            until = at + inputs * outputs
            layers.append((flat[at:until].reshape(inputs, outputs), flat[until : until + outputs]))
            at = until + outputs
        return layers


def softmax(values: Floats) -> Floats:
    """Probabilities of each row."""
    powers: Any = np.exp(values - values.max(-1, keepdims=True))
    shares: Floats = powers / powers.sum(-1, keepdims=True)
    return shares
