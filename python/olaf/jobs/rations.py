"""Divides the updates that a run may still push among its workers, so that it ends at its limit.

Workers push on their own, and the parent hears of it later. Each worker therefore has a ration: the
number of updates that it may push in all. While many are left, a ration reaches far ahead and is
renewed long before it is used up, so that no worker waits. Near the end rations shrink to one
update. The unused part of a dead worker's ration returns. No clock and no process: the parent calls
`take` with each occurrence and passes on the numbers of `due`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from olaf.jobs.supervisor import Ended, Occurrence, Said, Started
from olaf.processes.lines import PROGRESS

WORKER = "worker"
"""First word of a worker's name."""

AHEAD = 2
"""A ration holds the equal share of a worker in what is left, divided by this: the rest is for
workers that are faster."""


@dataclass
class _Share:
    """One incarnation of a worker."""

    incarnation: int
    is_ready: bool = False
    pushed: int = 0
    granted: int = 0

    @property
    def unused(self) -> int:
        return self.granted - self.pushed


class Rations:
    """The rations of one session of a run."""

    def __init__(self, limit: int | None, workers: int) -> None:
        """``limit``: updates that this session may push; None grants nothing and counts nothing."""
        self._limit = limit
        self._workers = max(workers, 1)
        self._pushed = 0
        """Updates that ended incarnations have reported."""
        self._shares: dict[str, _Share] = {}
        self._is_settled = True
        """Nothing has happened since `due`, which changes no answer of its own."""

    @property
    def are_limited(self) -> bool:
        """True if workers need a ration to push."""
        return self._limit is not None

    @property
    def left(self) -> int:
        """Updates that are neither pushed nor granted."""
        granted = sum(share.granted for share in self._shares.values())
        return (self._limit or 0) - self._pushed - granted

    def take(self, occurrence: Occurrence) -> None:
        """Take in what a worker did."""
        name = occurrence.name
        if self._limit is None or name.partition(" ")[0] != WORKER:
            return
        self._is_settled = False
        match occurrence:
            case Started(_, incarnation):
                self._return(name)
                self._shares[name] = _Share(incarnation)
            case Ended():
                self._return(name)
            case Said(_, incarnation, message):
                share = self._shares.get(name)
                if share is not None and share.incarnation == incarnation:
                    _hear(share, message)

    def due(self) -> dict[str, int]:
        """The rations that rise now: updates that the worker may push in all, since its start."""
        if self._limit is None or self._is_settled:
            return {}
        self._is_settled = True
        ready = [(name, share) for name, share in self._shares.items() if share.is_ready]
        # What no worker has pushed yet, shared by those that may push it.
        remaining = self.left + sum(share.unused for _, share in ready)
        whole = max(remaining // (AHEAD * self._workers), 1)
        told: dict[str, int] = {}
        for name, share in sorted(ready, key=lambda one: one[1].unused):
            more = min(whole - share.unused, self.left)
            if more > 0 and share.unused <= whole // 2:
                share.granted += more
                told[name] = share.granted
        return told

    def holders(self) -> list[str]:
        """The workers whose unused rations are all that is left, while another worker waits."""
        ready = {name: share for name, share in self._shares.items() if share.is_ready}
        if self._limit is None or self.left > 0 or all(s.unused for s in ready.values()):
            return []
        return [name for name, share in ready.items() if share.unused]

    def _return(self, name: str) -> None:
        share = self._shares.pop(name, None)
        if share is not None:
            self._pushed += share.pushed


def _hear(share: _Share, message: Mapping[str, object]) -> None:
    event = message["event"]
    if event == "ready":
        share.is_ready = True
    elif event in PROGRESS:
        share.pushed = max(share.pushed, int(str(message["updates"])))
        share.granted = max(share.granted, share.pushed)
    elif event in ("finished", "stopped"):
        share.is_ready, share.granted = False, share.pushed
