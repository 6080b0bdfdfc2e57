"""Which calls go through the switch, and which by gloo: for the backend, its page, its tests."""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import torch

from olaf.sums.protocols import PROTOCOLS, Protocol
from olaf.torch import calls
from olaf.torch.distributed import dist

if TYPE_CHECKING:
    from olaf.sums.collective import Op

OPERATIONS: dict[int, Op] = {
    int(dist.ReduceOp.SUM): calls.SUM,
    int(dist.ReduceOp.AVG): calls.MEAN,
    int(dist.ReduceOp.MIN): calls.MIN,
    int(dist.ReduceOp.MAX): calls.MAX,
}
"""By the number of torch's operation: each read of the operation itself makes a new object."""

SWITCH: Final = "switch"
GLOO: Final = "gloo"
REFUSED: Final = "refused"


def carries(protocol: Protocol, dtypes: Iterable[torch.dtype]) -> bool:
    """The protocol can sum these types."""
    if protocol.sums_floats:
        return all(dtype == torch.float32 for dtype in dtypes)
    return calls.LANE_TYPES.issuperset(dtypes)


def broadcasts(protocol: Protocol, dtypes: Iterable[torch.dtype]) -> bool:
    """The protocol can broadcast these types."""
    return protocol.broadcasts and carries(protocol, dtypes)


def reduces(protocol: Protocol, operation: int, dtypes: Iterable[torch.dtype]) -> Op | None:
    """The operation's name if the protocol can do it with these types."""
    dtypes = list(dtypes)
    name = OPERATIONS.get(operation)
    if name is None or not carries(protocol, dtypes):
        return None
    if name == calls.MEAN and not all(dtype.is_floating_point for dtype in dtypes):
        return None  # gloo has torch's error for a mean of integers
    if protocol.sums_floats and name not in (calls.SUM, calls.MEAN):
        return None
    return name


# What docs/torch-distributed.md says. Its test compares it with this, and this with gloo.

TYPES = (
    *(torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64),
    *(torch.float64, torch.int8, torch.uint8, torch.bool, torch.complex64),
)
REDUCTIONS = ("SUM", "AVG", "MIN", "MAX", "PRODUCT", "BAND", "BOR", "BXOR")
OTHERS = (
    *("reduce", "all_gather", "gather", "scatter", "all_to_all"),
    *("send, recv", "barrier", "objects"),
)
REDUCING = "`all_reduce`, `reduce_scatter`"
FLOATING_ONLY = ("AVG",)
WHOLE_ONLY = ("BAND", "BOR", "BXOR")


def by_gloo(reduction: str | None, dtype: torch.dtype) -> str:
    """What becomes of a call that goes by gloo. reduction: None for a broadcast."""
    if reduction is None:
        return GLOO
    if dtype.is_complex:
        return GLOO if reduction in ("SUM", "AVG") else REFUSED
    if reduction in FLOATING_ONLY and not dtype.is_floating_point:
        return REFUSED
    if reduction in WHOLE_ONLY and dtype.is_floating_point:
        return REFUSED
    return GLOO


def path(protocol: Protocol, reduction: str | None, dtype: torch.dtype) -> str:
    """The path of an `all_reduce` with this operation, or of a `broadcast` (None)."""
    if reduction is None:
        goes = broadcasts(protocol, [dtype])
    else:
        goes = reduces(protocol, int(getattr(dist.ReduceOp, reduction)), [dtype]) is not None
    return SWITCH if goes else by_gloo(reduction, dtype)


def table() -> list[str]:
    """Lines of Markdown: each call and type, by protocol."""
    names = list(PROTOCOLS)
    lines = [
        f"| call | type | {' | '.join(f'`{name}`' for name in names)} |",
        f"|---|---|{'---|' * len(names)}",
    ]
    for reduction in (*REDUCTIONS, None):
        rows: dict[tuple[str, ...], list[str]] = {}
        for dtype in TYPES:
            cells = tuple(path(PROTOCOLS[name], reduction, dtype) for name in names)
            rows.setdefault(cells, []).append(str(dtype).removeprefix("torch."))
        call = "`broadcast`" if reduction is None else f"{REDUCING}, {reduction}"
        for cells, types in rows.items():
            lines.append(f"| {call} | {', '.join(types)} | {' | '.join(cells)} |")
    others = ", ".join(OTHERS)
    lines.append(f"| {others} | all | {' | '.join([GLOO] * len(names))} |")
    return lines


def announcement(size: int, switch: str, job: int, name: str) -> str:
    """What the first rank says at the start."""
    protocol = PROTOCOLS[name]
    types = [dtype for dtype in TYPES if carries(protocol, [dtype])]
    listed = ", ".join(str(dtype).removeprefix("torch.") for dtype in types)
    both = "all_reduce, reduce_scatter"
    both += " and broadcast" if protocol.broadcasts else ""
    return (
        f"olaf: {size} ranks sum through the switch {switch} (protocol {name}, job {job}): {both} "
        f"of {listed}; all else goes by gloo"
    )
