"""All workers of a job sum their arrays through a switch (``olaf switch --engines reduce``). ::

    with olaf.connect_sum("10.0.0.1:5555", workers=4) as job:
        job.all_reduce(gradient, "mean")   # in place; every worker gets the same result

Numpy arrays and CPU tensors are reduced where they lie, with the GIL released. Each worker calls
the same operations in the same order.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from olaf.files.keyfile import with_key
from olaf.memory.views import READ_ONLY, View, view_of
from olaf.processes import callbacks, forking
from olaf.sums import checking, flight, protocols, second_switch, wide
from olaf.sums.future import SumFuture
from olaf.sums.program import program_of

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

    from olaf._olaf import SumClient, SumOperation
    from olaf.sums.pipeline import PipelinedTraining

T = TypeVar("T")

Op = Literal["sum", "mean", "min", "max"]
OPS = ("sum", "mean", "min", "max")

MOST_RESTING = 2
"""Threads of a connection that wait for the next callback, at most."""


def connect_sum(
    switch: str,
    *,
    job: int = 1,
    workers: int | None = None,
    rank: int | None = None,
    timeout_s: float = 30.0,
    deadline_s: float | None = None,
    protocol: str = "reduce",
    fall_back: str | None = None,
    program: str | int | None = None,
    **options: float | str | None,
) -> SumConnection:
    """Join a job at the switch at ``udp://host:port``, and wait until the job begins.

    job: number of the job; its workers sum together. Jobs side by side need different numbers.
    workers: number of workers that the job waits for. None: workers come and go (elastic).
    rank: the wanted rank, from 0; None takes any free rank.
    timeout_s: time limit for the job to begin.
    deadline_s: a block that is incomplete after this time is summed without the missing workers,
    see ``partial`` of `SumConnection.all_reduce`. None waits for every worker. The same for all.
    protocol: "reduce", or the baselines "switchml-atp" and "switchml-trio": fixed-point sums in
    small packets with a fixed window. See docs/all-reduce.md. The same for all workers.
    fall_back: ``host:port`` of a second switch of "reduce". When the first one fails, also in the
    middle of an operation, all workers finish the open operations through the second one and go on
    there, and each warns once (RuntimeWarning). Needs ``workers``; the same for all workers.
    program: name or number of the program, the same at all its workers. Two programs that use one
    job number are then told so, and their arrays are never summed together. None: ``OLAF_PROGRAM``
    of the environment, or what torchrun, Slurm or Open MPI say of a program with this many workers.
    If nothing names it, the job's first generation begins 0.1 to 0.3 s later, and two live workers
    that want one rank at its start are both turned away.
    options: ``operation_timeout_ms`` (60,000), ``silence_ms`` (5,000: a switch that is not heard
    for this time has failed), ``block_bytes``, ``window_blocks``, ``keepalive_ms``, ``mtu_bytes``,
    ``ecn``; ``key_file`` (the key of the job, `olaf keys`; without it OLAF_KEY_FILE of the
    environment); ``cores`` (most cores of the switch to use); ``recovery`` ("ask", "timer" with
    ``timer_ms``, or "off"); ``scale`` (float32 sums travel as integers: each value times this
    number).

    Raises ValueError for an invalid argument, UnreachableError if the switch does not answer,
    RefusedError if it turns this worker away, and TimeoutError if other workers are missing.
    """
    from olaf._olaf import SumClient

    for name, value in (("job", job), ("workers", workers), ("rank", rank)):
        if value is not None and not 0 <= value < 2**32:
            raise ValueError(f"{name} = {value}: must be from 0 to 4294967295")
    if deadline_s is not None:
        if deadline_s < 0.001:
            raise ValueError(f"deadline_s = {deadline_s}: must be at least 0.001, or None")
        options["deadline_ms"] = round(deadline_s * 1000)
    chosen = protocols.protocol(protocol)
    if chosen.sums_floats and workers is None:
        raise ValueError(f"workers = None: the protocol {protocol} needs the number of workers")
    if fall_back is not None:
        if options.setdefault("cores", 1) != 1:
            raise ValueError(f"cores = {options['cores']}: with fall_back a worker uses one core")
        if workers is None:
            raise ValueError(
                "fall_back needs workers=: in an elastic job the second switch cannot know for "
                "whom to wait"
            )
        if chosen.engine != "reduce":
            raise ValueError(f'protocol = {protocol!r}: only "reduce" has a fall_back')
        options["fall_back"] = fall_back
    identity = program_of(program, workers)
    config = json.dumps(chosen.configuration({"program": identity, **with_key(options)}))
    client = SumClient(switch, job=job, workers=workers, rank=rank, config=config)
    try:
        client.join(timeout_s)
    except BaseException:
        client.leave()
        raise
    threshold = options.get("threshold")
    try:
        recorder = flight.Recorder(
            client.place, job=job, program=identity, protocol=protocol, switch=switch
        )
    except BaseException:
        client.leave()
        raise
    connection = SumConnection(
        client,
        job=job,
        protocol=protocol,
        threshold=threshold,
        recorder=recorder,
        workers=workers,
    )
    if fall_back is not None:
        connection._moves = second_switch.warn_of_move(client)
    return connection


class SumConnection:
    """A worker in a job of sums. `connect_sum` makes it; a context manager that leaves at its end.

    Any thread may call any method. Operations that several threads begin must begin in the same
    order at every worker. The connection belongs to its process: in a child that was forked it
    raises RuntimeError, and `close` does nothing.
    """

    def __init__(
        self,
        client: SumClient,
        *,
        job: int = 1,
        protocol: str = "reduce",
        threshold: float | str | None = None,
        recorder: flight.Recorder | None = None,
        workers: int | None = None,
    ) -> None:
        self._client = client
        self._flight = recorder or flight.Recorder(client.place, job=job)
        self._moves: threading.Thread | None = None
        """Warns when the job has moved to its second switch."""
        self._job = job
        self._protocol = protocol
        self._threshold = threshold
        self._fixed = workers
        self._checks = checking.is_on()
        self._telling = threading.Lock()
        self._told: dict[int, Callable[[], None]] = {}
        self._tellers: set[threading.Thread] = set()
        self._resting = 0
        self._inert: forking.Inert | None = None
        forking.register(self)

    def __forked__(self) -> None:
        """In a child that was forked: the connection stays with its parent."""
        forking.abandon(self._client)
        self._inert = forking.Inert()
        self._client = cast("SumClient", self._inert)
        self._telling, self._tellers = threading.Lock(), set()
        self._moves = None

    def _check_process(self) -> None:
        """Raise RuntimeError in a process that was forked from the one that has connected."""
        if self._inert is not None:
            self._inert.refuse()

    @property
    def job(self) -> int:
        """Number of the job."""
        return self._job

    @property
    def protocol(self) -> str:
        """Name of the protocol, as given to `connect_sum`."""
        return self._protocol

    @property
    def is_alone(self) -> bool:
        """True if the job is one of ``workers=1``: a sum is then the worker's own array."""
        return self._fixed == 1

    @property
    def is_elastic(self) -> bool:
        """True if workers may come and go: `connect_sum` got no ``workers``."""
        return self._fixed is None

    @property
    def rank(self) -> int:
        """This worker's rank, from 0. In an elastic job it may change when workers come or go."""
        return self._place()[0]

    @property
    def workers(self) -> int:
        """Number of workers in the job. In an elastic job it changes when workers come or go."""
        return self._place()[1]

    def all_reduce(
        self,
        array: T,
        op: Op = "sum",
        *,
        exact: bool | Literal["wide"] = False,
        timeout_s: float | None = None,
        partial: bool = False,
    ) -> T:
        """Reduce ``array`` with those of all workers, in place, and return it.

        array: numpy float32, float16, int32 or int64, or a CPU tensor of these types or bfloat16.
        An array that is not contiguous is copied, reduced and written back. An empty one is an
        operation, too: every worker calls the same.
        op: "sum", "mean" (floats only), "min" or "max". Integer sums wrap. A mean of float16 or
        bfloat16 is summed and divided in float32: it takes the bytes of float32.
        exact: sum float32 so that the same inputs give the same bits in every run, whatever the
        order in which they arrive. It costs one round trip more. Integers are always exact. "wide"
        keeps small values beside large ones, too: it sends twice the bytes.
        timeout_s: time limit; None uses ``operation_timeout_ms`` of `connect_sum`.
        partial: accept a result that lacks workers which missed the deadline of a block. The mean
        is then over its contributors.

        After an error the contents of ``array`` are undefined. Raises SumError if the operation
        failed, TimeoutError at the time limit, ValueError for an array that cannot be reduced. A
        call that the protocol does not have (max over "trio") is an operation that fails with
        ValueError: the other workers are told what this one called.
        """
        view, name = _prepared(array, op, exact=bool(exact))
        is_wide = exact == "wide" and bool(view.size) and name.startswith("exact_")
        entry, tag = self._recorded(array, view, f"wide_{op}" if is_wide else name)
        try:
            if is_wide:
                self._reduce_wide(view, op, timeout_s, tag, partial=partial)
            else:
                self._client.reduce(
                    view.array, view.lanes, name, partial=partial, timeout_s=timeout_s, tag=tag
                )
                view.write_back()
        except BaseException as error:
            self._flight.end(entry, error)
            raise
        self._flight.end(entry)
        return array

    def _reduce_wide(
        self, view: View, op: str, timeout_s: float | None, tag: int, *, partial: bool
    ) -> None:
        if partial:
            raise ValueError(
                'exact="wide" sums for all workers or for none: leave partial=True out'
            )
        if not view.array.flags.writeable:
            raise ValueError(READ_ONLY)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s

        def reduce(lanes: NDArray[Any], kind: str, name: str) -> None:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            self._client.reduce(lanes, kind, name, timeout_s=left, tag=tag)

        wide.all_reduce(view.array, op, reduce, lambda: self.workers)
        view.write_back()

    def all_reduce_async(
        self,
        array: T,
        op: Op = "sum",
        *,
        exact: bool = False,
        timeout_s: float | None = None,
        partial: bool = False,
    ) -> SumFuture[T]:
        """Begin an `all_reduce` and return at once; leave ``array`` alone until it has ended.

        ``exact="wide"`` is two operations, one after the other: only `all_reduce` has it.
        """
        if not isinstance(exact, bool):
            raise ValueError(f"exact = {exact!r}: must be True or False; all_reduce has more")
        view, name = _prepared(array, op, exact=exact)
        return self._begin(array, view, name, 0, timeout_s, partial=partial)

    def broadcast(self, array: T, root: int = 0, *, timeout_s: float | None = None) -> T:
        """Overwrite ``array`` with that of the worker with rank ``root``, and return it."""
        view, root = view_of(array), self._root(root)
        entry, _ = self._recorded(array, view, "broadcast", root)
        try:
            self._client.reduce(view.array, view.lanes, "broadcast", root=root, timeout_s=timeout_s)
            view.write_back()
        except BaseException as error:
            self._flight.end(entry, error)
            raise
        self._flight.end(entry)
        return array

    def broadcast_async(
        self, array: T, root: int = 0, *, timeout_s: float | None = None
    ) -> SumFuture[T]:
        """Begin a `broadcast` and return at once; leave ``array`` alone until it has ended."""
        view, root = view_of(array), self._root(root)
        return self._begin(array, view, "broadcast", root, timeout_s, partial=False)

    def pipeline(
        self,
        weights: T,
        step: Callable[[T, T], object],
        *,
        iterations: int,
        staleness: int = 3,
        iteration: int = 0,
        state: Sequence[Any] = (),
        timeout_s: float | None = None,
    ) -> PipelinedTraining[T]:
        """Train asynchronously without a server (iSwitch §4.1, Algorithm 1). ``iswitch`` only. ::

            with job.pipeline(weights, step, iterations=200) as training:
                for copy in training:
                    training.commit(gradient(copy))

        weights: contiguous float32 array, or CPU tensor. All workers begin with the weights of the
        worker with the most iterations; of rank 0 if all have done the same number.
        step: called as ``step(weights, mean)`` for each iteration, in a thread of its own. It
        updates the weights in place. ``mean`` is the mean of H gradients; H is the number of
        workers. The weights are equal at all workers, bit for bit, if ``step`` is deterministic.
        iterations: weight updates until the end, those before ``iteration`` included.
        staleness: a gradient is sent if at most this number of iterations have ended since its copy
        of the weights (S of the paper).
        iteration: updates that the weights have already, for example after a restart.
        state: further float32 arrays that ``step`` keeps, such as moments. They are broadcast with
        the weights.
        timeout_s: time limit of an iteration; None uses ``operation_timeout_ms``.

        Call no other operation of this connection before the training has ended. Raises ValueError
        for an invalid argument, and as `all_reduce` does.
        """
        from olaf.sums.pipeline import PipelinedTraining

        self.check_pipeline()
        return PipelinedTraining(
            *(self, self._client, weights, step),
            iterations=iterations,
            staleness=staleness,
            iteration=iteration,
            state=state,
            timeout_s=timeout_s,
        )

    def check_pipeline(self) -> None:
        """Raise ValueError if `pipeline` is not possible over this connection."""
        if self._protocol != "iswitch":
            raise ValueError(
                f'protocol = {self._protocol!r}: pipelined training needs protocol="iswitch"'
            )
        if self._threshold is not None:
            raise ValueError(
                f"threshold = {self._threshold}: pipelined training needs all workers in some sums;"
                " leave it out"
            )

    def stats(self) -> dict[str, Any]:
        """Counters of this connection, see ``docs/reference/statistics.md#worker-of-sums``."""
        stats: dict[str, Any] = json.loads(self._client.stats())
        return stats

    def operations(self) -> list[dict[str, Any]]:
        """The last operations of this worker, the oldest first: see docs/flight.md."""
        return self._flight.operations()

    def events(self) -> list[dict[str, Any]]:
        """The events since the last call: a silent switch, a new generation, .."""
        return [json.loads(event) for event in self._client.events()]

    def close(self) -> None:
        """Leave the job. Open operations of this worker fail. Idempotent.

        With ``fall_back`` it waits until all workers have their results: for 15 s at most.
        Callbacks return before it does, if they take no more than 2 s.
        """
        self._flight.close()
        self._client.leave()
        if self._moves not in (None, threading.current_thread()):
            self._moves.join(callbacks.EXIT_WAIT_S)
        # The threads end now. A callback may close the connection, too.
        until = time.monotonic() + callbacks.EXIT_WAIT_S
        with self._telling:
            tellers = self._tellers - {threading.current_thread()}
        for teller in tellers:
            teller.join(max(until - time.monotonic(), 0.0))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            # The other workers do not close yet, so nothing waits for them.
            self._client.leave_at_once()
        self.close()

    def _place(self) -> tuple[int, int]:
        place = self._client.place()
        if place is None:
            raise ValueError(f"this worker has not joined job {self._job}")
        return place

    def _root(self, root: int) -> int:
        if not 0 <= root < self.workers:
            raise ValueError(f"root = {root}: must be a rank, from 0 to {self.workers - 1}")
        return root

    def _begin(
        self, array: T, view: View, op: str, root: int, timeout_s: float | None, *, partial: bool
    ) -> SumFuture[T]:
        entry, tag = self._recorded(array, view, op, root)
        try:
            operation = self._client.begin(
                *(view.array, view.lanes, op),
                root=root,
                partial=partial,
                timeout_s=timeout_s,
                tag=tag,
            )
        except BaseException as error:
            self._flight.end(entry, error)
            raise
        return SumFuture(self, array, view, operation, entry)

    def _recorded(
        self, array: object, view: View, op: str, root: int = 0
    ) -> tuple[flight.Entry, int]:
        """An entry of the flight recorder, and the mark of the call for the other workers."""
        if not self._checks:
            return self._flight.begin(op, view.lanes, view.size, root, None), 0
        place = checking.place_of_call()
        entry = self._flight.begin(op, view.lanes, view.size, root, place)
        return entry, checking.mark(array, place)

    def _call_at_end(self, operation: SumOperation, call: Callable[[], None]) -> None:
        """Call when the operation has ended: in a thread for this, or now if it has."""
        with self._telling:
            self._told[operation.id] = call
            if not self._tellers:
                self._add_teller()
        if not operation.tell() and operation.id in self._told:
            del self._told[operation.id]
            call()

    def _add_teller(self) -> None:
        """One more thread for callbacks. The caller has the lock."""
        teller = threading.Thread(target=self._tell, name="olaf-told", daemon=True)
        self._tellers.add(teller)
        teller.start()

    def _tell(self) -> None:
        """Run callbacks. While one runs, another thread waits for the next operation that ends.

        So a callback may wait for another operation, or for a future that a callback completes.
        """
        while True:
            with self._telling:
                if self._resting >= MOST_RESTING:
                    break
                self._resting += 1
            ended = self._client.next_told()
            with self._telling:
                self._resting -= 1
                if ended is not None and not self._resting:
                    self._add_teller()
            if ended is None:
                break
            call = self._told.pop(ended, None)
            if call is not None:
                with callbacks.running():
                    call()
                    # It may hold the last reference to a tensor, whose end is C++ code, too.
                    del call
        with self._telling:
            self._tellers.discard(threading.current_thread())


def _prepared(array: object, op: str, *, exact: bool) -> tuple[View, str]:
    """What the switch gets, and the operation as the core names it. Raises ValueError.

    A mean of halves travels as float32, so that it is rounded once: when `View` writes it back. The
    sum of three values of 60,000 is no float16, but their mean is.
    """
    view = view_of(array)
    name = _native(op, view, exact=exact)
    return (view.widened(array) if op == "mean" else view), name


def _native(op: str, view: View, *, exact: bool) -> str:
    """The operation as the core names it. Raises ValueError."""
    if op not in OPS:
        raise ValueError(f"op = {op!r}: must be one of {', '.join(OPS)}")
    if not exact or op in ("min", "max") or view.lanes in ("i32", "i64"):
        return op
    if view.lanes != "f32":
        raise ValueError(f"exact sums need float32, and the array holds {view.lanes}: convert it")
    return f"exact_{op}"
