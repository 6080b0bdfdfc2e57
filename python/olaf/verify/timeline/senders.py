"""Arrivals at each tick: phases, lateness, and transmission control."""

from __future__ import annotations

import z3

from olaf.verify.gates import Bit, Gates, negation
from olaf.verify.instance import Control, Instance, Sender, Ties
from olaf.verify.timeline.beginning import Beginning


class Phases:
    """When updates become ready."""

    def __init__(self, gates: Gates, instance: Instance, beginning: Beginning) -> None:
        self._gates = gates
        self._instance = instance
        self._beginning = beginning
        self.phase: list[list[Bit]] = []
        """For each sender: its first tick. An interval as the first tick differs from tick 0: it
        means a phase slightly below the interval."""
        self.ready: list[list[Bit]] = []
        """For each sender and tick: whether an update becomes ready."""
        self.due: list[list[Bit]] = []
        """For each sender and tick: whether one is ready now, if it is not late."""
        for index, sender in enumerate(instance.senders):
            self._add(index, sender)

    def _add(self, index: int, sender: Sender) -> None:
        gates, ticks = self._gates, range(self._instance.horizon + 1)
        continuous = self._instance.ties is Ties.CONTINUOUS
        phases = sender.interval + (continuous and self._beginning.is_first)
        phase: list[Bit] = [True]
        if phases > 1:
            phase = [gates.free(f"phase{index}_{k}") for k in range(phases)]
            gates.require(z3.PbEq([(bit, 1) for bit in phase], 1))
        # The phases below t with the same remainder: 0 and the interval both have 0.
        due = [gates.any_of(phase[t % sender.interval : t + 1 : sender.interval]) for t in ticks]
        self.phase.append(phase)
        self.due.append(due)
        self.ready.append(due if sender.jitter == 0 else self._late(index, sender, due))

    def _late(self, index: int, sender: Sender, due: list[Bit]) -> list[Bit]:
        """Each update that is due becomes ready once, at most ``jitter`` ticks later."""
        gates, ready = self._gates, []
        waiting = self._beginning.waiting[index]

        def was_due(tick: int) -> Bit:
            return due[tick] if tick >= 0 else self.phase[index][tick % sender.interval]

        lately = gates.any_of(was_due(-ago) for ago in range(1, sender.jitter + 1))
        gates.require(gates.any_of([negation(waiting), lately]))
        for tick, now in enumerate(due):
            waits = gates.any_of([waiting, now])
            fires = gates.free(f"ready{index}_{tick}")
            gates.require(gates.any_of([negation(fires), waits]))
            last = gates.all_of([was_due(tick - sender.jitter), waits])
            gates.require(gates.any_of([negation(last), fires]))
            ready.append(fires)
            waiting = gates.all_of([waits, negation(fires)])
        return ready

    def in_order(self, a: int, b: int, rank: Bit) -> None:
        """Assert that ``a`` has the lower phase; with equal phases, ``rank`` holds."""
        gates = self._gates
        for k, of_a in enumerate(self.phase[a]):
            for of_b in self.phase[b][:k]:
                gates.require(gates.any_of([negation(of_a), negation(of_b)]))
            equal = [negation(of_a), negation(self.phase[b][k])]
            gates.require(gates.any_of([*equal, rank]))


class Quota:
    """Transmission control of one sender (see `olaf.verify.instance.Control`)."""

    def __init__(
        self,
        gates: Gates,
        instance: Instance,
        control: Control,
        index: int,
        past: list[tuple[Bit, Bit]],
    ) -> None:
        self._gates = gates
        self._control = control
        self._index = index
        self._delay = instance.answer_delay
        self._open = instance.ties is Ties.CONTINUOUS
        self._past = past
        """For the last ready updates, newest first: whether there was one, and whether it was
        sent."""

    def send(self, tick: int, ready: Bit, heard: list[tuple[int, Bit]]) -> Bit:
        """Whether the update that becomes ready at the tick is sent.

        heard: (tick, whether an answer came) of each tick that can still count.
        """
        if ready is False:
            return False
        gates, control = self._gates, self._control
        sent = gates.all_of([ready, gates.free(f"sent{self._index}_{tick}")])
        silent = negation(gates.any_of(b for t, b in heard if t >= tick - control.forced))
        must = gates.all_of([ready, silent])
        gates.require(gates.any_of([negation(must), sent]))
        fresh = gates.any_of(b for t, b in heard if self._is_fresh(tick, t))
        past = [was_sent for _, was_sent in self._past]
        few = gates.at_most(past, control.at_most - 1)
        gates.require(gates.any_of([negation(sent), negation(fresh), few]))
        whole = gates.all_of([ready, *(was for was, _ in self._past)])
        enough = gates.at_least([sent, *past], control.at_least)
        gates.require(gates.any_of([negation(whole), enough]))
        self._shift(ready, sent)
        return sent

    def _is_fresh(self, now: int, heard: int) -> bool:
        """Whether an answer is heard, and fresh, wherever in their ticks the two are."""
        if self._open:
            # A departure of this very tick is known to come first, an answer to it is not.
            return now - heard < self._control.threshold and (heard < now or self._delay == 0)
        return now - heard <= self._control.threshold

    def _shift(self, ready: Bit, sent: Bit) -> None:
        gates, kept = self._gates, negation(ready)

        def choose(new: Bit, old: Bit) -> Bit:
            return gates.any_of([gates.all_of([ready, new]), gates.all_of([kept, old])])

        newer = [(True, sent), *self._past]
        self._past = [
            (choose(n[0], o[0]), choose(n[1], o[1]))
            for n, o in zip(newer, self._past, strict=False)
        ]
