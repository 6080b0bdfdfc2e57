"""Asynchronous steps without a server: Algorithm 1 of iSwitch (§4.1) under a wrapped optimizer.

The program is LGC: `backward` runs on the model, which is a copy of the weights, and `step` sends
the gradient. LWU is the thread of `SumConnection.pipeline`: it applies the mean of each iteration
with the wrapped optimizer. That optimizer has parameters of its own in the meantime, the weights
(`stand_ins`), so that an update never changes the model while a gradient is computed with it.
"""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore,untyped-decorator"
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from olaf.sums.state import furthest
from olaf.torch.begin_equal import broadcast_optimizer_state
from olaf.torch.stand_ins import StandIns
from olaf.torch.ways import Way

if TYPE_CHECKING:
    from olaf.sums.collective import SumConnection

IS_OVER = "the iterations of this DistributedOptimizer are over"


class Alone(Way):
    """A single worker: each gradient is an iteration, and none is stale."""

    def __init__(
        self, optimizer: torch.optim.Optimizer, iterations: int, iteration: int, scheduler: Any
    ) -> None:
        super().__init__(optimizer)
        if not 0 <= iteration <= iterations:
            raise ValueError(f"iteration = {iteration}: must be from 0 to {iterations}")
        check_scheduler(scheduler, optimizer)
        self._scheduler = scheduler
        self._iterations = iterations
        self._iteration = self._began = iteration
        self._is_closed = False

    @property
    def iteration(self) -> int:
        """See `DistributedOptimizer.iteration`."""
        return self._iteration

    @property
    def is_over(self) -> bool:
        """See `DistributedOptimizer.is_over`."""
        return self._is_closed or self._iteration >= self._iterations

    @property
    def gradients(self) -> dict[str, int]:
        """See `PipelinedTraining.gradients`."""
        sent = self._iteration - self._began
        return {"sent": sent, "stale": 0, "surplus": 0, "without_sum": 0}

    @property
    def staleness(self) -> dict[int, int]:
        """See `PipelinedTraining.staleness`."""
        return {0: self._iteration - self._began}

    def step(self) -> None:
        """See `DistributedOptimizer.step`."""
        if self.is_over:
            raise ValueError(f"{IS_OVER}: {self._iteration} of {self._iterations}")
        self.optimizer.step()
        if self._scheduler is not None:
            self._scheduler.step()
        self._iteration += 1

    def synchronize(self) -> None:
        """Raise ValueError: there are no means to wait for."""
        refuse_means()

    @contextmanager
    def held(self) -> Iterator[None]:
        """The model has the newest weights already."""
        yield

    def close(self) -> None:
        """See `DistributedOptimizer.close`."""
        self._is_closed = True


class Pipelined(Way):
    """Several workers. The wrapped optimizer belongs to the thread until the training is over."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        connection: SumConnection,
        *,
        iterations: int,
        staleness: int,
        iteration: int,
        scheduler: Any,
        timeout_s: float | None,
    ) -> None:
        """All workers take the state of the furthest: weights, optimizer, scheduler, iteration."""
        super().__init__(optimizer)
        connection.check_pipeline()
        check_scheduler(scheduler, optimizer)
        self._weights = StandIns(optimizer)
        root = furthest(connection, iteration, timeout_s=timeout_s)
        for has_state in (optimizer, scheduler):
            if has_state is not None:
                broadcast_optimizer_state(has_state, connection, root, timeout_s=timeout_s)
        self._scheduler = scheduler
        self._gradient = torch.zeros_like(self._weights.weights)
        self._iterations = iterations
        self._is_over = self._is_held = False
        self._weights.take()
        try:
            self._training = connection.pipeline(
                self._weights.weights,
                lambda _, mean: self._update(mean),
                iterations=iterations,
                staleness=staleness,
                iteration=iteration,
                timeout_s=timeout_s,
            )
        except BaseException:
            self._weights.give_back()
            raise
        self._copies = iter(self._training)
        try:
            self._take_copy()
        except BaseException:
            self.close()
            raise

    @property
    def groups(self) -> list[Any]:
        """Read-only while the training runs: a change would count at this worker alone."""
        if self._is_over:
            return self.optimizer.param_groups
        return [MappingProxyType(group) for group in self._weights.groups()]

    @property
    def iteration(self) -> int:
        """See `DistributedOptimizer.iteration`."""
        return self._training.iteration

    @property
    def is_over(self) -> bool:
        """See `DistributedOptimizer.is_over`."""
        return self._is_over

    @property
    def gradients(self) -> dict[str, int]:
        """See `PipelinedTraining.gradients`."""
        return self._training.gradients

    @property
    def staleness(self) -> dict[int, int]:
        """See `PipelinedTraining.staleness`."""
        return self._training.staleness

    def step(self) -> None:
        """Send the gradient; then the model is a copy of the newest weights."""
        if self._is_over:
            raise ValueError(
                f"{IS_OVER}: {self.iteration} of {self._iterations}; wrap the optimizer again to "
                "go on"
            )
        self._weights.check()
        parts = self._weights.parts(self._gradient)
        for part, parameter in zip(parts, self._weights.own, strict=True):
            if parameter.grad is None:
                part.zero_()
            else:
                part.copy_(parameter.grad.detach())
        try:
            self._training.commit(self._gradient)
            self._take_copy()
        except BaseException:
            self.close()
            raise

    def synchronize(self) -> None:
        """Raise ValueError: there are no means to wait for."""
        refuse_means()

    def zero_grad(self, set_to_none: bool) -> None:
        """See `torch.optim.Optimizer.zero_grad`."""
        if self._is_over:
            self.optimizer.zero_grad(set_to_none)
            return
        for parameter in self._weights.own:
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad.detach_().zero_()

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's, a copy of the state between two updates."""
        if self._is_over:
            return super().state_dict()
        with self._training.held():
            return copy.deepcopy(super().state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load into the wrapped optimizer, once the training is over."""
        self._refuse_while_running("load_state_dict")
        super().load_state_dict(state_dict)

    def check_hook(self) -> None:
        """Raise ValueError while the training runs: iterations may be over, at some workers."""
        self._refuse_while_running("a hook of step")

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Add parameters, once the training is over."""
        self._refuse_while_running("add_param_group")
        super().add_param_group(group)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside, the model has the newest weights, and no update comes."""
        if self._is_over:
            yield
            return
        with self._training.held():
            self._weights.copy_in()
            self._is_held = True
            try:
                yield
            finally:
                self._is_held = False

    def close(self) -> None:
        """Give model and optimizer back to the program, with the newest weights and their state."""
        if self._is_over:
            return
        if self._is_held:  # the end waits for an update, and that one for the end of newest()
            raise ValueError('close or step inside of newest() in mode = "pipeline": after it')
        self._training.close()
        self._is_over = True
        self._weights.give_back()

    def _take_copy(self) -> None:
        weights = next(self._copies, None)
        if weights is None:
            self.close()
        else:
            self._weights.copy_in(weights)

    def _update(self, mean: torch.Tensor) -> None:
        """LWU: one update of the weights, the same at all workers."""
        self._weights.step(mean)
        if self._scheduler is not None:
            self._scheduler.step()

    def _refuse_while_running(self, call: str) -> None:
        if not self._is_over:
            raise ValueError(
                f'{call} in mode = "pipeline": the thread that applies the iterations has the '
                "optimizer; call it before the optimizer is wrapped, or after close()"
            )


def check_scheduler(scheduler: Any, optimizer: torch.optim.Optimizer) -> None:
    """Raise TypeError or ValueError for a scheduler that cannot be stepped once an iteration."""
    if scheduler is None:
        return
    if not isinstance(scheduler, torch.optim.lr_scheduler.LRScheduler):
        raise TypeError(
            f"scheduler is {type(scheduler).__name__}: must be a torch.optim.lr_scheduler"
        )
    if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
        raise ValueError(
            "scheduler is ReduceLROnPlateau, which needs a loss: those of the workers differ, and "
            "so would their weights"
        )
    if scheduler.optimizer is not optimizer:
        raise ValueError("scheduler is that of another optimizer: make it for the bare optimizer")


def refuse_means() -> NoReturn:
    """`synchronize` has no sense here."""
    raise ValueError(
        'synchronize in mode = "pipeline": no gradient waits for those of other workers; '
        "newest() writes the newest weights into the model"
    )
