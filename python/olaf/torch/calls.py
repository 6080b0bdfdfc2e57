"""Operations that go through the switch, and which tensors may take part."""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import torch

if TYPE_CHECKING:
    from olaf.sums.collective import Op, SumConnection
    from olaf.torch.work import Pending

ALL_REDUCE, BROADCAST = "all_reduce", "broadcast"
SUM: Final = "sum"
MEAN: Final = "mean"
MIN: Final = "min"
MAX: Final = "max"

LANE_TYPES = frozenset(
    (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64),
)
"""What the switch can sum."""

DEVICES = ("cpu", "cuda")


def carried(tensor: torch.Tensor) -> bool:
    """The switch can sum this tensor; otherwise gloo does.

    All ranks must decide alike. So only properties count that the ranks share: a tensor that is
    not contiguous at one rank may be contiguous at another.
    """
    return (
        tensor.dtype in LANE_TYPES
        and tensor.layout == torch.strided
        and tensor.device.type in DEVICES
    )


@dataclass(frozen=True)
class Call:
    """One operation on flat lanes in the memory of this process; the result takes their place."""

    kind: str
    lanes: torch.Tensor
    timeout_s: float
    operation: Op = SUM
    root: int = 0
    partial: bool = False
    exact: bool = False
    scale: int = 1
    """Factor of the result."""

    def __str__(self) -> str:
        """The operation in words, as in ``all_reduce (sum) of 4096 x float32``."""
        which = self.operation if self.kind == ALL_REDUCE else f"from rank {self.root}"
        dtype = str(self.lanes.dtype).removeprefix("torch.")
        return f"{self.kind} ({which}) of {self.lanes.numel()} x {dtype}"

    def run(self, connection: SumConnection) -> None:
        """Do it, and wait for the result."""
        if self.kind == BROADCAST:
            connection.broadcast(self.lanes, self.root, timeout_s=self.timeout_s)
        else:
            connection.all_reduce(self.lanes, self.operation, **self._options())
        self.finish()

    def start(self, connection: SumConnection) -> Pending:
        """Begin it. The caller calls `finish` at the end."""
        if self.kind == BROADCAST:
            return connection.broadcast_async(self.lanes, self.root, timeout_s=self.timeout_s)
        return connection.all_reduce_async(self.lanes, self.operation, **self._options())

    def _options(self) -> dict[str, Any]:
        exact = self.exact and self.lanes.dtype == torch.float32
        return {"timeout_s": self.timeout_s, "partial": self.partial, "exact": exact}

    def finish(self) -> None:
        """Scale the result."""
        if self.scale != 1:
            self.lanes.mul_(self.scale)


def all_reduce(
    lanes: torch.Tensor,
    operation: Op,
    *,
    timeout_s: float,
    partial: bool,
    size: int,
    exact: bool = False,
) -> Call:
    """An all-reduce. If partial sums are allowed, a sum is the mean over its contributors x size.

    So what a program divides by the number of ranks, as DDP does, is the mean over the
    contributors. Integers cannot be scaled exactly: a partial sum of integers is an error.
    """
    if operation == SUM and partial:
        if not lanes.dtype.is_floating_point:
            partial = False
        else:
            return Call(ALL_REDUCE, lanes, timeout_s, MEAN, partial=True, exact=exact, scale=size)
    return Call(ALL_REDUCE, lanes, timeout_s, operation, partial=partial, exact=exact)


def broadcast(lanes: torch.Tensor, root: int, *, timeout_s: float) -> Call:
    """A broadcast from the rank `root`."""
    return Call(BROADCAST, lanes, timeout_s, root=root)
