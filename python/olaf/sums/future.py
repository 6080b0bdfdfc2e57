"""The result of an asynchronous operation."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from olaf.memory.views import View
from olaf.processes import forking
from olaf.sums import flight

if TYPE_CHECKING:
    from olaf._olaf import SumOperation

T = TypeVar("T")


class Counts(NamedTuple):
    """Who is in a result."""

    contributors: int
    """Workers in the block with the fewest contributors."""
    expected: int
    """Workers that belong into the sum."""
    not_finite: bool
    """True if a worker sent a NaN or an infinity."""


class Connection(Protocol):
    """What a future asks of its connection, `olaf.sums.collective.SumConnection`."""

    _flight: flight.Recorder
    _inert: forking.Inert | None

    def _check_process(self) -> None: ...

    def _call_at_end(self, operation: SumOperation, call: Callable[[], None], /) -> None: ...


class SumFuture(Generic[T]):
    """The result of an operation that has begun."""

    def __init__(
        self,
        connection: Connection,
        array: T,
        view: View,
        operation: SumOperation,
        entry: flight.Entry,
    ) -> None:
        entry.watch(self)
        self._entry = entry
        self._connection = connection
        self._array = array
        self._view = view
        self._operation = operation
        self._lock = threading.Lock()
        self._settled = False
        self._error: BaseException | None = None
        self._counts: Counts | None = None
        self._calls: list[Callable[[SumFuture[T]], object]] | None = None

    def done(self) -> bool:
        """True if the operation has ended, well or not."""
        if self._settled:
            return True
        self._connection._check_process()
        if not self._operation.done():
            return False
        self._settle()
        return True

    def is_over(self) -> bool:
        """True if the operation has ended. Unlike `done`, it leaves the result where it is."""
        return self._settled or (self._connection._inert is None and self._operation.done())

    def wait(self, timeout_s: float | None = None) -> T:
        """Wait for the end, and return the array with the result.

        timeout_s: longest wait; None waits for the operation's own time limit. Raises TimeoutError
        if it is over: the operation then goes on. Raises as `SumConnection.all_reduce` does.
        """
        if not self._settled:
            self._connection._check_process()
            if not self._operation.wait(timeout_s):
                raise TimeoutError(f"the operation has not ended after {timeout_s} s; it goes on")
            self._settle()
        if self._error is not None:
            raise self._error
        return self._array

    def exception(self) -> BaseException | None:
        """Why the operation failed; None if it did not, or has not ended."""
        return self._error if self.done() else None

    @property
    def counts(self) -> Counts | None:
        """Who is in the result; None before the end, and after an error."""
        self.done()
        return self._counts

    def add_done_callback(self, fn: Callable[[SumFuture[T]], object]) -> None:
        """Call ``fn(future)`` at the end: in a thread of the connection, or now if it has come."""
        with self._lock:
            first = self._calls is None
            self._calls = [*(self._calls or ()), fn]
        if first:
            self._connection._call_at_end(self._operation, self._call)
        elif self._settled:
            self._call()

    def _call(self) -> None:
        self._settle()
        while True:
            with self._lock:
                if not self._calls:
                    self._calls = None
                    return
                fn = self._calls.pop(0)
            try:
                fn(self)
            except Exception:
                # As in `concurrent.futures`: the other callbacks are called all the same.
                logging.getLogger("olaf").exception("a callback of an all-reduce failed")

    def _settle(self) -> None:
        """Take the outcome, once, and write a copy back."""
        with self._lock:
            if self._settled:
                return
            try:
                self._counts = Counts(*self._operation.outcome())
                self._view.write_back()
            except Exception as error:
                self._error = error
            self._settled = True
        self._connection._flight.end(self._entry, self._error)
