"""When updates are ready, and which of two events comes first.

An event has a moment: a number of ticks, and a rank within its tick. Once the order of each two
events is fixed, only differences of whole numbers bound the moments. So if fractions of ticks fit,
whole ticks fit too (round all moments at the same fraction). The solver may use fractions, and its
proofs hold for whole ticks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import z3

from olaf.verify.events.facts import Facts, Term
from olaf.verify.gates import Bit
from olaf.verify.instance import Instance


@dataclass(frozen=True)
class Moment:
    """The time of an event."""

    tick: Term
    rank: Term


@dataclass(frozen=True, eq=False)
class Update:
    """Update ``number`` of a sender."""

    index: int
    sender: int
    number: int
    cluster: int
    ready: Moment
    earliest: int
    latest: int
    """First and last tick at which it may be ready."""
    counts: Bit
    """Whether it is ready by the horizon."""


@dataclass
class Moments:
    """All updates that may be ready by the horizon, and the order of events."""

    facts: Facts
    instance: Instance
    updates: list[Update] = field(default_factory=list)
    end: Term = 0
    """The rank at which the observation ends; it begins at 0."""
    phases: list[Moment] = field(default_factory=list)
    _before: dict[tuple[int, int, int], Bit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        facts, senders = self.facts, self.instance.senders
        for index, sender in enumerate(senders):
            phase = Moment(facts.number(), facts.number())
            facts.require(phase.tick >= 0)
            # Slightly below the interval means before the begin of the observation in its tick.
            facts.require(phase.tick <= sender.interval)
            facts.require(phase.tick <= sender.interval - 1, phase.rank < 0)
            facts.require(phase.tick >= 1, phase.rank >= 0)
            self.phases.append(phase)
            for number in range(self.instance.horizon // sender.interval + 1):
                self.updates.append(self._update(index, number))
        steady = [self.phases[s].rank for s, sender in enumerate(senders) if not sender.jitter]
        for a, b in combinations(steady, 2):
            facts.require(a < b, b < a)
        for update in self.updates:
            # A late worker's moment equals that of a worker without lateness only with probability
            # 0.
            if senders[update.sender].jitter:
                for rank in steady:
                    facts.require(rank < update.ready.rank, update.ready.rank < rank)

    def _update(self, index: int, number: int) -> Update:
        facts, sender, horizon = self.facts, self.instance.senders[index], self.instance.horizon
        phase, due = self.phases[index], number * sender.interval
        ready = Moment(phase.tick + due, phase.rank)
        if sender.jitter:
            late, rank = facts.number(), facts.number()
            facts.require(late >= 0)
            facts.require(late <= sender.jitter)
            facts.require(late >= 1, rank >= phase.rank)
            facts.require(late <= sender.jitter - 1, rank <= phase.rank)
            ready = Moment(phase.tick + due + late, rank)
        latest = due + sender.interval + sender.jitter
        counts: Bit = True
        if latest > horizon:
            counts = self.by(ready, horizon)
        cluster = sender.cluster
        place = len(self.updates)
        return Update(place, index, number, cluster, ready, due, latest, counts)

    def by(self, moment: Moment, tick: int) -> Bit:
        """Whether it is at this tick or earlier."""
        known = self.facts.bit()
        self.facts.require(z3.Not(known), moment.tick <= tick)
        self.facts.require(known, moment.tick >= tick + 1)
        return known

    def by_the_end(self, moment: Moment) -> Bit:
        """Whether it is observed, up to the end of the observation in its last tick."""
        require, known, last = self.facts.require, self.facts.bit(), self.instance.horizon
        require(z3.Not(known), moment.tick <= last)
        require(z3.Not(known), moment.tick <= last - 1, moment.rank <= self.end)
        require(known, moment.tick >= last)
        require(known, moment.tick >= last + 1, moment.rank > self.end)
        return known

    def at_most(self, later: Moment, earlier: Moment, ticks: int) -> Bit:
        """Whether at most this many ticks lie between them, wherever in their ticks the two are."""
        known = self.facts.bit()
        self.facts.require(z3.Not(known), later.tick - earlier.tick <= ticks)
        self.facts.require(known, later.tick - earlier.tick >= ticks + 1)
        return known

    def gap(self, a: Update, b: Update) -> tuple[int, int]:
        """The smallest and the largest number of ticks from a to b."""
        if a.sender == b.sender:
            sender = self.instance.senders[a.sender]
            due = (b.number - a.number) * sender.interval
            return due - sender.jitter, due + sender.jitter
        return b.earliest - a.latest, b.latest - a.earliest

    def before(self, a: Update, b: Update) -> Bit:
        """Whether a is ready first."""
        least, most = self.gap(a, b)
        if least > 0:
            return True
        if most < 0:
            return False
        senders = self.instance.senders
        key = (a.index, b.index, 0)
        if not senders[a.sender].jitter and not senders[b.sender].jitter:
            # The same for all pairs with the same distance between their due times.
            key = (-a.sender - 1, -b.sender - 1, a.earliest - b.earliest)
        if key not in self._before:
            known = self.facts.bit()
            self._first(known, a, b)
            self._first(z3.Not(known), b, a)
            self._before[key] = known
            self._before[key[1], key[0], -key[2]] = z3.Not(known)
        return self._before[key]

    def _first(self, holds: z3.BoolRef, a: Update, b: Update) -> None:
        require, x, y = self.facts.require, a.ready, b.ready
        require(z3.Not(holds), x.tick - y.tick <= 0)
        require(z3.Not(holds), x.tick - y.tick <= -1, x.rank < y.rank)

    def past(self, end: Moment, update: Update) -> Bit:
        """Whether a service had ended when the update was ready; at the same moment it had."""
        require, known, ready = self.facts.require, self.facts.bit(), update.ready
        require(z3.Not(known), end.tick - ready.tick <= 0)
        late = self.instance.senders[update.sender].jitter > 0
        first = end.rank < ready.rank if late else end.rank <= ready.rank
        require(z3.Not(known), end.tick - ready.tick <= -1, first)
        require(known, ready.tick - end.tick <= 0)
        require(known, ready.tick - end.tick <= -1, ready.rank < end.rank)
        return known
