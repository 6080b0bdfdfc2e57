"""The embedded learner's actor-critic: one flat float32 vector and named views on it.

A trunk of tanh layers feeds a policy head and a value head. All parameters are in one contiguous
vector, because this vector is sent: OLAF's prototype sends a model as one frame (OLAF §7).
8-40-40 with four actions is 2,205 floats, 8,820 bytes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Real = TypeVar("Real", np.float32, np.float64)
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Entry:
    """One named array of the flat vector."""

    name: str
    shape: tuple[int, ...]
    offset: int

    @property
    def size(self) -> int:
        """Number of floats."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """The position of each weight of a network in the flat vector.

    Order: ``trunk0.weight`` (observation, hidden0), ``trunk0.bias`` (hidden0), .. ,
    ``heads.weight`` (hidden, actions + 1), ``heads.bias`` (actions + 1), and for continuous
    actions ``log_std`` (actions). The heads are one matrix whose last column is the value, so that
    one product computes both.
    """

    observation: int
    hidden: tuple[int, ...]
    actions: int
    continuous: bool = False
    parts: tuple[int, ...] = ()
    """Number of choices of each part of a discrete action; they add up to `actions`. Empty: one
    part."""

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """All arrays in order of offset, without gaps."""
        shapes: list[tuple[str, tuple[int, ...]]] = []
        below = self.observation
        for index, width in enumerate(self.hidden):
            shapes += [(f"trunk{index}.weight", (below, width)), (f"trunk{index}.bias", (width,))]
            below = width
        outputs = self.actions + 1
        shapes += [("heads.weight", (below, outputs)), ("heads.bias", (outputs,))]
        if self.continuous:
            shapes.append(("log_std", (self.actions,)))
        entries: list[Entry] = []
        offset = 0
        for name, shape in shapes:
            entries.append(Entry(name, shape, offset))
            offset += entries[-1].size
        return tuple(entries)

    @cached_property
    def size(self) -> int:
        """Number of parameters."""
        last = self.entries[-1]
        return last.offset + last.size

    @cached_property
    def _slices(self) -> tuple[tuple[str, tuple[int, ...], slice], ...]:
        return tuple((e.name, e.shape, slice(e.offset, e.offset + e.size)) for e in self.entries)

    def views(self, flat: NDArray[Real]) -> dict[str, NDArray[Real]]:
        """Named views, without copies, on ``flat`` (shape ``(size,)``)."""
        if flat.shape != (self.size,):
            raise ValueError(f"flat vector has shape {flat.shape}, the layout has {self.size}")
        return {name: flat[part].reshape(shape) for name, shape, part in self._slices}

    def initial(self, rng: np.random.Generator, log_std: float = 0.0) -> NDArray[np.float32]:
        """Orthogonal weights, float32 ``(size,)``: gain sqrt(2) in the trunk, 0.01 policy, 1 value.

        log_std: first logarithm of the Gaussian's standard deviation.
        """
        flat = np.zeros(self.size, np.float32)
        views = self.views(flat)
        for index in range(len(self.hidden)):
            weight = views[f"trunk{index}.weight"]
            weight[:] = orthogonal(rng, weight.shape, np.sqrt(2.0))
        heads = views["heads.weight"]
        heads[:, :-1] = orthogonal(rng, (heads.shape[0], self.actions), 0.01)
        heads[:, -1:] = orthogonal(rng, (heads.shape[0], 1), 1.0)
        if self.continuous:
            views["log_std"][:] = log_std
        return flat


def orthogonal(rng: np.random.Generator, shape: Sequence[int], gain: float) -> Floats:
    """``gain`` times a matrix ``shape`` with orthonormal rows or columns, whichever are fewer."""
    rows, columns = shape
    tall = rng.standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(tall)
    q = q * np.sign(np.diagonal(r))  # makes the draw uniform, and equal with every LAPACK
    scaled: Floats = gain * (q if rows >= columns else q.T)
    return scaled


def forward(
    layout: Layout, views: dict[str, NDArray[Real]], observations: NDArray[Real]
) -> tuple[NDArray[Real], list[NDArray[Real]]]:
    """Outputs ``(batch, actions + 1)``, value last, and the trunk's activations, input first."""
    activations = [observations]
    for index in range(len(layout.hidden)):
        hidden = activations[-1] @ views[f"trunk{index}.weight"]
        hidden += views[f"trunk{index}.bias"]
        activations.append(np.tanh(hidden, out=hidden))
    outputs = activations[-1] @ views["heads.weight"]
    outputs += views["heads.bias"]
    return outputs, activations


def backward(
    layout: Layout,
    views: dict[str, NDArray[Real]],
    activations: list[NDArray[Real]],
    d_outputs: NDArray[Real],
    gradients: dict[str, NDArray[Real]],
) -> None:
    """Write into ``gradients`` (views on a flat vector) the gradient of all but ``log_std``.

    d_outputs: derivative of the loss by the outputs, ``(batch, actions + 1)``.
    """
    np.matmul(activations[-1].T, d_outputs, out=gradients["heads.weight"])
    np.sum(d_outputs, axis=0, out=gradients["heads.bias"])
    d_hidden = d_outputs @ views["heads.weight"].T
    for index in range(len(layout.hidden) - 1, -1, -1):
        active = activations[index + 1]
        d_hidden *= 1 - active * active
        np.matmul(activations[index].T, d_hidden, out=gradients[f"trunk{index}.weight"])
        np.sum(d_hidden, axis=0, out=gradients[f"trunk{index}.bias"])
        if index:
            d_hidden = d_hidden @ views[f"trunk{index}.weight"].T
