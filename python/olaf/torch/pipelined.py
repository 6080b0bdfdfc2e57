"""Asynchronous steps without a server: Algorithm 1 of iSwitch (§4.1) under a wrapped optimizer.

The program is LGC: `backward` runs on the model, which is a copy of the weights, and `step` sends
the gradient. LWU is the thread of `SumConnection.pipeline`: it applies the mean of each iteration
with the wrapped optimizer. That optimizer has parameters of its own in the meantime, the weights,
so that an update never changes the model while a gradient is computed with it.
"""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore,untyped-decorator"

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from olaf.sums.state import furthest
from olaf.torch.begin_equal import broadcast_optimizer_state
from olaf.torch.ways import Way

if TYPE_CHECKING:
    from olaf.sums.collective import SumConnection

IS_OVER = "the iterations of this DistributedOptimizer are over"

NO_SCHEDULER = (
    'a learning rate changed between two iterations: in mode = "pipeline" each worker calls step() '
    "another number of times, so their weights would differ. Step the scheduler once an iteration: "
    "before the bare optimizer is wrapped, "
    "bare.register_step_post_hook(lambda *_: scheduler.step())"
)


class Alone(Way):
    """A single worker: each gradient is an iteration, and none is stale."""

    def __init__(self, optimizer: torch.optim.Optimizer, iterations: int, iteration: int) -> None:
        super().__init__(optimizer)
        if not 0 <= iteration < iterations:
            raise ValueError(f"iteration = {iteration}: must be from 0 to below {iterations}")
        self._iterations = iterations
        self._iteration = self._began = iteration

    @property
    def iteration(self) -> int:
        """See `DistributedOptimizer.iteration`."""
        return self._iteration

    @property
    def is_over(self) -> bool:
        """All iterations are done."""
        return self._iteration >= self._iterations

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
        self._iteration += 1

    def synchronize(self) -> None:
        """Raise ValueError: there are no means to wait for."""
        refuse_means()

    @contextmanager
    def held(self) -> Iterator[None]:
        """The model has the newest weights already."""
        yield


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
        timeout_s: float | None,
    ) -> None:
        """All workers take weights, optimizer state and iteration of the furthest worker."""
        super().__init__(optimizer)
        connection.check_pipeline()
        self._own = [p for g in optimizer.param_groups for p in g["params"] if p.requires_grad]
        self._check()
        root = furthest(connection, iteration, timeout_s=timeout_s)
        broadcast_optimizer_state(optimizer, connection, root, timeout_s=timeout_s)
        self._sizes = [parameter.numel() for parameter in self._own]
        self._weights = torch.cat([p.detach().cpu().reshape(-1) for p in self._own])
        self._gradient = torch.zeros_like(self._weights)
        self._held = [torch.nn.Parameter(part) for part in self._parts(self._weights)]
        """The weights as parameters of the wrapped optimizer, on the memory of `_weights`."""
        self._iterations = iterations
        self._is_over = False
        self._rates = self._learning_rates()
        self._exchange(self._own, self._held)
        try:
            self._training = connection.pipeline(
                self._weights,
                lambda _, mean: self._update(mean),
                iterations=iterations,
                staleness=staleness,
                iteration=iteration,
                timeout_s=timeout_s,
            )
            self._copies = iter(self._training)
        except BaseException:
            self._exchange(self._held, self._own)
            raise
        self._take_copy()

    @property
    def groups(self) -> list[Any]:
        """Read-only: a change would count at this worker alone."""
        if self._is_over:
            return self.optimizer.param_groups
        own = dict(zip(self._held, self._own, strict=True))
        return [
            MappingProxyType({**group, "params": [own.get(p, p) for p in group["params"]]})
            for group in self.optimizer.param_groups
        ]

    @property
    def iteration(self) -> int:
        """See `DistributedOptimizer.iteration`."""
        return self._training.iteration

    @property
    def is_over(self) -> bool:
        """All iterations are done, or the training has failed, or `close` was called."""
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
        self._check()
        for part, parameter in zip(self._parts(self._gradient), self._own, strict=True):
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
        for parameter in self._own:
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad.detach_().zero_()

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's, between two updates."""
        with self._training.held():
            return super().state_dict()

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
        with self._training.held():
            self._copy_in()
            yield

    def close(self) -> None:
        """Give model and optimizer back to the program, with the newest weights and their state."""
        if self._is_over:
            return
        self._training.close()
        self._is_over = True
        self._copy_in()
        for held in self._held:
            held.grad = None
        self._exchange(self._held, self._own)

    def _take_copy(self) -> None:
        copy = next(self._copies, None)
        if copy is None:
            self.close()
        else:
            self._copy_in(copy)

    @torch.no_grad()
    def _copy_in(self, weights: torch.Tensor | None = None) -> None:
        """Write the weights into the model."""
        parts = self._parts(self._weights if weights is None else weights)
        torch._foreach_copy_([parameter.detach() for parameter in self._own], parts)

    def _update(self, mean: torch.Tensor) -> None:
        """LWU: one update of the weights, the same at all workers."""
        if self._learning_rates() != self._rates:
            raise ValueError(NO_SCHEDULER)
        for held, part in zip(self._held, self._parts(mean), strict=True):
            held.grad = part
        self.optimizer.step()  # with its hooks, which may change the rates
        self._rates = self._learning_rates()

    def _learning_rates(self) -> list[float]:
        return [float(group["lr"]) for group in self.optimizer.param_groups if "lr" in group]

    def _parts(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """Views on a flat tensor, in the shapes of the parameters."""
        parts = flat.split(self._sizes)  # type: ignore[no-untyped-call]
        return [part.view(p.shape) for part, p in zip(parts, self._own, strict=True)]

    def _exchange(self, old: list[Any], new: list[Any]) -> None:
        """Put other parameters in the places of those of the wrapped optimizer."""
        other = dict(zip(old, new, strict=True))
        for group in self.optimizer.param_groups:
            group["params"] = [other.get(parameter, parameter) for parameter in group["params"]]
        state = self.optimizer.state
        for parameter, to in other.items():
            if parameter in state:
                state[to] = {
                    # Step counts stay where they are: optimizers keep them on the CPU.
                    name: value.to(to.device) if _is_like(value, parameter) else value
                    for name, value in state.pop(parameter).items()
                }

    def _check(self) -> None:
        """Raise ValueError for parameters and habits that this mode does not have."""
        for parameter in self._own:
            if parameter.dtype != torch.float32 or not parameter.requires_grad:
                what = f"is {parameter.dtype}" if parameter.requires_grad else "is frozen now"
                raise ValueError(
                    f"a parameter of the shape {tuple(parameter.shape)} {what}: "
                    'mode = "pipeline" trains the float32 parameters that need a gradient when the '
                    "optimizer is wrapped"
                )
            if parameter.grad is not None and parameter.grad.layout != torch.strided:
                raise ValueError(
                    f"the gradient of a parameter of the shape {tuple(parameter.shape)} is sparse, "
                    "and a switch sums dense arrays: make the embedding with sparse=False"
                )
        if not self._own:
            raise ValueError("the optimizer has no parameters that need a gradient")

    def _refuse_while_running(self, call: str) -> None:
        if not self._is_over:
            raise ValueError(
                f'{call} in mode = "pipeline": the thread that applies the iterations has the '
                "optimizer; call it before the optimizer is wrapped, or after close()"
            )


def refuse_means() -> NoReturn:
    """`synchronize` has no sense here."""
    raise ValueError(
        'synchronize in mode = "pipeline": no gradient waits for those of other workers; '
        "newest() writes the newest weights into the model"
    )


def _is_like(value: Any, parameter: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.shape == parameter.shape
