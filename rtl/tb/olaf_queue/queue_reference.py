"""The OLAF queue with frames, slow and obvious: a list of entries, and the bytes they depart as.

It is written from docs/queue.md and the table of olaf-wire/src/offsets.rs. It decides nothing about
time: the bench tells it when an entry is locked, when it has left, and when an update is decided
about.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field, replace

import numpy as np

HEADER = struct.Struct(">4sBBHIIIIIIIIQQIIIIddB3xI")
assert HEADER.size == 96
MOST = 2**32 - 1


@dataclass(frozen=True)
class Update:
    """An update as olaf-wire has it."""

    job: int = 1
    cluster: int = 1
    worker: int = 1
    session: int = 9
    sequence: int = 0
    hop_sequence: int = 0
    segment: int = 0
    segments: int = 1
    generated: tuple[int, int] = (5, 7)
    versions: tuple[int, int] = (1, 2)
    contributors: int = 1
    weight: float = 1.0
    reward: float = 0.0
    hops: int = 0
    flow_sequence: int = 0
    lanes: np.ndarray = field(default_factory=lambda: np.ones(1, np.float32))

    @property
    def flow(self) -> tuple[int, int, int]:
        return self.job, self.cluster, self.segment

    def emit(self, lanes: int | None = None, flags: int = 0) -> bytes:
        """The datagram. `lanes`, `flags`: lies of its header."""
        count = len(self.lanes) if lanes is None else lanes
        header = HEADER.pack(
            *(b"OLAF", 3, 1, flags, self.job, self.cluster, self.worker, self.session),
            *(self.sequence, self.hop_sequence, self.segment, self.segments),
            *(*self.generated, *self.versions, self.contributors, count),
            *(self.weight, self.reward, self.hops, self.flow_sequence),
        )
        return header + self.lanes.astype("<f4").tobytes()

    @property
    def refused(self) -> bool:
        """Fields that contradict each other."""
        return (
            self.segment >= self.segments
            or self.generated[0] > self.generated[1]
            or self.versions[0] > self.versions[1]
            or self.contributors == 0
            or not 0 < self.weight < math.inf
            or len(self.lanes) == 0
        )


@dataclass
class Entry:
    update: Update
    replaceable: bool
    products: float | None = None
    """Sum of rewards times weights; none if it was never merged."""


class Reference:
    def __init__(self, slots: int, gate: float | None, session: int) -> None:
        self.slots, self.gate, self.session = slots, gate, session
        self.entries: list[Entry] = []
        self.locked = False
        self.departures = 0

    def end_departure(self) -> None:
        assert self.locked
        self.entries.pop(0)
        self.locked = False

    def begin_departure(self) -> bytes:
        """Lock the head; the datagram that it departs as."""
        assert self.entries
        assert not self.locked
        self.locked = True
        number = self.departures % 2**32
        self.departures += 1
        update = self.entries[0].update
        hops = min(update.hops + 1, 255)
        numbers = {"hop_sequence": number, "flow_sequence": number}
        return replace(update, session=self.session, hops=hops, **numbers).emit()

    def arrive(self, update: Update) -> tuple[str, int]:
        """The counter of its fate, and the contributors that it displaces."""
        product = update.reward * update.weight
        if not math.isfinite(product):
            return "not_finite", 0
        all_finite = bool(np.isfinite(update.lanes).all())
        waiting = [e for e in self.entries[self.locked :] if e.update.flow == update.flow]
        if not waiting:
            if not all_finite:
                return "not_finite", 0
            if len(self.entries) == self.slots:
                return "dropped", 0
            self.entries.append(Entry(update, update.contributors == 1))
            return "appended", 0
        [entry] = waiting
        old = entry.update
        single = update.contributors == 1
        same_worker = entry.replaceable and single and old.worker == update.worker
        if same_worker or (self.gate is not None and update.reward - old.reward > self.gate):
            if not all_finite:
                return "not_finite", 0
            self.entries[self.entries.index(entry)] = Entry(update, single)
            return "replaced", old.contributors
        if self.gate is not None and old.reward - update.reward > self.gate:
            return ("filtered" if all_finite else "not_finite"), 0
        return self.merge(entry, update, product), 0

    def merge(self, entry: Entry, update: Update, product: float) -> str:
        old = entry.update
        if len(old.lanes) != len(update.lanes):
            return "wrong_size"
        before = old.reward * old.weight if entry.products is None else entry.products
        weight, products = old.weight + update.weight, before + product
        contributors = old.contributors + update.contributors
        mean = products / weight
        if contributors > MOST or not math.isfinite(weight) or not math.isfinite(mean):
            return "overflow"
        with np.errstate(over="ignore", invalid="ignore"):
            lanes = (old.lanes + update.lanes).astype(np.float32)
        if not np.isfinite(lanes).all():
            return "not_finite"
        entry.replaceable, entry.products = False, products
        entry.update = replace(
            old,
            generated=widest(old.generated, update.generated),
            versions=widest(old.versions, update.versions),
            contributors=contributors,
            weight=weight,
            reward=mean,
            hops=max(old.hops, update.hops),
            lanes=lanes,
        )
        return "merged"


def widest(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return min(a[0], b[0]), max(a[1], b[1])
