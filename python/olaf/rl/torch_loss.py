"""TorchRL's PPO loss on a module that gives policy and value. Imported only when torch is."""

# mypy checks this file with and without torch; without it everything of torch is Any.
# mypy: disable-error-code="import-untyped,import-not-found,misc,untyped-decorator,type-arg"

from functools import partial
from typing import Any, ClassVar

import torch
from tensordict.nn import (
    ProbabilisticTensorDictModule,
    ProbabilisticTensorDictSequential,
    TensorDictModule,
)
from torch import Tensor, nn
from torchrl.objectives import ClipPPOLoss

from olaf.rl.distributions import MASKED
from olaf.rl.learner import LearnerConfig
from olaf.rl.spaces import Spaces


def make_loss(module: nn.Module, config: LearnerConfig, spaces: Spaces) -> ClipPPOLoss:
    """TorchRL's clipped loss on a module that gives policy and value in one pass."""
    continuous = spaces.continuous
    names = ["loc", "scale"] if continuous else ["logits"]
    keyed = TensorDictModule(
        Keyed(module, continuous), in_keys=["observation", "mask"], out_keys=[*names, "state_value"]
    )
    distribution: Any = torch.distributions.Categorical
    if continuous:
        distribution = DiagonalNormal
    elif len(spaces.discrete) > 1:
        distribution = partial(Choices, parts=spaces.discrete)
    actor = ProbabilisticTensorDictSequential(
        keyed,
        ProbabilisticTensorDictModule(
            in_keys=names, out_keys=["action"], distribution_class=distribution
        ),
    )
    return ClipPPOLoss(
        actor_network=actor,
        critic_network=keyed,
        functional=False,
        clip_epsilon=config.clip,
        entropy_coeff=config.entropy,
        # TorchRL's l2 is (v - R)^2, the built-in learner's is half of that.
        critic_coeff=config.value / 2,
        loss_critic_type="l2",
        normalize_advantage=False,  # already done, as in the built-in learner
    )


class Keyed(nn.Module):
    """A module's outputs under TorchRL's names: distribution, then value (.., 1)."""

    def __init__(self, module: nn.Module, continuous: bool) -> None:
        super().__init__()
        self.module: Any = module
        self.continuous = continuous

    def forward(self, observations: Tensor, masks: Tensor | None) -> tuple[Tensor, ...]:
        """``(logits, value)``, or ``(loc, scale, value)`` for continuous actions.

        masks: ``(batch, actions)``, False for invalid actions; None if all are valid.
        """
        policy, value = self.module(observations)
        value = value.reshape(-1, 1)
        if not self.continuous:
            return (policy if masks is None else policy.masked_fill(~masks, MASKED)), value
        return policy, torch.exp(self.module.log_std).expand_as(policy), value


class Choices(torch.distributions.Distribution):
    """Independent choices: one log probability and one entropy per step, sums over the parts.

    logits: those of all parts side by side, ``(batch, actions)``. Actions are ``(batch, parts)``.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(self, logits: Tensor, parts: tuple[int, ...]) -> None:
        super().__init__(logits.shape[:-1], torch.Size([len(parts)]), validate_args=False)
        self.parts: list[Any] = [
            torch.distributions.Categorical(logits=part, validate_args=False)
            for part in torch.split(logits, list(parts), dim=-1)
        ]

    def log_prob(self, value: Tensor) -> Tensor:
        """``(batch,)`` for actions ``(batch, parts)``."""
        chosen = zip(self.parts, value.unbind(-1), strict=True)
        return torch.stack([part.log_prob(index) for part, index in chosen]).sum(0)

    def entropy(self) -> Tensor:
        """``(batch,)``"""
        return torch.stack([part.entropy() for part in self.parts]).sum(0)


class DiagonalNormal(torch.distributions.Independent):
    """Independent normal dimensions: one log probability and one entropy per step."""

    def __init__(self, loc: Tensor, scale: Tensor) -> None:
        super().__init__(torch.distributions.Normal(loc, scale, validate_args=False), 1)
