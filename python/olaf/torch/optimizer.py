"""Any optimizer of torch, with the mean gradient of all workers.

    job = olaf.connect_sum("10.0.0.1:5555", workers=4)
    olaf.torch.broadcast_parameters(model, job)
    optimizer = olaf.torch.DistributedOptimizer(optimizer, through=job)

`backward` then leaves the mean over all workers in each gradient; nothing else changes.
"""

# mypy: disable-error-code="import-untyped,import-not-found,misc,no-any-return,override"

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, NoReturn

import torch

from olaf.sums.collective import SumConnection
from olaf.torch.gradient_sums import GradientSums

MODES = ("sum",)
BUCKET_BYTES = 1 << 20
"""Small enough that the sum of the last layers begins early, large enough for the line rate."""


class DistributedOptimizer(torch.optim.Optimizer):
    """The wrapped optimizer of a worker. Its gradients are means over all workers.

    It is a `torch.optim.Optimizer`, for learning-rate schedulers and `torch.amp.GradScaler`.
    Groups, state and `state_dict` are those of the wrapped optimizer: a checkpoint fits both.
    """

    _step_supports_amp_scaling = False  # of a fused optimizer: GradScaler then unscales itself

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        *,
        through: SumConnection | None,
        mode: Literal["sum"] = "sum",
        overlap: bool = True,
        bucket_bytes: int = BUCKET_BYTES,
        exact: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        """Every worker wraps the same parameters in the same order.

        optimizer: any, except those that need a closure.
        through: the worker's connection, `olaf.connect_sum`; None for a single worker, without a
        switch.
        mode: "sum", the mean gradient of all workers in each step.
        overlap: the sums begin while `backward` runs, and its end waits for them. With False
        `step` sums, and `backward` leaves this worker's own gradients.
        bucket_bytes: bytes that are summed together, at least 1.
        exact: the same bits in every run, see `SumConnection.all_reduce`; "reduce" alone.
        timeout_s: time limit of each sum; None uses ``operation_timeout_ms`` of the connection.

        Raises ValueError and TypeError for an argument that cannot be.
        """
        # differs: Optimizer.__init__ is not called: groups and state are the wrapped optimizer's.
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(
                f"optimizer is {type(optimizer).__name__}: must be a torch.optim.Optimizer"
            )
        if isinstance(optimizer, DistributedOptimizer):
            raise ValueError("optimizer is a DistributedOptimizer already: wrap it once")
        if isinstance(optimizer, torch.optim.LBFGS):
            raise ValueError(f"optimizer is LBFGS, which needs a closure: {NO_CLOSURE}")
        if mode not in MODES:
            raise ValueError(f"mode = {mode!r}: must be one of {', '.join(MODES)}")
        if through is not None and not isinstance(through, SumConnection):
            raise TypeError(
                f"through is {type(through).__name__}: must be a connection of olaf.connect_sum, "
                "or None for a single worker"
            )
        if bucket_bytes < 1:
            raise ValueError(f"bucket_bytes = {bucket_bytes}: must be at least 1")
        self._optimizer = optimizer
        self._sums: GradientSums | None = None
        if through is not None and not through.is_alone:
            self._sums = GradientSums(
                optimizer,
                through,
                overlap=overlap,
                bucket_bytes=bucket_bytes,
                exact=exact,
                timeout_s=timeout_s,
            )

    def step(self, closure: None = None) -> None:
        """One step of the wrapped optimizer, with the mean gradients.

        It sums first what `backward` has not: gradients from inside `no_sync`, or with
        ``overlap=False``, or after an error. Raises as `SumConnection.all_reduce` does; nothing
        has been applied then.
        """
        if closure is not None:
            raise ValueError(f"step(closure) is not possible: {NO_CLOSURE}")
        if self._sums is None:
            self._optimizer.step()
            return
        self._sums.ensure()
        self._optimizer.step()
        self._sums.applied()

    def synchronize(self) -> None:
        """Replace the gradients by their means now, if they are not means yet. ::

            with optimizer.no_sync():
                loss.backward()  # this worker's own gradients
            optimizer.synchronize()  # means
            optimizer.step()

        Raises as `step` does.
        """
        if self._sums is not None:
            self._sums.ensure()

    def no_sync(self) -> AbstractContextManager[None]:
        """`backward` inside adds to this worker's own gradients, and sums nothing."""
        return nullcontext() if self._sums is None else self._sums.held()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """See `torch.optim.Optimizer.zero_grad`."""
        if self._sums is not None:
            self._sums.applied()
        self._optimizer.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's, which either of the two can load."""
        return self._optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """See `torch.optim.Optimizer.load_state_dict`."""
        self._optimizer.load_state_dict(state_dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, at all workers at the same point of the program."""
        self._optimizer.add_param_group(param_group)

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The wrapped optimizer's groups."""
        return self._optimizer.param_groups

    @property
    def state(self) -> Any:
        """The wrapped optimizer's state of each parameter."""
        return self._optimizer.state

    @property
    def defaults(self) -> dict[str, Any]:
        """The wrapped optimizer's default options."""
        return self._optimizer.defaults

    @property
    def wrapped(self) -> torch.optim.Optimizer:
        """The wrapped optimizer."""
        return self._optimizer

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Any:
        """The hook gets the wrapped optimizer, whose gradients are means."""
        return self._optimizer.register_step_pre_hook(hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Any:
        """The hook gets the wrapped optimizer."""
        return self._optimizer.register_step_post_hook(hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """The hook gets the wrapped optimizer."""
        return self._optimizer.register_state_dict_pre_hook(hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """The hook gets the wrapped optimizer."""
        return self._optimizer.register_state_dict_post_hook(hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Any:
        """The hook gets the wrapped optimizer."""
        return self._optimizer.register_load_state_dict_pre_hook(hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Any:
        """The hook gets the wrapped optimizer."""
        return self._optimizer.register_load_state_dict_post_hook(hook, prepend)

    def __getattr__(self, name: str) -> Any:
        """Options and methods of its own that the wrapped optimizer has."""
        if name == "_optimizer":  # before __init__ has set it
            raise AttributeError(name)
        return getattr(self._optimizer, name)

    def __getstate__(self) -> NoReturn:
        raise TypeError(
            "a DistributedOptimizer belongs to its connection and cannot be copied or pickled: "
            "save optimizer.state_dict()"
        )

    def __repr__(self) -> str:
        return f"DistributedOptimizer({self._optimizer!r})"


NO_CLOSURE = (
    "the optimizer would call it a number of times that may differ between the workers; call "
    "loss.backward() before step()"
)
