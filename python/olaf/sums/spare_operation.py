"""An operation of a job with two switches (`olaf.sums.second_switch`)."""

from __future__ import annotations

import threading
import time
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from olaf._olaf import SumClient, SumError, SumOperation
from olaf.sums.meeting import Kind, Result


class Owner(Protocol):
    """The client whose operation it is."""

    changed: threading.Condition
    """The lock of all its operations; told of each change."""

    def settle(self, operation: SpareOperation) -> None:
        """Take the end of an operation, where it has come. With the lock."""

    def tell(self, operation: SpareOperation) -> bool:
        """Tell its end; False if it has ended. With the lock."""

    def leave_at_once(self) -> None:
        """Close the connection."""


class SpareOperation:
    """An operation that has begun, as `SumOperation`."""

    def __init__(
        self,
        client: Owner,
        array: NDArray[Any],
        kind: Kind,
        *,
        partial: bool,
        timeout_s: float | None,
    ) -> None:
        self.id = 0
        self.native: SumOperation | None = None
        """The operation at the present switch; None while the job moves, and after the end."""
        self.copy: NDArray[np.int64] | None = None
        """This worker's lanes, and after the end the result."""
        self.copy_is_result = False
        self.counts: tuple[int, int, bool] | None = None
        self.error: Exception | None = None
        self.settled = False
        self.is_told = False
        self._client = client
        self._array = array
        self._kind = kind
        self._partial = partial
        self._timeout_s = timeout_s

    def done(self) -> bool:
        """As of `SumOperation`."""
        with self._client.changed:
            self._client.settle(self)
            return self.settled

    def wait(self, timeout_s: float | None = None) -> bool:
        """As of `SumOperation`. The time limit begins again at the second switch."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while not self.done():
            left = None if end is None else max(end - time.monotonic(), 0.0)
            native = self.native
            if native is not None:
                if not native.wait(left):
                    return self.done()
                continue
            with self._client.changed:
                if not self.settled and self.native is None and not self._client.changed.wait(left):
                    return self.settled
        return True

    def outcome(self) -> tuple[int, int, bool]:
        """As of `SumOperation`."""
        with self._client.changed:
            self._client.settle(self)
        if self.error is not None:
            raise self.error
        if self.counts is None:
            raise TimeoutError("the operation has not ended")
        return self.counts

    def give_up(self) -> None:
        """As of `SumOperation`. While the job moves, the connection closes."""
        native = self.native
        if native is not None:
            native.give_up()
        elif not self.done():
            self._client.leave_at_once()

    def tell(self) -> bool:
        """As of `SumOperation`."""
        with self._client.changed:
            return self._client.tell(self)

    @property
    def has_ended(self) -> bool:
        """It has ended at its switch, and nobody has taken the outcome."""
        return self.native is not None and self.native.done()

    def begin(self, client: SumClient) -> None:
        """Begin it at this switch."""
        self.native = client.begin(
            self._array,
            self._kind.lanes,
            self._kind.op,
            root=self._kind.root,
            partial=self._partial,
            timeout_s=self._timeout_s,
        )

    def keep_lanes(self, rank: int | None) -> None:
        """Copy what the array holds; rank: of the worker, before its operation."""
        is_broadcast = self._kind.op == "broadcast"
        if rank is not None and is_broadcast and rank != self._kind.root:
            return  # its lanes do not matter
        if self.copy is not None:
            np.copyto(_bytes_of(self.copy)[: self._kind.bytes], _bytes_of(self._array))
            # The root's lanes are the result.
            self.copy_is_result = is_broadcast

    def restore(self) -> None:
        """Write the worker's lanes to the array, which may have some results."""
        if self.copy is not None:
            np.copyto(_bytes_of(self._array), _bytes_of(self.copy)[: self._kind.bytes])
        self.copy = None

    def result(self, reason: str) -> Result:
        """The end, as another worker may need it."""
        counts = self.counts or (0, 0, False)
        if reason or self.copy is None:
            return Result(self._kind, reason, counts, np.zeros(0, np.int64))
        return Result(self._kind, reason, counts, self.copy)

    def take(self, result: Result) -> None:
        """End with the result of another worker."""
        contributors, expected, _ = result.counts
        if result.kind != self._kind:
            self.error = SumError(
                f"another worker called another operation ({_said(result.kind)}, and here "
                f"{_said(self._kind)}): "
                "every worker must call the same operations in the same order"
            )
            self.error.reason = "mismatch"
        elif result.reason or (contributors < expected and not self._partial):
            self.error = SumError(
                f"only {contributors} of the {expected} workers are in the sum"
                if result.reason != "not_finite"
                else "a worker sent a NaN or an infinity, which the switch refused"
            )
            self.error.reason = result.reason or "partial"
        else:
            np.copyto(_bytes_of(self._array), _bytes_of(result.words)[: self._kind.bytes])
            self.counts = result.counts
        self.settled = True


def _said(kind: Kind) -> str:
    root = f" from {kind.root}" if kind.op == "broadcast" else ""
    return f"{kind.op}{root} of {kind.bytes} bytes of {kind.lanes}"


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)
