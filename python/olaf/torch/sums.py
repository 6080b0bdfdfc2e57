"""The sums of one group: each call of torch becomes operations on its connection."""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore,no-untyped-call"

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch

from olaf.memory.views import refuse_repeated
from olaf.processes import forking
from olaf.torch import calls
from olaf.torch.calls import Call
from olaf.torch.failing import failure
from olaf.torch.joining import Joining
from olaf.torch.lane import Lane
from olaf.torch.options import Settings
from olaf.torch.staging import Staging
from olaf.torch.work import Pending, Queued, SumWork

if TYPE_CHECKING:
    from olaf.sums.collective import Op, SumConnection
    from olaf.torch.fall_back import FallBack

SMALL_BYTES = 64 << 10
"""Tensors of a coalesced call are joined into one operation if they are smaller on average."""

HELD = 1024
"""Handles of small tensors that a group holds, at most."""
HELD_BYTES = 4096
"""Memory behind the tensors of such a handle, at most."""

MakeCall = Callable[[torch.Tensor], Call]


class Sums:
    """What a group does through the switch. Every rank makes the same calls in the same order."""

    def __init__(
        self,
        connection: SumConnection | Callable[[], SumConnection],
        settings: Settings,
        *,
        size: int,
        fall_back: Callable[[Lane], FallBack] | None = None,
    ) -> None:
        """connection: a function makes it in the lane, before the first operation."""
        self._lane = Lane("olaf-sums")
        self._joining = Joining(connection, self._lane)
        self._settings = settings
        self._size = size
        self._fall_back = fall_back(self._lane) if fall_back else None
        self._staging: dict[torch.device, Staging] = {}
        self._open: dict[int, SumWork] = {}
        self._held: deque[SumWork] = deque(maxlen=HELD)
        self._inert: forking.Inert | None = None
        forking.register(self)

    def __forked__(self) -> None:
        """In a child that was forked: the rank is its parent. The connection says so, too."""
        self._inert, self._fall_back = forking.Inert(), None

    @property
    def could_not_join(self) -> bool:
        """The connection could not be made. Each operation has said why."""
        return self._joining.has_failed

    @property
    def _connection(self) -> SumConnection:
        """While the lane makes it, operations wait in the lane, and nobody else asks for it."""
        return self._joining.connection

    def all_reduce(
        self, tensors: Sequence[torch.Tensor], operation: Op, *, timeout_s: float, wait: bool
    ) -> SumWork:
        """All-reduce each tensor in place."""
        if wait and len(tensors) == 1 and self._goes_at_once(tensors[0]):
            return self._at_once(tensors[0], operation, timeout_s)

        def make(lanes: torch.Tensor) -> Call:
            return self._all_reduce_of(lanes, operation, timeout_s)

        return self._do(tensors, make, wait=wait)

    def _all_reduce_of(self, lanes: torch.Tensor, operation: Op, timeout_s: float) -> Call:
        return calls.all_reduce(
            lanes,
            operation,
            timeout_s=timeout_s,
            partial=self._settings.partial,
            size=self._size,
            exact=self._settings.exact,
        )

    def _goes_at_once(self, tensor: torch.Tensor) -> bool:
        """The caller's own thread can reduce the tensor where it lies, and nothing waits before."""
        return (
            tensor.device.type == "cpu"
            and tensor.numel() > 0
            and self._fall_back is None
            and not self._settings.partial
            and self._lane.idle
        )

    def _at_once(self, tensor: torch.Tensor, operation: Op, timeout_s: float) -> SumWork:
        """The shortest way, for small tensors: no other thread takes part, nothing is prepared.

        A worker waits for its turn on a core before each call, and its code is cold then: each
        object that is made here costs several times what it costs in a loop.
        """
        exact = self._settings.exact and tensor.dtype == torch.float32
        try:
            self._connection.all_reduce(tensor, operation, timeout_s=timeout_s, exact=exact)
        except Exception as error:
            call = calls.all_reduce(
                tensor, operation, timeout_s=timeout_s, partial=False, size=self._size, exact=exact
            )
            raise self._explain(call)(error) from error
        return SumWork([tensor])

    def broadcast(
        self, tensor: torch.Tensor, root: int, *, timeout_s: float, wait: bool
    ) -> SumWork:
        """Give every rank the tensor of the rank `root`."""
        return self._do(
            [tensor], lambda lanes: calls.broadcast(lanes, root, timeout_s=timeout_s), wait=wait
        )

    def reduce_scatter(
        self,
        outputs: Sequence[torch.Tensor],
        inputs: Sequence[Sequence[torch.Tensor]],
        operation: Op,
        *,
        rank: int,
        timeout_s: float,
        wait: bool,
    ) -> SumWork:
        """Reduce each list of parts; this rank gets the part at its place. CPU tensors.

        It is an all-reduce of a copy, as gloo's is. Each rank sends all parts in any case, so a
        switch that gave each rank its own part alone would save bytes, and no time.
        """
        wholes = [torch.cat([part.detach().reshape(-1) for part in parts]) for parts in inputs]

        def make(lanes: torch.Tensor) -> Call:
            return self._all_reduce_of(lanes, operation, timeout_s)

        def give_parts() -> None:
            for output, whole, parts in zip(outputs, wholes, inputs, strict=True):
                at = sum(part.numel() for part in parts[:rank])
                mine = whole[at : at + output.numel()]
                output.detach().copy_(mine.view(output.shape))

        return self._do(wholes, make, wait=wait, results=outputs, at_end=give_parts)

    def wait_for_all(self) -> None:
        """Wait until all operations that have begun have ended. Each handle has its own error."""
        for work in list(self._open.values()):
            with suppress(Exception):
                work.wait()

    def close(self, timeout_s: float) -> None:
        """Leave the job. With a fall-back, first wait until no rank needs this one any more."""
        if self._fall_back is not None:
            self._fall_back.leave(timeout_s)
        self._lane.stop()
        self._joining.close()

    def _do(
        self,
        tensors: Sequence[torch.Tensor],
        make: MakeCall,
        *,
        wait: bool,
        results: Sequence[torch.Tensor] | None = None,
        at_end: Callable[[], None] | None = None,
    ) -> SumWork:
        """Start the operations of one call.

        wait: the caller waits for them anyway. results: the tensors of the handle, if others than
        those that are reduced; `at_end` fills them. CPU tensors alone.
        """
        given = tensors if results is None else results
        summed, tensors = tensors, [tensor for tensor in tensors if tensor.numel()]
        if not tensors and summed and summed[0].device.type == "cpu":
            # Another rank may have values here: the switch then names the rank that differs.
            tensors = summed[:1]
        if not tensors:
            return self._work(given, [])
        try:
            if self._inert is not None:
                self._inert.refuse()
            for tensor in tensors if results is None else results:
                refuse_repeated(tensor)
        except (ValueError, RuntimeError) as error:
            raise self._explain(make(tensors[0].reshape(-1)))(error) from error
        self._forget_ended()
        if tensors[0].device.type == "cuda":
            return self._staged(given, tensors, make)
        parts, put_in_place = _flat(tensors)

        def put_back() -> None:
            put_in_place()
            if at_end is not None:
                at_end()

        every = [make(part) for part in parts]
        # The lane keeps the order of the calls, so nothing may overtake a call that waits there.
        if self._fall_back is not None or not self._lane.idle:
            pending: list[Pending] = [self._queued(call) for call in every]
            return self._work(given, pending, finish=put_back, explain=self._explain(every[0]))
        if wait and len(every) == 1:
            # The shortest way for small tensors: no other thread takes part.
            try:
                every[0].run(self._connection)
            except Exception as error:
                raise self._explain(every[0])(error) from error
            put_back()
            return SumWork(given)
        pending = [call.start(self._connection) for call in every]

        def finish() -> None:
            for call in every:
                call.finish()
            put_back()

        return self._work(given, pending, finish=finish, explain=self._explain(every[0]))

    def _work(
        self, tensors: Sequence[torch.Tensor], pending: Sequence[Pending], **options: Any
    ) -> SumWork:
        """A handle. The newest of small tensors live on when the program has dropped them.

        A part of torch that is C++ may hold one further: DDP's reducer does so with the number of
        ranks that have not `join`-ed yet. The C++ half of a handle without its Python half does not
        know how to wait.
        """
        work = SumWork(tensors, pending, open_works=self._open, **options)
        if sum(tensor.untyped_storage().nbytes() for tensor in tensors) <= HELD_BYTES:
            self._held.append(work)
        return work

    def _forget_ended(self) -> None:
        """Works that nobody has waited for keep their tensors until the next call."""
        for work in list(self._open.values()):
            if not work.is_completed():
                break

    def _staged(
        self, given: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor], make: MakeCall
    ) -> SumWork:
        """CUDA tensors: the lane copies each to the host and back."""
        device = tensors[0].device
        staging = self._staging.setdefault(device, Staging(device))
        described = make(tensors[0].detach().view(-1))
        pending = []
        for tensor in tensors:
            ready = staging.ready(tensor)

            def task(tensor: torch.Tensor = tensor, ready: object = ready) -> None:
                staging.through(tensor, ready, lambda host: self._run(make(host)))

            pending.append(Queued(self._lane.submit(task)))
        return self._work(given, pending, explain=self._explain(described), stream=staging.stream)

    def _queued(self, call: Call) -> Queued:
        return Queued(self._lane.submit(lambda: self._run(call)))

    def _run(self, call: Call) -> None:
        if self._fall_back is not None:
            self._fall_back.run(call)
        else:
            call.run(self._connection)

    def _explain(self, call: Call) -> Callable[[BaseException], BaseException]:
        return lambda error: failure(error, f"{call} through the switch {self._settings.switch}")


def _flat(tensors: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], Callable[[], None]]:
    """Flat lanes of the tensors, and what copies the result back where they had to be copied.

    How many there are depends only on sizes and types: every rank must make the same operations.
    """
    tensors = [tensor.detach() for tensor in tensors]
    total = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    same = all(tensor.dtype == tensors[0].dtype for tensor in tensors)
    if len(tensors) > 1 and same and total < SMALL_BYTES * len(tensors):
        joined = torch.cat([tensor.reshape(-1) for tensor in tensors])
        return [joined], lambda: _split(joined, tensors)
    lanes = [tensor.contiguous().view(-1) for tensor in tensors]
    copied = [
        (tensor, flat)
        for tensor, flat in zip(tensors, lanes, strict=True)
        if flat.data_ptr() != tensor.data_ptr()
    ]

    def put_back() -> None:
        for tensor, flat in copied:
            tensor.copy_(flat.view(tensor.shape))

    return lanes, put_back


def _split(joined: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    parts = joined.split([tensor.numel() for tensor in tensors])
    for tensor, part in zip(tensors, parts, strict=True):
        tensor.copy_(part.view(tensor.shape))
