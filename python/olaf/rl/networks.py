"""The torch learner's own networks. Imported only when torch is."""

# mypy checks this file with and without torch; without it everything of torch is Any.
# mypy: disable-error-code="import-untyped,import-not-found,misc,untyped-decorator,type-arg"

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from olaf.rl.actor_critic import Layout


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
