"""The gradients of one optimizer become their means over all workers, while `backward` runs.

Hooks of the parameters count complete gradients. The sum of a bucket begins when its gradients and
those of all buckets before it are complete: so the order of the sums is the same at all workers,
whatever the order of the hooks. The end of the backward pass begins the rest, waits for all, and
writes the means into the gradients.
"""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore,no-untyped-call"

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import torch

from olaf.torch.buckets import Bucket, Parameter, divided

if TYPE_CHECKING:
    from olaf.sums.collective import SumConnection
    from olaf.sums.future import SumFuture

RETRY = (
    "olaf.torch.DistributedOptimizer: the gradients are still those of this worker alone; "
    "optimizer.synchronize() or optimizer.step() sums them again"
)
"""Added to an error of a sum."""


class GradientSums:
    """The sums of one optimizer's gradients over a connection."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        connection: SumConnection,
        *,
        overlap: bool,
        bucket_bytes: int,
        exact: bool,
        timeout_s: float | None,
    ) -> None:
        """optimizer: the one that is wrapped; its groups may change."""
        self._optimizer = optimizer
        self._connection = connection
        self._overlap = overlap
        self._bucket_bytes = bucket_bytes
        self._options: dict[str, Any] = {"timeout_s": timeout_s}
        self._exact = exact
        self._lock = threading.RLock()
        """Hooks of several devices run in several threads."""
        self._buckets: list[Bucket] = []
        self._of: dict[Parameter, Bucket] = {}
        self._marks = torch.zeros(0)
        """For each parameter, whether there is a gradient; for each bucket, an infinity in it."""
        self._infinite: list[bool] = []
        self._hooks: list[Any] = []
        self._holds = 0
        self._is_averaged = False
        self._began: list[SumFuture[torch.Tensor]] = []
        self._complete: set[Parameter] = set()
        self._error: Exception | None = None
        """Why a hook could not begin a sum."""
        self._order = _order_of(connection)
        self._order.add(self)
        self._divide(_trained(self._optimizer))
        weakref.finalize(self, _remove, self._hooks)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Backward passes inside add to this worker's own gradients, and begin no sum."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1

    def ensure(self) -> None:
        """Average the gradients, if they are not averaged yet."""
        if not self._is_averaged:
            self.average()

    def average(self) -> None:
        """Replace the gradients by their means over all workers. Raises as `all_reduce` does.

        After an error they are this worker's own again, and another call sums them again.
        """
        with self._lock:
            if not self._began and not self._complete:
                self._check_division()
            try:
                if self._error is not None:
                    raise self._error
                self._begin_rest()
                for future in self._began:
                    future.wait()
                self._check_range()
                self._spread()
                self._is_averaged = True
            except BaseException as error:
                self._give_up()
                error.add_note(RETRY)
                raise
            finally:
                self._reset()

    def applied(self) -> None:
        """The gradients have been used, or dropped: the next ones are this worker's own."""
        with self._lock:
            self._is_averaged = False
            if self._began or self._complete:  # a backward pass that failed
                for future in self._began:
                    with suppress(Exception):
                        future.wait()
                self._reset()

    @property
    def took_part(self) -> bool:
        """The present backward pass has made gradients that will be averaged at its end."""
        return bool(self._complete)

    def _divide(self, parameters: list[Parameter]) -> None:
        """Lay out the buckets, and watch the parameters."""
        for parameter in parameters:
            if parameter.is_complex():
                raise ValueError(
                    f"{_name(self._optimizer, parameter)} is complex, and a switch cannot sum it: "
                    "use torch.view_as_real in the model"
                )
        _remove(self._hooks)
        self._buckets = divided(parameters, self._bucket_bytes, marks=not self._exact)
        self._infinite = [False] * len(self._buckets)
        self._of = {p: bucket for bucket in self._buckets for p in bucket.parameters}
        size = len(self._of) + len(self._buckets)
        self._marks = torch.zeros(size)
        if self._buckets and not self._exact:
            self._marks = self._buckets[-1].lanes[-size:]
        if self._overlap:
            own = weakref.ref(self)

            def completed(parameter: Parameter) -> None:
                sums = own()
                if sums is not None:
                    sums._completed(parameter)

            self._hooks += [p.register_post_accumulate_grad_hook(completed) for p in self._of]

    def _check_division(self) -> None:
        """Before a sum begins: the program may have added parameters, or frozen some."""
        wanted = _trained(self._optimizer)
        if len(wanted) != len(self._of) or any(p not in self._of for p in wanted):
            self._divide(wanted)

    def _completed(self, parameter: Parameter) -> None:
        """A hook: the backward pass has completed the gradient."""
        with self._lock:
            self._is_averaged = False
            if self._holds:
                return
            if not self._complete:
                self._check_division()
                self._order.average_at_end()
            if parameter in self._complete:
                raise RuntimeError(
                    f"the gradient of {_name(self._optimizer, parameter)} changed while it was "
                    "being summed: a backward pass has failed before (call optimizer.zero_grad()),"
                    " or one runs inside of another (use torch.utils.checkpoint with "
                    "use_reentrant=False, or DistributedOptimizer(overlap=False))"
                )
            self._refuse_sparse(parameter)
            self._complete.add(parameter)
            self._of[parameter].waits_for -= 1
            if self._order.is_alone and self._error is None:
                try:
                    self._begin_complete()
                except Exception as error:
                    # The other gradients come first: a retry needs them all.
                    self._error = error

    def _begin_complete(self) -> None:
        while len(self._began) < len(self._buckets):
            if self._buckets[len(self._began)].waits_for:
                break
            self._begin_next()

    def _begin_rest(self) -> None:
        for bucket in self._buckets[len(self._began) :]:
            for parameter in bucket.parameters:
                self._refuse_sparse(parameter)
        while len(self._began) < len(self._buckets):
            self._begin_next()
        if self._exact or not self._buckets:
            # In the fixed point of an exact sum marks and small gradients would not go together.
            self._begin(self._marks, exact=False)

    def _begin_next(self) -> None:
        at = len(self._began)
        bucket = self._buckets[at]
        # A mark of 1: this worker has no finite gradients in the bucket.
        self._infinite[at] = not bucket.gather()
        if at == len(self._buckets) - 1:
            there = [parameter.grad is not None for parameter in self._of]
            self._marks.copy_(torch.tensor([*there, *self._infinite]))
        self._begin(bucket.lanes, exact=self._exact)

    def _begin(self, lanes: torch.Tensor, *, exact: bool) -> None:
        self._began.append(
            self._connection.all_reduce_async(lanes, "mean", exact=exact, **self._options)
        )

    def _spread(self) -> None:
        any_there = (self._marks > 0).tolist()
        present, at = any_there[: len(self._of)], 0
        for bucket, has_infinity in zip(self._buckets, any_there[len(self._of) :], strict=True):
            until = at + len(bucket.parameters)
            bucket.spread(present[at:until], is_finite=not has_infinity)
            at = until

    def _check_range(self) -> None:
        """Integers of a fixed point stop at their largest value. The same at all workers."""
        for bucket, future in zip(self._buckets, self._began, strict=False):
            if future.counts is not None and future.counts.not_finite:
                raise OverflowError(
                    f"the sum of {_name(self._optimizer, bucket.parameters[0])} and "
                    f"{len(bucket.parameters) - 1} more gradients leaves the range of the "
                    "protocol's integers: clip or scale the gradients before they are summed "
                    '(optimizer.no_sync()), or use protocol="reduce"'
                )

    def _refuse_sparse(self, parameter: Parameter) -> None:
        gradient = parameter.grad
        if gradient is not None and gradient.layout != torch.strided:
            raise ValueError(
                f"the gradient of {_name(self._optimizer, parameter)} is sparse, and a switch sums "
                "dense arrays: make the embedding with sparse=False"
            )

    def _give_up(self) -> None:
        """After an error. What still runs writes into its bucket, so there are new ones."""
        for future in self._began:
            with suppress(Exception):
                future.wait(0.0)
        if not all(future.done() for future in self._began):
            self._divide(list(self._of)[::-1])

    def _reset(self) -> None:
        self._began, self._complete, self._error = [], set(), None
        for bucket in self._buckets:
            bucket.waits_for = len(bucket.parameters)


class _Order:
    """The optimizers of one connection average in the order in which they were made.

    With more than one, the order of the hooks could mix their sums differently at two workers: so
    their sums begin at the end of the backward pass.
    """

    def __init__(self) -> None:
        self._every: list[weakref.ref[GradientSums]] = []

    def add(self, sums: GradientSums) -> None:
        """One more optimizer."""
        self._every = [member for member in self._every if member() is not None]
        self._every.append(weakref.ref(sums))

    @property
    def is_alone(self) -> bool:
        """The connection has one optimizer."""
        return sum(member() is not None for member in self._every) == 1

    def average_at_end(self) -> None:
        """Average what took part, at the end of the present backward pass."""
        engine: Any = torch.autograd.Variable._execution_engine  # type: ignore[attr-defined]
        engine.queue_callback(self._average)

    def _average(self) -> None:
        for member in self._every:
            sums = member()
            if sums is not None and sums.took_part:
                sums.average()


_orders: weakref.WeakKeyDictionary[SumConnection, _Order] = weakref.WeakKeyDictionary()


def _order_of(connection: SumConnection) -> _Order:
    return _orders.setdefault(connection, _Order())


def _trained(optimizer: torch.optim.Optimizer) -> list[Parameter]:
    """The parameters that need a gradient at present."""
    return [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]


def _name(optimizer: torch.optim.Optimizer, parameter: Parameter) -> str:
    """A parameter for errors: its place, its own name where the optimizer knows it, its shape."""
    for at, group in enumerate(optimizer.param_groups):
        for place, other in enumerate(group["params"]):
            if other is parameter:
                names = group.get("param_names")
                said = f" {names[place]!r}" if names else ""
                return f"parameter {place}{said} of group {at}, {tuple(parameter.shape)}"
    return f"a parameter of the shape {tuple(parameter.shape)}"


def _remove(hooks: list[Any]) -> None:
    for hook in hooks:
        hook.remove()
    hooks.clear()
