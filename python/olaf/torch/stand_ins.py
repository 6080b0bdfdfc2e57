"""The parameters that an optimizer has while a thread steps it: never those of the program's model.

Until they are given back, only that thread may change the groups. Another one would change them at
this worker alone, or at another iteration than the other workers.
"""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore,untyped-decorator"
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import threading
import weakref
from typing import Any, cast

import torch

NO_CHANGE = (
    'a group of the optimizer was changed in mode = "pipeline": each worker calls step() another '
    "number of times, so their weights would differ. A scheduler is stepped once an iteration, at "
    "all workers alike: make it for the bare optimizer, and wrap this one with scheduler="
)

_taken: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()


class StandIns:
    """Weights on one flat vector of the CPU, and a parameter on it for each one of the model."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        """Raises ValueError for parameters that cannot be trained so."""
        if optimizer in _taken:
            raise ValueError(
                'a DistributedOptimizer of mode = "pipeline" has this optimizer: call its close() '
                "before you wrap the optimizer again"
            )
        self._optimizer = optimizer
        self._every = [p for group in optimizer.param_groups for p in group["params"]]
        self.own = [parameter for parameter in self._every if parameter.requires_grad]
        """The model's parameters that are trained."""
        self._trained = {id(parameter) for parameter in self.own}
        if not self.own:
            raise ValueError("the optimizer has no parameters that need a gradient")
        self.check()
        self._refuse_counters_beside_parameters()
        self._sizes = [parameter.numel() for parameter in self.own]
        self.weights = torch.zeros(sum(self._sizes))
        """What the thread trains, ``(parameters,)``."""
        self._held: list[Any] = []

    def take(self) -> None:
        """Copy the model's weights, and give the optimizer its own parameters."""
        _taken.add(self._optimizer)
        with torch.no_grad():
            self.weights.copy_(torch.cat([p.detach().cpu().reshape(-1) for p in self.own]))
        parts = iter(self.parts(self.weights))
        self._held = [
            # A frozen one has no gradient here, whatever `backward` leaves in the model's.
            torch.nn.Parameter(
                next(parts) if id(p) in self._trained else p.detach(), id(p) in self._trained
            )
            for p in self._every
        ]
        self._exchange(self._every, self._held)
        groups = self._optimizer.param_groups
        groups[:] = [_Guarded(group) for group in groups]

    def give_back(self) -> None:
        """Give the optimizer the model's parameters, with the weights and the state of now."""
        groups = self._optimizer.param_groups
        groups[:] = [dict(group) for group in groups]
        self.copy_in()
        for held in self._held:
            held.grad = None
        self._exchange(self._held, self._every)
        _taken.discard(self._optimizer)

    def step(self, mean: torch.Tensor) -> None:
        """One update, in the thread that may change groups."""
        for group in self._optimizer.param_groups:
            cast("_Guarded", group).owner = threading.get_ident()
        parts = iter(self.parts(mean))
        for held in self._held:
            if held.requires_grad:
                held.grad = next(parts)
        self._optimizer.step()

    def groups(self) -> list[dict[str, Any]]:
        """Copies of the optimizer's groups, with the parameters of the model in their places."""
        own = dict(zip(self._held, self._every, strict=True))
        return [
            {**group, "params": [own[held] for held in group["params"]]}
            for group in self._optimizer.param_groups
        ]

    @torch.no_grad()
    def copy_in(self, weights: torch.Tensor | None = None) -> None:
        """Write weights into the model; None: those of now."""
        parts = self.parts(self.weights if weights is None else weights)
        torch._foreach_copy_([parameter.detach() for parameter in self.own], parts)

    def parts(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """Views on a flat tensor, in the shapes of the trained parameters."""
        parts = flat.split(self._sizes)  # type: ignore[no-untyped-call]
        return [part.view(p.shape) for part, p in zip(parts, self.own, strict=True)]

    def check(self) -> None:
        """Raise ValueError for parameters and gradients that this mode does not have."""
        for parameter in self._every:
            shape = tuple(parameter.shape)
            if parameter.requires_grad != (id(parameter) in self._trained):
                what = "trainable" if parameter.requires_grad else "frozen"
                raise ValueError(
                    f'a parameter of the shape {shape} is {what} now: mode = "pipeline" trains '
                    "those that need a gradient when the optimizer is wrapped; call close(), and "
                    "wrap it again at all workers"
                )
            if not parameter.requires_grad:
                continue
            if parameter.dtype != torch.float32:
                raise ValueError(
                    f'a parameter of the shape {shape} is {parameter.dtype}: mode = "pipeline" '
                    "trains float32 parameters"
                )
            if parameter.grad is not None and parameter.grad.layout != torch.strided:
                raise ValueError(
                    f"the gradient of a parameter of the shape {shape} is sparse, and a switch "
                    "sums dense arrays: make the embedding with sparse=False"
                )

    def _refuse_counters_beside_parameters(self) -> None:
        """A fused optimizer keeps its counters where the parameters are, and these move."""
        for group in self._optimizer.param_groups:
            for option in ("fused", "capturable"):
                if group.get(option) and any(p.device.type != "cpu" for p in group["params"]):
                    raise ValueError(
                        f'{option}=True: in mode = "pipeline" the optimizer works on the CPU; make '
                        f"it with {option}=False"
                    )

    def _exchange(self, old: list[Any], new: list[Any]) -> None:
        """Put other parameters in the places of those of the optimizer."""
        other = dict(zip(old, new, strict=True))
        for group in self._optimizer.param_groups:
            group["params"] = [other[parameter] for parameter in group["params"]]
        state = self._optimizer.state
        for parameter, to in other.items():
            if parameter in state:
                state[to] = {
                    name: value.to(to.device) if _is_like(value, parameter) else value
                    for name, value in state.pop(parameter).items()
                }


class _Guarded(dict[str, Any]):
    """A group that one thread may change."""

    owner: int | None = None

    def __setitem__(self, key: str, value: Any) -> None:
        if threading.get_ident() != self.owner:
            raise ValueError(NO_CHANGE)
        super().__setitem__(key, value)


def _is_like(value: Any, parameter: Any) -> bool:
    """A moment, for example. Step counts have no dimension, and stay on the CPU."""
    return isinstance(value, torch.Tensor) and value.shape == parameter.shape
