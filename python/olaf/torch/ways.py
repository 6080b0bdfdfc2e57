"""How the steps of a wrapped optimizer reach the network: one class a mode of the wrapper."""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore,no-any-return"

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from olaf.push_pull.following import PATIENCE_S, Follower

if TYPE_CHECKING:
    import torch

    from olaf.push_pull.connection import Connection
    from olaf.torch.gradient_sums import GradientSums


class Way:
    """This class sends nothing: it is for a worker without others. The other ways inherit it."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.reward = 0.0
        """Mean reward of an episode, sent with the next push."""

    @property
    def groups(self) -> list[Any]:
        """The groups, with the parameters of the program's model."""
        return self.optimizer.param_groups

    def step(self) -> None:
        """See `DistributedOptimizer.step`."""
        self.optimizer.step()

    def synchronize(self) -> None:
        """See `DistributedOptimizer.synchronize`."""

    def no_sync(self) -> AbstractContextManager[None]:
        """See `DistributedOptimizer.no_sync`."""
        return nullcontext()

    def zero_grad(self, set_to_none: bool) -> None:
        """See `torch.optim.Optimizer.zero_grad`."""
        self.optimizer.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's."""
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load into the wrapped optimizer."""
        self.optimizer.load_state_dict(state_dict)

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Add parameters to the wrapped optimizer."""
        self.optimizer.add_param_group(group)

    def check_hook(self) -> None:
        """Raise ValueError if it is too late for a hook of `step`."""

    def close(self) -> None:
        """See `DistributedOptimizer.close`."""


class Summed(Way):
    """`step` applies the mean of all workers' gradients."""

    def __init__(self, optimizer: torch.optim.Optimizer, sums: GradientSums) -> None:
        super().__init__(optimizer)
        self._sums = sums

    def step(self) -> None:
        """See `DistributedOptimizer.step`."""
        self._sums.ensure()
        self.optimizer.step()
        self._sums.applied()

    def synchronize(self) -> None:
        """See `DistributedOptimizer.synchronize`."""
        self._sums.ensure()

    def no_sync(self) -> AbstractContextManager[None]:
        """See `DistributedOptimizer.no_sync`."""
        return self._sums.held()

    def zero_grad(self, set_to_none: bool) -> None:
        """See `torch.optim.Optimizer.zero_grad`."""
        self._sums.applied()
        super().zero_grad(set_to_none)


class Pushed(Way):
    """`step` trains locally. What it changed goes to the queue, and the job's model comes back."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        connection: Connection,
        *,
        every: int = 1,
        patience_s: float = PATIENCE_S,
        join_timeout_s: float | None = None,
    ) -> None:
        """every: steps between two exchanges. The model joins the job here."""
        super().__init__(optimizer)
        if every < 1:
            raise ValueError(f"every = {every}: must be at least 1 step")
        self._every = every
        self._model = [p for group in optimizer.param_groups for p in group["params"]]
        if not self._model:
            raise ValueError("the optimizer has no parameters: there is nothing to train together")
        self._connection = connection
        self._follower = Follower(
            connection,
            self._model,
            patience_s=patience_s,
            join_timeout_s=10.0 if join_timeout_s is None else join_timeout_s,
        )
        self._steps = 0

    def step(self) -> None:
        """See `DistributedOptimizer.step`."""
        self.optimizer.step()
        self._steps += 1
        if self._steps == self._every:
            self.synchronize()

    def synchronize(self) -> None:
        """Exchange now."""
        self._steps = 0
        self._follower.exchange(reward=self.reward)

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Raise ValueError: the job's model has the size of the join."""
        raise ValueError(
            'mode = "push": the job\'s model has the parameters that the optimizer had when it was '
            "wrapped, and a group cannot be added; wrap an optimizer that has them all"
        )

    def close(self) -> None:
        """Push what was not pushed yet, and let it arrive."""
        if self._steps:
            self.synchronize()
        self._connection.flush(2.0)
