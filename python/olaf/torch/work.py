"""`Work` handles of sums: what ``async_op=True`` returns."""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore,misc"

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol

import torch

from olaf.processes import callbacks
from olaf.torch import futures
from olaf.torch.compiling import uncompiled
from olaf.torch.distributed import dist


class Pending(Protocol):
    """An operation under way; `olaf.sums.future.SumFuture` is one."""

    def wait(self, timeout_s: float | None = None) -> Any: ...  # noqa: D102
    def done(self) -> bool: ...  # noqa: D102
    def add_done_callback(self, call: Callable[[Any], None], /) -> None: ...  # noqa: D102


class Queued:
    """An operation that waits in a `Lane`."""

    def __init__(self, future: concurrent.futures.Future[None]) -> None:
        self._future = future

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the end. Raises its error, or TimeoutError."""
        self._future.result(timeout_s)

    def done(self) -> bool:
        """It has ended, well or not."""
        return self._future.done()

    def add_done_callback(self, call: Callable[[Any], None], /) -> None:
        """Call at the end, with this object: in a thread of its own.

        The lane goes on meanwhile, so the call may wait for another operation of the lane.
        """
        if self.done():
            call(self)
        else:
            self._future.add_done_callback(lambda _: callbacks.start(lambda: call(self)))


class SumWork(dist.Work):
    """The handle of one call: of one operation, or of several that were called together.

    finish: runs once in the thread that first learns of the end, before the waiting ones go on.
    open_works: the works of a group that have not been taken in; this one takes itself out.
    """

    def __init__(
        self,
        tensors: Sequence[torch.Tensor],
        pending: Sequence[Pending] = (),
        *,
        finish: Callable[[], None] | None = None,
        explain: Callable[[BaseException], BaseException] = lambda error: error,
        stream: Any = None,
        open_works: dict[int, SumWork] | None = None,
    ) -> None:
        super().__init__()
        self._tensors = list(tensors)
        self._pending = list(pending)
        self._finish = finish
        self._explain = explain
        self._stream = stream
        self._lock = threading.Lock()
        self._settled = not self._pending and finish is None
        self._error: BaseException | None = None
        self._future: torch.futures.Future[Any] | None = None
        self._open_works = open_works
        if open_works is not None and not self._settled:
            open_works[id(self)] = self

    @uncompiled
    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for the result; for CUDA tensors, make the current stream wait for it.

        timeout: None or zero waits as long as the operation may take. Raises DistBackendError.
        """
        if not self._settled:
            self._wait_for_all(timeout.total_seconds() if timeout else None)
            self._settle()
        if self._error is not None:
            raise self._error
        if self._stream is not None:
            torch.cuda.current_stream(self._tensors[0].device).wait_stream(self._stream)
        return True

    def _wait_for_all(self, limit: float | None) -> None:
        for pending in self._pending:
            try:
                pending.wait(limit)
            except TimeoutError as error:
                if not pending.done():
                    raise dist.DistBackendError(
                        f"olaf: wait() timed out after {limit} s; the operation goes on"
                    ) from error
            except BaseException:
                if not pending.done():  # KeyboardInterrupt, for example
                    raise

    def synchronize(self) -> None:
        """The same as wait()."""
        self.wait()

    @uncompiled
    def is_completed(self) -> bool:
        """The operation has ended, well or not, and the caller's memory has the result."""
        if not self.has_ended():
            return False
        self._settle()
        return True

    def has_ended(self) -> bool:
        """The operation has ended. A result that lies elsewhere may not have been copied yet."""
        return all(pending.done() for pending in self._pending)

    def is_success(self) -> bool:
        """The operation has ended well."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """The error of an operation that failed."""
        self.is_completed()
        return self._error

    def result(self) -> list[torch.Tensor]:
        """The tensors; they have the result in place."""
        self.wait()
        return self._tensors

    @uncompiled
    def get_future(self) -> Any:
        """A torch future of the tensors."""
        with self._lock:
            if self._future is not None:
                return self._future
            devices: Any = [self._tensors[0].device] if self._stream is not None else None
            ended: Any = torch.futures.Future(devices=devices)
            # An error that is raised in then() reaches DDP's reducer. `set_exception` would not:
            # it raises only where Python waits.
            self._future = ended.then(lambda _: self._outcome())
            if self._is_for_compression:
                self._future = futures.of_tensors(self._future, self._tensors)
        left = _Countdown(len(self._pending), lambda: self._resolve(ended))
        for pending in self._pending:
            pending.add_done_callback(left)
        left(None)  # for the case without operations
        return self._future

    @property
    def _is_for_compression(self) -> bool:
        """DDP's built-in hook FP16_COMPRESS takes a future of `list[Tensor]` alone: it is C++."""
        halves = bool(self._tensors) and all(
            tensor.dtype == torch.float16 for tensor in self._tensors
        )
        return halves and self._tensors[0].device.type == "cpu"

    def _resolve(self, ended: Any) -> None:
        if self._stream is None:
            ended.set_result(None)
        else:
            # The future takes an event of the current stream; its users then wait for the event.
            with torch.cuda.stream(self._stream):
                ended.set_result(None)

    def _outcome(self) -> list[torch.Tensor]:
        self._settle()
        if self._error is not None:
            raise self._error
        return self._tensors

    def _settle(self) -> None:
        """Take in the end of all operations, once."""
        with self._lock:
            if self._settled:
                return
            try:
                for pending in self._pending:
                    pending.wait()
                if self._finish is not None:
                    self._finish()
            except BaseException as error:
                self._error = self._explain(error)
            self._settled = True
            if self._open_works is not None:
                self._open_works.pop(id(self), None)


class _Countdown:
    """Calls once after ``count`` operations and its owner have called it."""

    def __init__(self, count: int, call: Callable[[], None]) -> None:
        self._left = count + 1
        self._call = call
        self._lock = threading.Lock()

    def __call__(self, _: Any) -> None:
        with self._lock:
            self._left -= 1
            if self._left:
                return
        self._call()
