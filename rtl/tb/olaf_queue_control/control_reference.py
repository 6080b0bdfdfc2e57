"""The control of the OLAF queue, slow and obvious: a list of entries.

It is written from docs/queue.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Entry:
    flow: int
    worker: int
    contributors: int
    replaceable: bool
    slot: int


@dataclass(frozen=True)
class Arrival:
    flow: int
    worker: int
    contributors: int
    not_finite: bool = False
    better: bool = False
    worse: bool = False
    no_sum: bool = False


@dataclass
class Reference:
    slots: int
    count_bits: int
    entries: list[Entry] = field(default_factory=list)
    locked: bool = False
    taken: int = 0
    """Entries that were ever appended: their slots go round."""

    def end_departure(self) -> None:
        if self.locked:
            self.entries.pop(0)
            self.locked = False

    def begin_departure(self) -> None:
        if self.entries:
            self.locked = True

    def arrive(self, arrival: Arrival) -> tuple[str, int | None, int]:
        """What becomes of it, the slot that it goes to, and the contributors that it displaces."""
        if arrival.not_finite:
            return "rejected", None, 0
        waiting = [e for e in self.entries[self.locked :] if e.flow == arrival.flow]
        assert len(waiting) <= 1
        if not waiting:
            if len(self.entries) == self.slots:
                return "dropped", None, 0
            slot = self.taken % self.slots
            self.taken += 1
            self.entries.append(fresh(arrival, slot))
            return "appended", slot, 0
        [entry] = waiting
        single = arrival.contributors == 1
        same_worker = entry.replaceable and single and entry.worker == arrival.worker
        if same_worker or arrival.better:
            displaced = entry.contributors
            self.entries[self.entries.index(entry)] = fresh(arrival, entry.slot)
            return "replaced", entry.slot, displaced
        if arrival.worse:
            return "filtered", entry.slot, 0
        if arrival.no_sum or entry.contributors + arrival.contributors >= 1 << self.count_bits:
            return "rejected", None, 0
        entry.contributors += arrival.contributors
        entry.replaceable = False
        return "merged", entry.slot, 0


def fresh(arrival: Arrival, slot: int) -> Entry:
    single = arrival.contributors == 1
    return Entry(arrival.flow, arrival.worker, arrival.contributors, single, slot)
