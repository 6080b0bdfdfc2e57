"""A group's connection that may not be there yet.

The first sum of a group joins the switch, and joining waits for all ranks. A call with
``async_op=True`` must not wait: two ranks that make the first sums of two groups in opposite order
would wait for each other. So the lane joins, and the operations wait there behind it.
"""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from olaf.torch.distributed import dist

if TYPE_CHECKING:
    from olaf.sums.collective import SumConnection
    from olaf.torch.lane import Lane


class Joining:
    """A connection, or the lane's attempt to make one."""

    def __init__(self, connection: SumConnection | Callable[[], SumConnection], lane: Lane) -> None:
        self._lock = threading.Lock()
        self._is_closed = False
        self._made: SumConnection | None = None
        self._error: BaseException | None = None
        if callable(connection):
            make = connection
            lane.submit(lambda: self._join(make))
        else:
            self._made = connection

    @property
    def has_failed(self) -> bool:
        """No connection could be made."""
        return self._error is not None

    @property
    def connection(self) -> SumConnection:
        """Raises the error of the attempt, for each operation anew."""
        if self._made is not None:
            return self._made
        said = self._error if self._error is not None else "olaf: the group has not joined"
        raise dist.DistBackendError(str(said)) from self._error

    def close(self) -> None:
        """Leave the job. An attempt that goes on leaves when it has joined."""
        with self._lock:
            self._is_closed, made = True, self._made
        if made is not None:
            made.close()

    def _join(self, make: Callable[[], SumConnection]) -> None:
        try:
            made = make()
        except BaseException as error:
            self._error = error
            raise
        with self._lock:
            self._made, is_closed = made, self._is_closed
        if is_closed:
            made.close()
