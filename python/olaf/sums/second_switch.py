"""A job of sums with two switches: when the first one fails, the workers go on through the second.

`SpareClient` has the methods of `SumClient`. It keeps the lanes of open operations, because results
are written over them, and the last results, because another worker may lack them. After a failure
of the first switch a thread joins the job at the second one, agrees with the other workers
(`olaf.sums.meeting`) and begins the open operations again. docs/design/029-second-switch.md has the
protocol and its cost.
"""

from __future__ import annotations

import json
import queue
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from olaf._olaf import SumClient, SumError
from olaf.sums.kept import Kept
from olaf.sums.meeting import ENDS, DisagreementError, Kind, Result, Standing, givers, shared
from olaf.sums.spare_operation import SpareOperation

FAREWELL_S = 15.0
"""A worker that leaves waits at most this long for the others to have all results."""
SWITCH_FAILED = frozenset(("switch_silent", "switch_restarted"))
"""Reasons of a `SumError` after which the job goes on through the second switch."""

State = Literal["first", "moving", "second", "failed", "closed"]
Open = Callable[[int, int], SumClient]
"""Opens a connection to the second switch for a rank of so many workers, without joining."""


class SpareClient:
    """A `SumClient` with a second switch. Any thread may call any method."""

    def __init__(self, first: SumClient, second: str, open_second: Open) -> None:
        """first: has joined. second: address of the second switch."""
        self._first = first
        self._address = second
        self._open_second = open_second
        self._second: SumClient | None = None
        self._run = int(json.loads(first.stats())["generation"] or 0)
        self.changed = threading.Condition(threading.RLock())
        self._state: State = "first"
        self._off: str | None = None
        """Why the second switch cannot help any more."""
        self._failure: SumError | None = None
        self._mover: threading.Thread | None = None
        self._limit_s = first.operation_timeout_s
        self._next = 0
        self._open: deque[SpareOperation] = deque()
        self._kept = Kept()
        self._given: dict[int, Result] = {}
        """Results of operations that have not begun here yet."""
        self._counts = {"operation": 0, "taken": 0, "given": 0, "again": 0}
        self._events: deque[str] = deque(maxlen=1024)
        self._told: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._tellers: dict[int, threading.Thread] = {}

    @property
    def operation_timeout_s(self) -> float:
        """As of `SumClient`."""
        return self._first.operation_timeout_s

    def place(self) -> tuple[int, int] | None:
        """As of `SumClient`."""
        return self._client().place()

    def reduce(
        self,
        array: NDArray[Any],
        lanes: str,
        op: str,
        *,
        root: int = 0,
        partial: bool = False,
        timeout_s: float | None = None,
    ) -> tuple[int, int, bool]:
        """As of `SumClient`."""
        operation = self.begin(array, lanes, op, root=root, partial=partial, timeout_s=timeout_s)
        try:
            operation.wait()
        except BaseException:
            operation.give_up()
            raise
        return operation.outcome()

    def begin(
        self,
        array: NDArray[Any],
        lanes: str,
        op: str,
        *,
        root: int = 0,
        partial: bool = False,
        timeout_s: float | None = None,
    ) -> SpareOperation:
        """As of `SumClient`. While the job moves to the second switch, it waits."""
        operation = SpareOperation(
            self, array, Kind(lanes, op, root, array.nbytes), partial=partial, timeout_s=timeout_s
        )
        with self.changed:
            while self._state == "moving":
                self.changed.wait()
            if self._failure is not None:
                raise _copy(self._failure)
            operation.id = self._next
            if (given := self._given.pop(self._next, None)) is not None:
                self._next += 1
                operation.take(given)
                return operation
            if self._state == "first":
                self._settle_ended()
                operation.copy = self._kept.buffer(array.nbytes)
                operation.keep_lanes(self._rank())
            try:
                operation.begin(self._client())
            except SumError:
                self._look_at_events()
                if not self._moves():
                    raise
            self._next += 1
            self._open.append(operation)
            self._look_at_events()
        return operation

    def next_told(self) -> int | None:
        """As of `SumClient`."""
        return self._told.get()

    def stats(self) -> str:
        """As of `SumClient`, with the table ``fall_back``."""
        with self.changed:
            client, state = self._client(), self._state
            counts = {**self._counts, "kept_bytes": self._kept.bytes}
        told = json.loads(client.stats())
        told["fall_back"] = {"switch": self._address, "state": state, "off": self._off, **counts}
        return json.dumps(told)

    def events(self) -> list[str]:
        """As of `SumClient`."""
        with self.changed:
            self._look_at_events()
            events = [*self._events, *(self._second.events() if self._second else ())]
            self._events.clear()
        return events

    def leave(self) -> None:
        """As of `SumClient`. First wait until all workers have their results, where that may be."""
        self._say_farewell()
        self.leave_at_once()

    def leave_at_once(self) -> None:
        """As of `SumClient`."""
        with self.changed:
            self._state = "closed"
            clients, mover = [self._first, self._second], self._mover
            self.changed.notify_all()
        for client in clients:
            if client is not None:
                client.leave()
        if mover is not None:
            mover.join()
        with self.changed:
            self._settle_ended()
            gone = SumError("this worker has left its job; connect again")
            gone.reason = "not_joined"
            self._fail_open(gone)
            self._failure = self._failure or gone
            self._kept.clear()
        self._told.put(None)

    def _client(self) -> SumClient:
        return self._first if self._second is None else self._second

    def _rank(self) -> int:
        return (self._first.place() or (0, 0))[0]

    def _moves(self) -> bool:
        return self._state == "moving"

    def _say_farewell(self) -> None:
        """Wait until no worker lacks a result that this one has.

        This last operation ends when all have begun it, and they begin it when they have all
        results. No program calls it: numpy has no bfloat16.
        """
        with self.changed:
            self._settle_ended()
            is_needed = self._state == "first" and self._off is None and self._next > 0
            if not is_needed or self._open or (self._first.place() or (0, 1))[1] == 1:
                return
            self._limit_s = FAREWELL_S
        try:
            nothing = np.zeros(13, np.int16)
            self.reduce(nothing, "bf16", "min", timeout_s=FAREWELL_S)
        except (SumError, TimeoutError):
            return  # the others have left: then they had all results

    # What becomes of operations. All of this is called with the lock.

    def settle(self, operation: SpareOperation) -> None:
        """Take the end of an operation, where it has come."""
        self._settle_ended()
        if operation.has_ended:
            self._settle(operation)

    def _settle_ended(self) -> None:
        while self._open and self._open[0].has_ended:
            before = self._open[0]
            self._settle(before)
            if not before.settled:
                return

    def _settle(self, operation: SpareOperation) -> None:
        native, operation.native = operation.native, None
        assert native is not None, "has_ended says so"
        try:
            operation.counts = native.outcome()
        except SumError as error:
            if error.reason not in ENDS and self._goes_on_after(error):
                return
            operation.error = error
        except TimeoutError as error:
            self._off = "an operation of this worker timed out, so it may be behind the others"
            operation.error = error
        self._end(operation)

    def _end(self, operation: SpareOperation) -> None:
        """The operation has its result or its error."""
        if self._state in ("first", "moving"):
            reason = getattr(operation.error, "reason", "") if operation.error else ""
            if operation.error is None or reason in ENDS[1:]:
                if operation.error is None and not operation.copy_is_result:
                    operation.keep_lanes(rank=None)
                self._kept.add(operation.id, operation.result(reason), self._first)
        operation.copy = None
        operation.settled = True
        if operation in self._open:
            self._open.remove(operation)
        if operation.is_told:
            self._told.put(operation.id)
        self.changed.notify_all()

    def _goes_on_after(self, error: SumError) -> bool:
        """Whether the operation with this error begins again through the second switch."""
        if self._state == "first" and error.reason in SWITCH_FAILED:
            self._look_at_events()
            self._move_because(error)
        return self._moves()

    def _look_at_events(self) -> None:
        """An idle worker has no operation that fails: it learns here that its generation ended."""
        for text in self._first.events():
            self._events.append(text)
            event = json.loads(text)
            if event["event"] != "generation_closed":
                continue
            if event["reason"] == "unknown":
                restarted = SumError(f"the switch {self._first_address()} was started again")
                restarted.reason = "switch_restarted"
                self._move_because(restarted)
            elif event["reason"] != "switch_silent" and self._state == "first":
                self._off = self._off or (
                    f"the job began anew ({event['reason']}), so its workers may count differently"
                )

    def _move_because(self, error: SumError) -> None:
        if self._state == "first" and self._off is None:
            self._state = "moving"
            self._mover = threading.Thread(
                target=self._move, args=(error,), name="olaf-move", daemon=True
            )
            self._mover.start()

    def tell(self, operation: SpareOperation) -> bool:
        """Tell its end; False if it has ended."""
        self.settle(operation)
        if operation.settled:
            return False
        operation.is_told = True
        self._listen_for(operation)
        return not operation.settled

    def _listen_for(self, operation: SpareOperation) -> None:
        """Let its client tell that it has ended; a client has a thread for this."""
        native, client = operation.native, self._client()
        if native is None:
            return  # it moves
        if not native.tell():
            operation.is_told = False
            self.settle(operation)
            operation.is_told = not operation.settled
        elif id(client) not in self._tellers:
            thread = threading.Thread(
                target=self._listen, args=(client,), name="olaf-ended", daemon=True
            )
            self._tellers[id(client)] = thread
            thread.start()

    def _listen(self, client: SumClient) -> None:
        while client.next_told() is not None:
            with self.changed:
                for operation in list(self._open):
                    if operation.has_ended:
                        self._settle(operation)

    def _fail_open(self, error: SumError) -> None:
        for operation in list(self._open):
            operation.native = None
            operation.error = _copy(error)
            self._end(operation)

    # The move, in a thread of its own.

    def _move(self, why: SumError) -> None:
        try:
            self._first.leave()  # all of its operations have ended now
            with self.changed:
                for operation in [operation for operation in self._open if operation.native]:
                    self._settle(operation)
                if self._off is not None:
                    raise DisagreementError(self._off)
                mine = self._standing()
            limit = time.monotonic() + self._limit_s
            second = self._join(limit, mine.rank)
            talk = _Talk(second, mine.rank, limit)
            chosen = givers(talk, mine)
            taken = shared(talk, mine, chosen)
        except Exception as error:
            self._give_up(why, error)
            return
        with self.changed:
            if not self._moves():
                return  # the program closed the connection
            first = mine.first_open
            while first in chosen:
                first += 1
            given = sum(giver == mine.rank for giver in chosen.values())
            self._counts |= {"operation": first, "taken": len(taken), "given": given}
            self._go_on(taken, second)
        _warn(
            f"olaf: THE SWITCH {self._first_address()} FAILED ({why}). Worker {mine.rank} goes on "
            f"through the second switch {self._address}, from operation {first} on. There is no "
            "third one: connect again when the first switch runs."
        )

    def _standing(self) -> Standing:
        place = self._first.place()
        assert place is not None, "the worker was in its job when it began"
        unsettled = {operation.id for operation in self._open}
        return Standing(place[0], self._run, self._next, unsettled, self._kept.results)

    def _join(self, limit: float, rank: int) -> SumClient:
        place = self._first.place()
        assert place is not None, "the worker was in its job when it began"
        second = self._open_second(rank, place[1])
        with self.changed:
            if not self._moves():
                second.leave()
                raise DisagreementError("the connection was closed")
            self._second = second
        second.join(max(limit - time.monotonic(), 0.001))
        if second.place() != place:
            raise DisagreementError(
                f"another worker is rank {rank} of this job there: use another job number"
            )
        return second

    def _go_on(self, taken: Mapping[int, Result], second: SumClient) -> None:
        """Begin the open operations again, in their order; those with a result end."""
        self._state = "second"
        self._given = dict(taken)
        for operation in list(self._open):
            if (result := self._given.pop(operation.id, None)) is not None:
                operation.take(result)
                self._end(operation)
                continue
            operation.restore()
            self._counts["again"] += 1
            try:
                operation.begin(second)
            except (SumError, ValueError) as error:
                operation.error = error
                self._end(operation)
                continue
            if operation.is_told:
                self._listen_for(operation)
                if operation.settled:
                    self._told.put(operation.id)
        self._kept.clear()
        self.changed.notify_all()

    def _give_up(self, why: SumError, error: Exception) -> None:
        failure = SumError(
            f"{why}; and the job cannot go on through the second switch {self._address}: {error}"
        )
        failure.reason = why.reason
        second = self._second
        if second is not None:
            second.leave()
        with self.changed:
            if self._moves():
                self._state, self._failure = "failed", failure
                self._fail_open(failure)
                self._kept.clear()
            self.changed.notify_all()

    def _first_address(self) -> str:
        return str(json.loads(self._first.stats())["switch"])


class _Talk:
    """What the workers of a meeting do together, through the second switch."""

    def __init__(self, client: SumClient, rank: int, limit: float) -> None:
        self._client = client
        self._rank = rank
        self._limit = limit

    def smallest(self, numbers: list[int]) -> list[int]:
        while True:
            array = np.array(numbers, np.int64)
            try:
                self._client.reduce(array, "i64", "min", timeout_s=self._left_s())
            except SumError as error:
                # A worker missed the deadline of a block. All see that, and try again.
                if error.reason != "partial":
                    raise
            else:
                return [int(number) for number in array]

    def copy_of(self, rank: int, words: NDArray[np.int64]) -> None:
        self._client.reduce(words, "i64", "broadcast", root=rank, timeout_s=self._left_s())

    def _left_s(self) -> float:
        return max(self._limit - time.monotonic(), 0.001)


def _copy(error: SumError) -> SumError:
    """The same error for another operation: each needs its own traceback."""
    copy = SumError(*error.args)
    for name in ("reason", "culprit", "contributors", "expected"):
        setattr(copy, name, getattr(error, name))
    return copy


def _warn(text: str) -> None:
    """Warn once; a program that makes warnings errors must not lose its job here."""
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        warnings.showwarning(text, RuntimeWarning, __file__, 0)
