"""A communication hook of DDP for programs that keep their own process group.

state = olaf.torch.SumState(olaf.connect_sum("10.0.0.1:5555", workers=4, rank=rank))
model.register_comm_hook(state, olaf.torch.sum_hook)
"""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from olaf.torch import calls
from olaf.torch.distributed import dist
from olaf.torch.failing import failure
from olaf.torch.lane import Lane
from olaf.torch.staging import Staging
from olaf.torch.work import Pending, Queued, SumWork

if TYPE_CHECKING:
    from olaf.sums.collective import SumConnection


@dataclass
class SumState:
    """What `sum_hook` needs. The program closes the connection itself, after the training.

    connection: of this worker. With `inside`, only the first rank of each machine has one.
    inside: a process group of this machine's ranks. Their gradients are averaged there first, and
        one rank sums with the other machines. Every machine must have the same number of ranks.
    partial: take the mean of the workers that were in time.
    exact: sum float32 gradients in fixed point, the same bits in every run.
    timeout_s: the longest time for the sum of a bucket.
    """

    connection: "SumConnection | None"
    inside: Any = None
    partial: bool = False
    exact: bool = False
    timeout_s: float = 300.0
    _lane: Lane = field(default_factory=lambda: Lane("olaf-hook"), repr=False)
    _staging: dict[torch.device, Staging] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        leads = self.inside is None or dist.get_rank(self.inside) == 0
        if leads != (self.connection is not None):
            raise ValueError(
                "SumState: the first rank of `inside` needs a connection, the others have none"
            )


# DDP compares these annotations, so they must be the types themselves.
def sum_hook(state: SumState, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Start the mean of a bucket over all workers; DDP goes on with its backward pass."""
    tensor: torch.Tensor = bucket.buffer()
    if not calls.carried(tensor) or not tensor.is_floating_point():
        raise TypeError(f"sum_hook: gradients of type {tensor.dtype} cannot be summed by a switch")
    future: torch.futures.Future[torch.Tensor] = (
        _begin(state, tensor).get_future().then(lambda done: done.value()[0])
    )
    return future


def _begin(state: SumState, tensor: torch.Tensor) -> SumWork:
    lanes = tensor.detach().view(-1)

    def explain(error: BaseException) -> BaseException:
        return failure(error, f"sum_hook, {_call(state, lanes)}")

    if tensor.device.type == "cpu" and state.inside is None:
        assert state.connection is not None  # see __post_init__
        pending: Pending = _call(state, lanes).start(state.connection)
        return SumWork([tensor], [pending], explain=explain)
    if tensor.device.type == "cpu":
        pending = Queued(state._lane.submit(lambda: _over_machines(state, lanes)))
        return SumWork([tensor], [pending], explain=explain)
    staging = state._staging.get(tensor.device)
    if staging is None:
        staging = state._staging[tensor.device] = Staging(tensor.device)
    ready = staging.ready(tensor)

    def on_device() -> None:
        with torch.cuda.stream(staging.stream):
            staging.stream.wait_event(ready)
            _over_machines(state, lanes, staging)

    pending = Queued(state._lane.submit(on_device))
    return SumWork([tensor], [pending], explain=explain, stream=staging.stream)


def _over_machines(state: SumState, lanes: torch.Tensor, staging: Staging | None = None) -> None:
    """The mean inside the machine, between the machines, and back to the machine's ranks."""
    if state.inside is not None:
        dist.all_reduce(lanes, group=state.inside)
        lanes.div_(dist.get_world_size(state.inside))
    if state.connection is not None:
        connection = state.connection
        if staging is None:
            _call(state, lanes).run(connection)
        else:
            ready = staging.ready(lanes)
            staging.through(lanes, ready, lambda host: _call(state, host).run(connection))
    if state.inside is not None:
        dist.broadcast(lanes, group=state.inside, group_src=0)


def _call(state: SumState, lanes: torch.Tensor) -> calls.Call:
    return calls.Call(
        calls.ALL_REDUCE,
        lanes,
        state.timeout_s,
        calls.MEAN,
        partial=state.partial,
        exact=state.exact,
    )
