"""The queue: whether each update is sent, joins, waits or is dropped, and when it departs.

An update's place follows from the updates before it. Those whose content is not on the wire yet are
open; those that opened an entry which has not departed hold a slot.
"""

from __future__ import annotations

from dataclasses import dataclass

from olaf.verify.events.facts import Facts
from olaf.verify.events.moments import Moment, Moments, Update
from olaf.verify.gates import Bit, negation
from olaf.verify.instance import Control, Hears, Instance


@dataclass(frozen=True)
class Fate:
    """The fate of an update."""

    sent: Bit
    opens: Bit
    """It takes a slot."""
    taken: Bit
    """It takes a slot or joins its cluster's open update."""
    dropped: Bit
    departs: Moment
    """Departure of its content, if it is accepted."""
    delivered: Bit
    """Whether it is accepted, and departs by the horizon."""


class Queue:
    """The updates of a run and their fates."""

    def __init__(self, facts: Facts, instance: Instance, *, may_end_early: bool) -> None:
        """``may_end_early``: departures at the horizon may come slightly after it."""
        self.facts = facts
        self.instance = instance
        self.moments = Moments(facts, instance)
        self._may_end_early = may_end_early
        if may_end_early:
            self.moments.end = facts.number()
            facts.require(self.moments.end >= 0)
        self.updates = self.moments.updates
        self._departs = [self._departure(update) for update in self.updates]
        self._sent = [u.counts for u in self.updates]
        if instance.control is not None:
            self._sent = [facts.bit() for _ in self.updates]
        self._opens: list[Bit] = [facts.bit() for _ in self.updates]
        self._taken: list[Bit] = [facts.bit() for _ in self.updates]
        self._gone: dict[tuple[int, int], Bit] = {}
        self.fates = [self._fate(update) for update in self.updates]
        if instance.control is not None:
            for s in range(len(instance.senders)):
                self._control(instance.control, s)

    def of(self, cluster: int) -> list[Update]:
        """A cluster's updates."""
        return [u for u in self.updates if u.cluster == cluster]

    def _departure(self, update: Update) -> Moment:
        if self.instance.slots == 1:
            # No update ever waits.
            return Moment(update.ready.tick + self.instance.service, update.ready.rank)
        return Moment(self.facts.number(), self.facts.number())

    def _fate(self, update: Update) -> Fate:
        facts, instance, i = self.facts, self.instance, update.index
        sent, opens, taken = self._sent[i], self._opens[i], self._taken[i]
        holding = {m.index: self._holds(m, update) for m in self.updates if m is not update}
        holding = {m: bit for m, bit in holding.items() if bit is not False}
        open_ones = {m.index: self._is_open(m, update) for m in self.of(update.cluster)}
        open_ones = {m: bit for m, bit in open_ones.items() if bit is not False}
        is_open = facts.any_of(open_ones.values())
        full = facts.at_least(holding.values(), instance.slots)
        new = facts.all_of([sent, negation(is_open)])
        facts.equal(opens, facts.all_of([new, negation(full)]))
        facts.equal(taken, facts.any_of([opens, facts.all_of([sent, is_open])]))
        dropped = facts.all_of([new, full])
        for m, bit in open_ones.items():
            joins = facts.all_of([sent, bit])
            self._same(joins, i, m)
        self._wait(update, holding)
        # Implied by the rest, but it speeds up refutation.
        waits = self._departs[i].tick - update.ready.tick
        facts.require(negation(taken), waits >= instance.service)
        facts.require(negation(taken), waits <= instance.slots * instance.service)
        if self._may_end_early:
            in_time = self.moments.by_the_end(self._departs[i])
        else:
            in_time = self.moments.by(self._departs[i], instance.horizon)
        delivered = facts.all_of([taken, in_time])
        return Fate(sent, opens, taken, dropped, self._departs[i], delivered)

    def _wait(self, update: Update, holding: dict[int, Bit]) -> None:
        """It departs one service after the last slot holder before it, or after its own arrival."""
        if self.instance.slots == 1:
            return
        require, service, i = self.facts.require, self.instance.service, update.index
        opens, departs = self._opens[i], self._departs[i]
        at_once: list[Bit] = [negation(opens), *holding.values()]
        require(*at_once, departs.tick == update.ready.tick + service)
        require(*at_once, departs.rank == update.ready.rank)
        last: list[Bit] = []
        for m, holds in holding.items():
            ends = self._departs[m]
            require(negation(opens), negation(holds), departs.tick >= ends.tick + service)
            require(negation(opens), negation(holds), departs.rank == ends.rank)
            last.append(self.facts.all_of([holds, departs.tick <= ends.tick + service]))
        for holds in holding.values():
            require(negation(opens), negation(holds), *last)

    def _same(self, where: Bit, i: int, m: int) -> None:
        mine, other = self._departs[i], self._departs[m]
        self.facts.require(negation(where), mine.tick == other.tick)
        self.facts.require(negation(where), mine.rank == other.rank)

    def _holds(self, m: Update, update: Update) -> Bit:
        """Whether the entry that m opened holds a slot when the update is ready."""
        first = self.moments.before(m, update)
        if first is False:
            return False
        return self.facts.all_of([self._opens[m.index], first, negation(self._is_gone(m, update))])

    def _is_gone(self, m: Update, update: Update) -> Bit:
        """Whether m's entry has departed when the update is ready."""
        key = (m.index, update.index)
        if key not in self._gone:
            service = self.instance.service
            least, most = self.moments.gap(m, update)
            gone: Bit
            if least > self.instance.slots * service:
                gone = True
            elif most < service:
                gone = False
            else:
                gone = self.moments.past(self._departs[m.index], update)
            self._gone[key] = gone
        return self._gone[key]

    def _is_open(self, m: Update, update: Update) -> Bit:
        """Whether m's entry waits for service when the update is ready."""
        service, slots = self.instance.service, self.instance.slots
        if m is update or slots == 1:
            return False
        first = self.moments.before(m, update)
        if first is False or self.moments.gap(m, update)[0] > (slots - 1) * service:
            return False
        ends = self._departs[m.index]
        begun = self.moments.past(Moment(ends.tick - service, ends.rank), update)
        return self.facts.all_of([self._taken[m.index], first, negation(begun)])

    def _control(self, control: Control, sender: int) -> None:
        """The quota and the deadline. Ages of answers are counted in whole ticks."""
        facts = self.facts
        mine = [u for u in self.updates if u.sender == sender]
        for place, update in enumerate(mine):
            sent, ready = self._sent[update.index], update.counts
            facts.require(negation(sent), ready)
            facts.require(negation(ready), sent, *self._heard(update, control.forced))
            window = mine[max(place - control.window + 1, 0) : place + 1]
            of_window = [self._sent[u.index] for u in window]
            few = negation(facts.at_least(of_window, control.at_most + 1))
            if few is not True:
                # At the limit its real age may be slightly above.
                for fresh in self._heard(update, control.threshold - 1, surely=True):
                    facts.require(negation(sent), negation(fresh), few)
            if len(window) == control.window:
                facts.require(negation(ready), facts.at_least(of_window, control.at_least))

    def _heard(self, update: Update, most: int, *, surely: bool = False) -> list[Bit]:
        """For each answer, whether the update's worker heard it at most this many ticks ago.

        surely: true for every position of the answer in its tick.
        """
        instance, moments = self.instance, self.moments
        delay, service = instance.answer_delay, instance.service
        shared = instance.hears is Hears.SHARED
        found: list[Bit] = []
        for m in self.of(update.cluster):
            least, longest = moments.gap(m, update)
            too_soon = longest < service + delay
            too_late = least - instance.slots * service - delay > most
            if m is update or too_soon or too_late or (shared and m.sender != update.sender):
                continue
            ends, ready = self._departs[m.index], update.ready
            there = (
                moments.at_most(ends, ready, -delay - surely) if delay else self._is_gone(m, update)
            )
            fresh = moments.at_most(ready, ends, most + delay)
            found.append(self.facts.all_of([self._taken[m.index], there, fresh]))
        return found
