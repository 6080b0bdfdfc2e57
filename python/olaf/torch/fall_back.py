"""Finishes a group's operations over gloo when the way through the switch fails.

All ranks must take the same results. So the lane does one operation at a time, and a rank that has
finished operation `n` knows that every rank has finished `n - 1`:

1. A rank whose operation fails raises a flag in the group's store. The others look for the flag
   four times a second, also while their program computes.
2. Each rank closes its connection and writes down how many operations it has finished. These
   numbers differ by one at most.
3. If some rank has finished one more, it gives its result to those who lack it: they must not
   compute it again, because gloo adds in another order. If nobody has, all do it by gloo.
4. All later operations go by gloo.

Every wait has a deadline; a rank that does not come is named.
"""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from __future__ import annotations

import logging
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch

from olaf.processes import callbacks
from olaf.torch.calls import ALL_REDUCE, BROADCAST, MAX, MEAN, MIN, SUM, Call
from olaf.torch.distributed import Gloo, Store, dist
from olaf.torch.failing import blame, of_the_program
from olaf.torch.lane import Lane

if TYPE_CHECKING:
    from olaf.sums.collective import SumConnection

LOOK_EVERY_S = 0.25
"""Time between two looks at the flag."""
MEETING_S = 15.0
"""Deadline for all ranks to come together after a failure. Their threads need no help of the
program, so this is long."""
FLAG = "flag"

OPERATIONS = {SUM: dist.ReduceOp.SUM, MIN: dist.ReduceOp.MIN, MAX: dist.ReduceOp.MAX}

_log = logging.getLogger("olaf.torch")


class FallBack:
    """The fall-back of one group. The lane's thread calls `run`; nobody else does."""

    def __init__(
        self,
        connection: SumConnection,
        lane: Lane,
        store: Store,
        spare: Gloo,
        *,
        switch: str,
    ) -> None:
        self._connection = connection
        self._lane = lane
        self._store = store
        self._spare = spare
        self._switch = switch
        self._finished = 0
        self._last: torch.Tensor | None = None
        """The result of the last finished operation."""
        self._over = False
        self._broken: Exception | None = None
        self._left = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="olaf-fall-back", daemon=True)
        self._watcher.start()

    def run(self, call: Call) -> None:
        """Do an operation through the switch, or by gloo after a failure."""
        if self._broken is not None:
            raise self._broken
        if self._over:
            self._by_gloo(call)
            return
        kept = call.lanes.clone()
        try:
            self._through_switch(call)
        except Exception as error:
            if of_the_program(error):
                raise
            if not self._recover(error, call.lanes):
                call.lanes.copy_(kept)
                self._by_gloo(call)
        else:
            self._last = kept.copy_(call.lanes)
            self._finished += 1

    def leave(self, timeout_s: float) -> None:
        """Wait until no rank needs this one's last result, then stop looking for the flag."""
        try:
            self._lane.submit(lambda: self._part(min(timeout_s, MEETING_S))).result(timeout_s)
        except Exception as error:
            _log.warning("olaf: leaving the group: %s", error)
        self._left.set()
        # It refers to tensors, and must not free them while the interpreter ends.
        self._watcher.join(callbacks.EXIT_WAIT_S)

    def _recover(self, error: Exception, lanes: torch.Tensor) -> bool:
        """Raise the flag and meet. If the ranks cannot agree, the first error stays the reason."""
        try:
            # The first flag counts: later ones come from connections that a watcher closed.
            self._store.compare_set(FLAG, "", f"rank {self._spare.rank()}: {error}")
            return self._meet(lanes)
        except Exception as second:
            said = str(second).splitlines()[0]
            raise dist.DistBackendError(
                f"olaf: the sum through the switch {self._switch} failed ({blame(error)}), and "
                f"the ranks could not go on over gloo: {said}"
            ) from error

    def _through_switch(self, call: Call) -> None:
        call.run(self._connection)
        if call.kind == BROADCAST:
            # The root may be done before the others have begun. This sum ends when all have the
            # lanes, so that the numbers of finished operations differ by one at most.
            seen = torch.zeros(1, dtype=torch.int32)
            Call(ALL_REDUCE, seen, call.timeout_s).run(self._connection)

    def _by_gloo(self, call: Call) -> None:
        limit = timedelta(seconds=call.timeout_s)
        if call.kind == BROADCAST:
            self._give(call.lanes, call.root, limit)
            return
        options = dist.AllreduceOptions()
        options.timeout = limit
        if call.operation == MEAN:
            # Older releases of gloo have no mean. Halves are rounded once, as by the switch.
            options.reduceOp = OPERATIONS[SUM]
            total = call.lanes.to(torch.float32)
            self._spare.allreduce([total], options).wait()
            call.lanes.copy_(total.div_(self._spare.size()))
            return
        options.reduceOp = OPERATIONS[call.operation]
        self._spare.allreduce([call.lanes], options).wait()

    def _give(self, lanes: torch.Tensor, root: int, limit: timedelta) -> None:
        options = dist.BroadcastOptions()
        options.rootRank, options.rootTensor, options.timeout = root, 0, limit
        self._spare.broadcast([lanes], options).wait()

    def _meet(self, lanes: torch.Tensor | None) -> bool:
        """Agree with all ranks where to go on. True if `lanes` got the result of another rank."""
        if self._over:
            return False
        self._over = True
        self._connection.close()
        try:
            return self._agree(lanes)
        except Exception as error:
            self._broken = error
            raise

    def _agree(self, lanes: torch.Tensor | None) -> bool:
        rank, size = self._spare.rank(), self._spare.size()
        why = self._store.get(FLAG).decode()
        self._store.set(_key(rank), str(self._finished))
        self._await_all(why)
        finished = [int(self._store.get(_key(other))) for other in range(size)]
        newest = max(finished)
        _log.warning(
            "olaf: THE SUM THROUGH THE SWITCH %s FAILED (%s). All %d ranks go on over gloo, from "
            "operation %d on. This is slower, and it lasts until the group is made anew.",
            *(self._switch, why, size, newest),
        )
        if min(finished) == newest:
            return False
        owner = finished.index(newest)
        behind = self._finished < newest
        kept = lanes if behind else self._last
        if kept is None:
            raise dist.DistBackendError(
                f"rank {owner} has finished operation {newest - 1}, which rank {rank} has not begun"
            )
        # A rank that has the result too must not change what it may have to give again.
        self._give(
            kept if behind or owner == rank else kept.clone(), owner, timedelta(seconds=MEETING_S)
        )
        self._finished = newest
        return behind

    def _await_all(self, why: str) -> None:
        """Wait until every rank has written its number. Raises an error that names the missing."""
        keys = [_key(rank) for rank in range(self._spare.size())]
        deadline = time.monotonic() + MEETING_S
        while missing := [rank for rank, key in enumerate(keys) if not self._store.check([key])]:
            if time.monotonic() > deadline:
                raise dist.DistBackendError(
                    f"rank {', '.join(map(str, missing))} did not come within {MEETING_S:g} s "
                    f"after the failure ({why})"
                )
            time.sleep(LOOK_EVERY_S / 10)

    def _watch(self) -> None:
        """Look for the flag, on a connection to the store of its own.

        Otherwise this thread would wait while the program waits for a key.
        """
        store: Any = self._store.clone() if hasattr(self._store, "clone") else self._store
        while not self._left.wait(LOOK_EVERY_S):
            try:
                raised = store.check([FLAG])
            except RuntimeError:
                return  # the store's host is gone, so the program ends
            if raised:
                self._connection.close()  # ends the operation under way
                self._lane.submit(lambda: self._meet(None))
                return

    def _part(self, timeout_s: float) -> None:
        if self._over:
            return
        rank, size = self._spare.rank(), self._spare.size()
        keys = [f"left/{other}" for other in range(size)]
        deadline = time.monotonic() + timeout_s
        try:
            self._store.set(keys[rank], "")
            while not self._store.check(keys):
                if self._store.check([FLAG]):
                    self._meet(None)
                    return
                if time.monotonic() > deadline:
                    return
                time.sleep(LOOK_EVERY_S / 10)
        except dist.DistNetworkError:
            return  # the store's host has left: then all had their results


def _key(rank: int) -> str:
    return f"finished/{rank}"
