"""A policy as a torch module, for TorchScript and ONNX. Imported only when it is used."""

# mypy checks this file with and without torch; without it everything of torch is Any.
# mypy: disable-error-code="import-untyped,import-not-found,misc,no-any-return"

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from olaf.rl.actor_critic import Layout
from olaf.rl.moments import LIMIT
from olaf.rl.spaces import Spaces


class BuiltIn(nn.Module):
    """The built-in network from ordinary layers: a tanh trunk, a policy head, a value head."""

    def __init__(self, layout: Layout, arrays: Mapping[str, NDArray[np.float32]]) -> None:
        super().__init__()
        widths = [layout.observation, *layout.hidden]
        layers: list[nn.Module] = []
        for index, (below, width) in enumerate(pairwise(widths)):
            bias = arrays[f"trunk{index}.bias"]
            layers += [_linear(below, width, arrays[f"trunk{index}.weight"], bias), nn.Tanh()]
        self.trunk = nn.Sequential(*layers)
        weight, bias = arrays["heads.weight"], arrays["heads.bias"]
        self.policy = _linear(widths[-1], layout.actions, weight[:, :-1], bias[:-1])
        self.value = _linear(widths[-1], 1, weight[:, -1:], bias[-1:])

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """``(batch, observation)`` to policy ``(batch, actions)`` and value ``(batch, 1)``."""
        hidden = self.trunk(observation)
        return self.policy(hidden), self.value(hidden)


def _linear(
    below: int, width: int, weight: NDArray[np.float32], bias: NDArray[np.float32]
) -> nn.Linear:
    layer = nn.Linear(below, width)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(np.ascontiguousarray(weight.T)))
        layer.bias.copy_(torch.from_numpy(np.array(bias)))
    return layer


class Policy(nn.Module):
    """Adds the greedy action, in the environment's form, to a network's outputs."""

    def __init__(
        self,
        module: Any,
        spaces: Spaces,
        normalisation: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None,
    ):
        """normalisation: shift and factor of each feature of the observations."""
        super().__init__()
        self.normalises = normalisation is not None
        for name, each in zip(("shift", "factor"), normalisation or (), strict=False):
            self.register_buffer(f"observation_{name}", torch.from_numpy(np.array(each)))
        self.module = module
        self.continuous = spaces.continuous
        self.parts = list(spaces.discrete)
        self.register_buffer("starts", torch.tensor(spaces.starts, dtype=torch.int64))
        self.whole = spaces.whole
        self.shape = spaces.shape
        for name, array in spaces.range._asdict().items():
            self.register_buffer(f"range_{name}", torch.from_numpy(np.array(array)))

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """``(batch, *shape)`` to action, policy ``(batch, actions)`` and value ``(batch, 1)``."""
        own: Any = self
        if self.normalises:
            seen = (observation - own.observation_shift) * own.observation_factor
            observation = torch.clamp(seen, -LIMIT, LIMIT)
        policy, value = self.module(observation)
        value = value.reshape(-1, 1)
        if not self.continuous:
            likeliest = [part.argmax(dim=1) for part in torch.split(policy, self.parts, dim=1)]
            action = torch.stack(likeliest, dim=1) + own.starts
            return action.reshape(-1, *self.shape), policy, value
        moved = policy * own.range_half + own.range_middle
        action = torch.minimum(torch.maximum(moved, own.range_low), own.range_high)
        if self.whole:
            action = torch.round(action)
        return action.reshape(-1, *self.shape), policy, value
