"""The torch learner's own networks. Imported only when torch is."""

# mypy checks this file with and without torch; without it everything of torch is Any.
# mypy: disable-error-code="import-untyped,import-not-found,misc,untyped-decorator,type-arg"

import math
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from olaf.rl.actor_critic import Layout
from olaf.rl.learner import LearnerConfig
from olaf.rl.spaces import Spaces


class ActorCritic(nn.Module):
    """The built-in learner's network as a torch module: same layout, same first weights.

    All parameters lie in ``flat``, float32 ``(layout.size,)``, in ``Layout``'s order.
    """

    def __init__(self, layout: Layout, weights: NDArray[np.float32]) -> None:
        super().__init__()
        self.layout = layout
        self.flat = nn.Parameter(torch.from_numpy(weights.copy()))

    def view(self, name: str) -> Tensor:
        """Return one of the layout's arrays, as part of the graph."""
        entry = next(entry for entry in self.layout.entries if entry.name == name)
        return self.flat[entry.offset : entry.offset + entry.size].view(entry.shape)

    @property
    def log_std(self) -> Tensor:
        """``(actions,)``; only for continuous actions."""
        return self.view("log_std")

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """``(batch, observation)`` to policy ``(batch, actions)`` and value ``(batch,)``."""
        hidden = observations
        for index in range(len(self.layout.hidden)):
            weight, bias = self.view(f"trunk{index}.weight"), self.view(f"trunk{index}.bias")
            hidden = torch.tanh(torch.addmm(bias, hidden, weight))
        outputs = torch.addmm(self.view("heads.bias"), hidden, self.view("heads.weight"))
        return outputs[:, :-1], outputs[:, -1]


class Network(nn.Module):
    """The default network where the embedded one does not fit: images, and a memory.

    Convolutions of images, then the tanh layers of `LearnerConfig.hidden`, then with
    `LearnerConfig.recurrent` an LSTM, then a policy head and a value head. Its first weights come
    from torch's generator, with the embedded network's gains.
    """

    def __init__(self, config: LearnerConfig, spaces: Spaces) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        below = spaces.observation
        if spaces.seen:
            layers, below = convolutions(spaces.seen)
        for low, high in pairwise([below, *config.hidden]):
            layers += [nn.Linear(low, high), nn.Tanh()]
            below = high
        self.trunk = nn.Sequential(*layers)
        self.lstm: nn.LSTM | None = None
        if config.recurrent == "lstm":
            self.lstm = memory_of(below, config.memory)
            below = config.memory
        self.policy, self.value = nn.Linear(below, spaces.actions), nn.Linear(below, 1)
        if spaces.continuous:
            self.log_std = nn.Parameter(torch.full((spaces.actions,), config.log_std))
        for layer in self.modules():
            if isinstance(layer, nn.Linear | nn.Conv2d):
                heads = {id(self.policy): 0.01, id(self.value): 1.0}
                nn.init.orthogonal_(layer.weight, heads.get(id(layer), math.sqrt(2)))
                bias: Any = layer.bias
                nn.init.zeros_(bias)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """``(batch, *observation_shape)`` to policy ``(batch, actions)``, value ``(batch,)``.

        With a memory, each observation is the first of an episode.
        """
        hidden = self.trunk(observations)
        if self.lstm is not None:
            hidden = self.lstm(hidden[:, None])[0][:, 0]
        return self.policy(hidden), self.value(hidden)[:, 0]

    def sequences(
        self, observations: Tensor, lengths: NDArray[np.int64], memories: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Policy and value of each step of several sequences, and the memory after each sequence.

        observations: ``(steps, *observation_shape)``, one sequence after the other. memories:
        ``(sequences, 2 * memory)``, those before the first steps. The memory after a sequence is
        right only where all sequences are equally long.
        """
        assert self.lstm is not None
        hidden = self.trunk(observations)
        longest = int(lengths.max())
        # Steps beyond a sequence's end are zero, come after all others, and are left out below.
        is_step = torch.from_numpy(np.arange(longest) < lengths[:, None]).to(hidden.device)
        padded = hidden.new_zeros(len(lengths), longest, hidden.shape[1])
        padded[is_step] = hidden
        before = [half.contiguous()[None] for half in memories.chunk(2, dim=1)]
        found, after = self.lstm(padded, tuple(before))
        hidden = found[is_step]
        return self.policy(hidden), self.value(hidden)[:, 0], torch.cat([*after], dim=2)[0]


def memory_of(inputs: int, units: int) -> nn.LSTM:
    """An LSTM with orthogonal weights, which at first forgets little."""
    lstm = nn.LSTM(inputs, units, batch_first=True)
    for name, tensor in lstm.named_parameters():
        if name.startswith("weight"):
            nn.init.orthogonal_(tensor)
        else:
            nn.init.zeros_(tensor)
    bias: Any = lstm.bias_ih_l0
    with torch.no_grad():
        bias[units : 2 * units] = 1  # the gates are input, forget, cell, output
    return lstm


LARGE = 36
"""Side of the smallest image that the layers of Mnih et al. 2015 fit."""


def convolutions(shape: tuple[int, ...]) -> tuple[list[nn.Module], int]:
    """Layers for images of bytes ``(batch, *shape)``, and the number of their outputs.

    From `LARGE` pixels on the layers of Mnih et al. 2015 (Nature); two layers of 3 by 3 for smaller
    images. The channels are the last axis, or the first one if it is the shortest.
    """
    as_channels = Channels(shape)
    channels, *sides = as_channels.shape
    if min(sides) >= LARGE:
        filters = [(32, 8, 4, 0), (64, 4, 2, 0), (64, 3, 1, 0)]
    else:
        filters = [(16, 3, 1, 1), (32, 3, 2 if min(sides) >= 8 else 1, 1)]
    layers: list[nn.Module] = [as_channels]
    for width, kernel, stride, padding in filters:
        layers += [nn.Conv2d(channels, width, kernel, stride, padding), nn.ReLU()]
        channels = width
        sides = [(side + 2 * padding - kernel) // stride + 1 for side in sides]
    return [*layers, nn.Flatten()], channels * math.prod(sides)


class Channels(nn.Module):
    """Bytes ``(batch, *shape)`` as numbers 0 to 1, with the channels first, as torch wants it."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.is_gray = len(shape) == 2
        self.is_first = not self.is_gray and shape[0] < min(shape[1:])
        self.shape = (1, *shape) if self.is_gray else shape
        if not (self.is_gray or self.is_first):
            self.shape = (shape[-1], *shape[:-1])

    def forward(self, images: Tensor) -> Tensor:
        """``(batch, *shape)`` to ``(batch, channels, height, width)``."""
        images = images / 255
        if self.is_gray:
            return images[:, None]
        return images if self.is_first else images.permute(0, 3, 1, 2)
