"""Gradients of many parameters in a few flat arrays of float32, which the network sums."""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore,untyped-decorator"

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

Parameter = Any
"""A `torch.nn.Parameter`, or any other leaf tensor that an optimizer has."""


@dataclass
class Bucket:
    """Parameters whose gradients travel together, as float32, in this order.

    Halves lose nothing: their mean would travel as float32, too. float64 is rounded.
    """

    parameters: list[Parameter]
    more: int = 0
    """Further lanes behind the gradients, which the caller fills and reads."""
    lanes: torch.Tensor = field(init=False)
    """What the network sums: on the CPU."""
    waits_for: int = field(init=False)
    """Parameters whose gradients are not complete yet in this backward pass."""

    def __post_init__(self) -> None:
        sizes = [parameter.numel() for parameter in self.parameters]
        size = sum(sizes)
        device = self.parameters[0].device
        is_here = device.type == "cpu"
        is_pinned = device.type == "cuda"
        self.lanes = torch.zeros(size + self.more, dtype=torch.float32, pin_memory=is_pinned)
        self._own = self.lanes[:size]
        self._near = self._own if is_here else torch.zeros(size, device=device)
        parts = self._near.split(sizes)  # type: ignore[no-untyped-call]
        self._parts = [
            part.view(parameter.shape)
            for part, parameter in zip(parts, self.parameters, strict=True)
        ]
        self.waits_for = len(self.parameters)

    @torch.no_grad()
    def gather(self) -> bool:
        """Copy the gradients in; zeros for a missing one. Returns whether all are finite.

        Otherwise the bucket holds zeros: not every protocol carries an infinity.
        """
        there = [(part, p.grad) for part, p in self._pairs() if p.grad is not None]
        if len(there) < len(self._parts):
            self._near.zero_()
        if there:
            parts, gradients = zip(*there, strict=True)
            torch._foreach_copy_(parts, [gradient.detach() for gradient in gradients])
        if self._near is not self._own:
            self._own.copy_(self._near)
        is_finite = _is_finite(self._own)
        if not is_finite:
            self._own.zero_()
        return is_finite

    @torch.no_grad()
    def spread(self, present: Sequence[bool], *, is_finite: bool) -> None:
        """Give the parameters the mean; NaN if a worker had a NaN or an infinity in the bucket.

        present: for each parameter, whether any worker had a gradient. Otherwise none is made.
        """
        if not is_finite:
            self._own.fill_(math.nan)
        if self._near is not self._own:
            self._near.copy_(self._own)
        to, means = [], []
        for (part, parameter), is_present in zip(self._pairs(), present, strict=True):
            if not is_present:
                continue
            if parameter.grad is None:
                parameter.grad = torch.empty_like(parameter)
            to.append(parameter.grad.detach())
            means.append(part)
        if to:
            torch._foreach_copy_(to, means)

    def _pairs(self) -> Iterable[tuple[torch.Tensor, Parameter]]:
        return zip(self._parts, self.parameters, strict=True)


def divided(parameters: Sequence[Parameter], bucket_bytes: int, *, marks: bool) -> list[Bucket]:
    """Buckets in the order in which a backward pass completes gradients: the last layer first.

    The division depends on the parameters and on ``bucket_bytes`` alone, so that it is the same at
    all workers. A bucket has one device. A parameter above ``bucket_bytes`` has one of its own.
    marks: the last bucket has a further lane for each parameter and each bucket.
    """
    buckets: list[list[Parameter]] = []
    room = 0
    for parameter in reversed(parameters):
        size = 4 * parameter.numel()
        if not buckets or size > room or buckets[-1][0].device != parameter.device:
            buckets.append([])
            room = bucket_bytes
        buckets[-1].append(parameter)
        room -= size
    found = [Bucket(of_bucket) for of_bucket in buckets[:-1]]
    more = len(parameters) + len(buckets) if marks else 0
    return found + [Bucket(of_bucket, more) for of_bucket in buckets[-1:]]


def _is_finite(lanes: torch.Tensor) -> bool:
    """No value is a NaN or an infinity."""
    # The sum is several times as fast. It may run over where all values are finite.
    return math.isfinite(lanes.sum().item()) or bool(lanes.isfinite().all())
