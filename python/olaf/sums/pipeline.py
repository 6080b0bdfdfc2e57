"""Asynchronous training without a server, by Algorithm 1 of iSwitch (§4.1).

Each worker keeps the weights, and has two threads:

* LGC, the caller's loop, computes gradients with a copy of the weights and sends them;
* LWU, a thread of `PipelinedTraining`, takes the mean gradient of each iteration, and calls
  ``step``.

LGC does not wait for LWU. A fast worker sends several gradients for one iteration, so that a slow
worker holds nobody up.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, cast

import numpy as np

from olaf.memory.views import View, view_of
from olaf.processes import forking

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

    from olaf._olaf import SumClient, SumOperation

T = TypeVar("T")

Fate = Literal["sent", "stale", "surplus", "without_sum"]

_AHEAD = 2
"""Sums that are begun ahead, so that a mean does not come before this worker has begun its sum."""


class Connection(Protocol):
    """What a training needs of its connection."""

    @property
    def rank(self) -> int:
        """This worker's rank, from 0."""

    @property
    def workers(self) -> int:
        """Number of workers in the job."""

    def all_reduce(self, array: T, *, timeout_s: float | None) -> T:
        """See `SumConnection.all_reduce`."""

    def broadcast(self, array: T, root: int, *, timeout_s: float | None) -> T:
        """See `SumConnection.broadcast`."""


class PipelinedTraining(Generic[T]):
    """One training; `SumConnection.pipeline` makes it. A context manager.

    Iterating gives LGC a copy of the newest weights each time, until all iterations are done.
    """

    def __init__(
        self,
        connection: Connection,
        client: SumClient,
        weights: T,
        step: Callable[[T, T], object],
        *,
        iterations: int,
        staleness: int,
        iteration: int,
        state: Sequence[Any],
        timeout_s: float | None,
    ) -> None:
        for name, value in (("staleness", staleness), ("iteration", iteration)):
            if not 0 <= value < 2**32:
                raise ValueError(f"{name} = {value}: must be from 0 to 4294967295")
        if not 0 < iterations < 2**32:
            raise ValueError(f"iterations = {iterations}: must be from 1 to 4294967295")
        self._client = client
        self._weights = weights
        self._view = _flat("weights", weights)
        self._step = step
        self._iterations = iterations
        self._staleness = staleness
        self._timeout_s = timeout_s
        self._iteration = _agree(connection, [weights, *state], iteration, iterations, timeout_s)
        self._copied = self._began = self._iteration
        self._fates: dict[Fate, int] = {"sent": 0, "stale": 0, "surplus": 0, "without_sum": 0}
        self._ages: Counter[int] = Counter()
        self._waits = False
        self._error: BaseException | None = None
        self._is_closed = False
        self._open: deque[SumOperation] = deque()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._update, name="olaf-lwu", daemon=True)
        self._thread.start()
        forking.register(self)

    def __forked__(self) -> None:
        """In a child that was forked: the training goes on in its parent."""
        self._client = cast("SumClient", forking.Inert())
        self._changed, self._is_closed = threading.Condition(), True
        self._open = deque()

    @property
    def began(self) -> int:
        """Weight updates when this training began: those of the worker with the most."""
        return self._began

    @property
    def iteration(self) -> int:
        """Weight updates so far. It may change at any time; at the end it is ``iterations``."""
        return self._iteration

    @property
    def gradients(self) -> dict[str, int]:
        """Number of gradients that `commit` took, by its return value."""
        return dict(self._fates.items())

    @property
    def staleness(self) -> dict[int, int]:
        """Staleness in iterations -> number of gradients that had it, sent and stale ones."""
        return dict(sorted(self._ages.items()))

    def held(self) -> AbstractContextManager[object]:
        """Inside, no weight update begins: weights and the state of ``step`` fit each other."""
        return self._changed

    def __iter__(self) -> Iterator[T]:
        """A copy of the newest weights for each gradient. Raises as `commit` does."""
        while (copy := self._next_copy()) is not None:
            yield copy

    def commit(self, gradient: T) -> Fate:
        """Send the gradient that was computed with the newest copy of the weights; never wait.

        gradient: as many float32 values as the weights. It is copied. Returns

        * ``sent``;
        * ``stale``: not sent, more than ``staleness`` iterations have ended since the copy;
        * ``surplus``: not sent, H gradients of this worker are on their way for the iteration; the
          next copy of the weights comes after the iteration;
        * ``without_sum``: not sent, this worker has not begun the next iteration yet.

        Raises SumError if an iteration failed: the reason is the same at all workers.
        """
        self._raise()
        view = _flat("gradient", gradient, copied=True)
        if view.array.size != self._view.array.size:
            raise ValueError(
                f"gradient has {view.array.size} values: must have {self._view.array.size}, as the "
                "weights"
            )
        said, staleness = self._client.contribute(
            view.array, began=self._copied, bound=self._staleness
        )
        fate = cast("Fate", said)
        self._fates[fate] += 1
        if staleness is not None:
            self._ages[staleness] += 1
        self._waits = fate in ("surplus", "without_sum")
        return fate

    def close(self) -> None:
        """End the training. Before its last iteration it fails at the other workers. Idempotent."""
        with self._changed:
            self._is_closed = True
            self._give_up()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _next_copy(self) -> T | None:
        with self._changed:
            if self._waits:
                self._changed.wait_for(
                    lambda: self._iteration > self._copied or self._error or self._is_closed
                )
            self._raise()
            if self._iteration >= self._iterations or self._is_closed:
                return None
            self._waits = False
            self._copied = self._iteration
            return _copy(self._weights)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _update(self) -> None:
        """LWU: takes the means in order. Every wait has the time limit of a sum."""
        means: deque[NDArray[np.float32]] = deque()
        begun = self._iteration
        try:
            while self._iteration < self._iterations:
                while len(means) < _AHEAD and begun < self._iterations:
                    means.append(np.empty_like(self._view.array))
                    if not self._begin(means[-1], begun):
                        return
                    begun += 1
                operation = self._open[0]
                operation.wait()
                operation.outcome()
                with self._changed:
                    self._open.popleft()
                    self._step(self._weights, _like(self._weights, means.popleft()))
                    self._iteration += 1
                    self._changed.notify_all()
        except BaseException as error:
            with self._changed:
                if not self._is_closed:
                    self._error = error
                    self._give_up()
                self._changed.notify_all()

    def _give_up(self) -> None:
        """Before the last iteration: the training fails at all workers."""
        if self._iteration < self._iterations:
            self._client.end_pipeline()
            for operation in self._open:
                operation.give_up()

    def _begin(self, mean: NDArray[np.float32], iteration: int) -> bool:
        with self._changed:
            if not self._is_closed:
                operation = self._client.begin_pipelined(
                    mean, iteration=iteration, timeout_s=self._timeout_s
                )
                self._open.append(operation)
            return not self._is_closed


def _agree(
    connection: Connection,
    arrays: Sequence[Any],
    iteration: int,
    iterations: int,
    timeout_s: float | None,
) -> int:
    """All workers take arrays and iteration of the worker with the most iterations.

    Raises ValueError at all of them if they have other ends.
    """
    # Two digits each, which float32 holds exactly. Nobody else adds to this worker's place.
    digits = np.zeros((connection.workers, 4), np.float32)
    digits[connection.rank] = *divmod(iteration, 1 << 16), *divmod(iterations, 1 << 16)
    connection.all_reduce(digits, timeout_s=timeout_s)
    done = [int(high) << 16 | int(low) for high, low, _, _ in digits]
    ends = [int(high) << 16 | int(low) for _, _, high, low in digits]
    for rank, end in enumerate(ends):
        if end != ends[0]:
            raise ValueError(
                f"iterations is {ends[0]} at rank 0 and {end} at rank {rank}: must be the same at "
                f"all workers (this worker is rank {connection.rank})"
            )
    root = done.index(max(done))
    for array in arrays:
        connection.broadcast(array, root, timeout_s=timeout_s)
    return done[root]


def _flat(name: str, array: object, *, copied: bool = False) -> View:
    """The memory of an array of float32. Raises ValueError."""
    view = view_of(array)
    if view.lanes != "f32":
        raise ValueError(f"{name} holds {view.lanes}: must be float32")
    if view.written_to is not None and not copied:
        raise ValueError(f"{name} must be contiguous, because it is updated in place")
    if not view.array.flags.writeable:
        if not copied:
            raise ValueError(f"{name} is read-only: must be writable")
        return view._replace(array=view.array.copy())
    return view


def _copy(array: T) -> T:
    if isinstance(array, np.ndarray):
        return array.copy()
    return array.detach().clone()  # type: ignore[attr-defined,no-any-return]


def _like(array: T, mean: NDArray[np.float32]) -> T:
    """The mean as the same kind of array."""
    if isinstance(array, np.ndarray):
        return mean.reshape(array.shape)  # type: ignore[return-value]
    import torch

    tensor: Any = torch.from_numpy(mean)
    return cast("T", tensor.reshape(cast("Any", array).shape))
