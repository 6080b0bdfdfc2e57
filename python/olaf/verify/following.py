"""A run of senders that follow transmission control, through the engine's queue.

Provers choose what senders hold back. This is one choice that keeps the rules, whatever whole ticks
leave open: an update is held back only where every reading of `Control` allows it, and sent only
where every reading allows that.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from olaf import _olaf
from olaf.verify.instance import Control, Hears, Instance
from olaf.verify.schedule import Schedule, Send

Moment = tuple[int, int]
"""Tick, and nanoseconds after it."""


def follow(
    instance: Instance, control: Control, ready: Iterable[Send], draw: random.Random, holds: float
) -> Schedule:
    """The schedule of senders whose updates are ready at these times.

    holds: probability with which a sender holds back an update that it may hold back.
    """
    senders = _Senders(instance, control)
    sends: list[Send] = []
    held: list[tuple[int, int]] = []
    for update in sorted(ready):
        senders.depart_until((update.tick, update.offset_ns))
        must_hold, may_hold = senders.rules(update)
        is_sent = not (must_hold or (may_hold and draw.random() < holds))
        senders.past[update.sender].append(is_sent)
        if is_sent:
            senders.send(update)
            sends.append(update)
        else:
            held.append((update.tick, update.sender))
    return Schedule(tuple(sends), tuple(held))


@dataclass
class _Senders:
    """The queue, and what its senders sent and heard."""

    instance: Instance
    control: Control
    past: list[list[bool]] = field(init=False)
    """For each sender: whether it sent its ready updates."""

    def __post_init__(self) -> None:
        count = len(self.instance.senders)
        self.past = [[] for _ in range(count)]
        self._queue = _olaf.Queue("olaf", slots=self.instance.slots)
        self._heard: list[int | None] = [None] * count
        """For each sender: the tick of the last answer."""
        self._coming: list[tuple[int, set[int]]] = []
        """Answers on their way: the tick, and who hears it."""
        self._parts: dict[int, set[int]] = {}
        self._wire: tuple[int, Moment] | None = None
        """The departing entry, and when it has left."""

    def rules(self, update: Send) -> tuple[bool, bool]:
        """Whether the update must be held back, and whether it may be."""
        control, worker = self.control, update.sender
        while self._coming and self._coming[0][0] <= update.tick:
            tick, workers = self._coming.pop(0)
            for each in workers:
                self._heard[each] = tick
        heard = self._heard[worker]
        if heard is None:
            return False, False
        past = self.past[worker][-(control.window - 1) :] if control.window > 1 else []
        age = update.tick - heard
        must_hold = age <= control.threshold and sum(past) >= control.at_most
        # An answer of this very tick may come just after the update.
        is_recent = 0 < age < control.forced
        is_enough = len(past) < control.window - 1 or sum(past) >= control.at_least
        return must_hold, is_recent and is_enough

    def send(self, update: Send) -> None:
        """Let an update arrive."""
        cluster = self.instance.senders[update.sender].cluster
        _, entry = self._queue.arrive(
            np.ones(1, np.float32),
            worker=update.sender,
            sequence=len(self.past[update.sender]),
            cluster=cluster,
        )
        if entry is not None:
            self._parts.setdefault(entry, set()).add(update.sender)
        if self._wire is None:
            self._begin((update.tick, update.offset_ns))

    def depart_until(self, now: Moment) -> None:
        """Everything that has left by then; at the same moment a departure comes first."""
        while self._wire is not None and self._wire[1] <= now:
            entry, ends = self._wire
            self._queue.end_departure()
            workers = self._parts.pop(entry)
            if self.instance.hears is Hears.CLUSTER:
                cluster = self.instance.senders[min(workers)].cluster
                workers = set(self.instance.senders_of(cluster))
            self._coming.append((ends[0] + self.instance.answer_delay, workers))
            self._wire = None
            self._begin(ends)

    def _begin(self, now: Moment) -> None:
        departing = self._queue.begin_departure()
        if departing is not None:
            self._wire = departing["entry"], (now[0] + self.instance.service, now[1])
