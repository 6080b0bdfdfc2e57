"""Whether a run's value exceeds a bound, as a formula over moments. Values here are in ticks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise, permutations
from math import floor

import z3

from olaf.verify.events.facts import Facts, Term
from olaf.verify.events.moments import Update
from olaf.verify.events.queue import Queue
from olaf.verify.gates import Bit, negation
from olaf.verify.instance import Kind, Objective
from olaf.verify.prover import UndecidedError

LOOKED_AT = {Kind.FAIR_PEAK: 2, Kind.WORST_PEAK: 1, Kind.STARVATION: 1}
"""Like clusters need only this many representatives: one has the value, or two are apart."""


class Values:
    """The parts of values, built once for all bounds."""

    def __init__(self, queue: Queue, objective: Objective) -> None:
        self._queue = queue
        self._facts: Facts = queue.facts
        self._horizon = queue.instance.horizon
        self._objective = objective
        self._before: dict[int, tuple[Bit, Term]] = {}
        self._means: dict[int, Term] = {}
        self._about = self._break_symmetry()

    def above(self, bound: Fraction) -> Bit:
        """Whether the value, in ticks or as a share, is above the bound."""
        facts, objective = self._facts, self._objective
        more = floor(bound) + 1
        match objective.kind:
            case Kind.WORST_PEAK:
                return facts.any_of(bit for c in self._about for bit in self._older(c, more))
            case Kind.STARVATION:
                return facts.any_of(bit for c in self._about for bit in self._gaps(c, more))
            case Kind.NO_AVERAGE:
                starved = [negation(facts.at_least(self._ends(c), 2)) for c in objective.clusters]
                return facts.at_least(starved, more)
            case Kind.LOSS:
                return self._loses(bound)
            case Kind.FAIR_PEAK:
                return facts.any_of(self._apart(u, v, bound) for u, v in self._pairs())
            case Kind.FAIR_AGE:
                raise UndecidedError("the mean age is not linear in the times of events")

    def _loses(self, share: Fraction) -> Bit:
        """Whether dropped > share * sent."""
        fates = [
            self._queue.fates[u.index] for c in self._objective.clusters for u in self._queue.of(c)
        ]
        if share < 0:
            return self._facts.any_of(fate.sent for fate in fates)
        # For d dropped and n sent of n updates: z3 sums Booleans fastest with positive weights.
        lost, sent = share.denominator, share.numerator
        terms = [(fate.dropped, lost) for fate in fates]
        terms += [(negation(fate.sent), sent) for fate in fates if sent]
        return self._facts.weighs_at_least(terms, sent * len(fates) + 1)

    def _ends(self, cluster: int) -> list[Bit]:
        """For each update, whether it opens an entry that is delivered by the horizon."""
        fates = [self._queue.fates[u.index] for u in self._queue.of(cluster)]
        return [self._facts.all_of([fate.opens, fate.delivered]) for fate in fates]

    def _older(self, cluster: int, age: int) -> Iterable[Bit]:
        """Ways in which the cluster, once delivered, reaches this age."""
        facts, fates = self._facts, self._queue.fates
        for update in self._queue.of(cluster):
            fate = fates[update.index]
            some, newest = self._newest_before(update)
            if some is not False:
                peak = fate.departs.tick - newest >= age
                yield facts.all_of([fate.opens, fate.delivered, some, peak])
            # Its age at the horizon, if no newer update is delivered.
            later = [
                negation(
                    facts.all_of([self._queue.moments.before(update, m), fates[m.index].delivered])
                )
                for m in self._queue.of(cluster)
                if m is not update
            ]
            last = self._horizon - update.ready.tick >= age
            yield facts.all_of([fate.delivered, last, *later])

    def _gaps(self, cluster: int, ticks: int) -> Iterable[Bit]:
        """Ways in which no update of the cluster is delivered for this many ticks."""
        if ticks > self._horizon:
            return
        facts, fates = self._facts, self._queue.fates
        mine = [fates[u.index] for u in self._queue.of(cluster)]
        yield facts.all_of(
            facts.any_of([negation(fate.taken), fate.departs.tick >= ticks]) for fate in mine
        )
        for fate in mine:
            begin = fate.departs.tick
            others = [
                facts.any_of(
                    [
                        negation(other.taken),
                        other.departs.tick <= begin,
                        other.departs.tick >= begin + ticks,
                    ]
                )
                for other in mine
                if other is not fate
            ]
            yield facts.all_of([fate.taken, self._horizon - begin >= ticks, *others])

    def _newest_before(self, update: Update) -> tuple[Bit, Term]:
        """Whether an earlier update of the cluster was accepted, and when the newest was ready.

        If the update opens an entry, that is the content of the previous entry.
        """
        if update.index not in self._before:
            facts = self._facts
            taken: dict[int, Bit] = {}
            newest = facts.number()
            for m in self._queue.of(update.cluster):
                first: Bit = m is not update and self._queue.moments.before(m, update)
                bit = facts.all_of([first, self._queue.fates[m.index].taken])
                if bit is not False:
                    taken[m.index] = bit
            last: list[Bit] = []
            for index, bit in taken.items():
                tick = self._queue.updates[index].ready.tick
                facts.require(negation(bit), newest >= tick)
                last.append(facts.all_of([bit, newest <= tick]))
            some = facts.any_of(taken.values())
            facts.require(negation(some), *last)
            self._before[update.index] = some, newest
        return self._before[update.index]

    def _apart(self, u: int, v: int, bound: Fraction) -> Bit:
        """Whether u's mean peak exceeds v's by more than the bound."""
        of_u, of_v = self._mean(u), self._mean(v)
        has_u, has_v = (self._facts.at_least(self._ends(c), 2) for c in (u, v))
        far = of_u - of_v > z3.Q(bound.numerator, bound.denominator)
        return self._facts.all_of([has_u, has_v, far])

    def _mean(self, cluster: int) -> Term:
        """The cluster's mean peak if it has one: with k peaks, k times the mean is their sum."""
        if cluster not in self._means:
            facts = self._facts
            mean = facts.number()
            peaks: list[Bit] = []
            ages: list[Term] = []
            for update in self._queue.of(cluster):
                fate = self._queue.fates[update.index]
                some, newest = self._newest_before(update)
                peak = facts.all_of([fate.opens, fate.delivered, some])
                if peak is False:
                    continue
                age = facts.number()
                facts.require(negation(peak), age == fate.departs.tick - newest)
                facts.require(peak, age == 0)
                peaks.append(peak)
                ages.append(age)
            total = z3.Sum(ages) if ages else z3.RealVal(0)
            for k in range(1, len(peaks) + 1):
                so_many = [negation(facts.at_least(peaks, k)), facts.at_least(peaks, k + 1)]
                facts.require(*so_many, total == k * mean)
            self._means[cluster] = mean
        return self._means[cluster]

    def _pairs(self) -> list[tuple[int, int]]:
        alike = self._queue.instance.alike
        pairs = permutations(self._about, 2)
        return [(u, v) for u, v in pairs if u < v or alike[u] != alike[v]]

    def _break_symmetry(self) -> list[int]:
        """Order the clusters that may change places; return those that represent all."""
        instance = self._queue.instance
        kind, asked = self._objective.kind, self._objective.clusters
        groups: dict[tuple[int, bool], list[int]] = defaultdict(list)
        for cluster, alike in enumerate(instance.alike):
            groups[alike, cluster in asked].append(cluster)
            for a, b in pairwise(instance.senders_of(cluster)):
                self._in_order(a, b)
        about: list[int] = []
        for (_, in_it), clusters in sorted(groups.items()):
            looked_at = LOOKED_AT.get(kind, 0) if in_it else 0
            if in_it:
                about += clusters[:looked_at] if looked_at else clusters
            for c, d in pairwise(clusters[looked_at:]):
                self._in_order(instance.senders_of(c)[0], instance.senders_of(d)[0])
        return about

    def _in_order(self, a: int, b: int) -> None:
        """Assert that the phase of a is not above that of b."""
        phases = self._queue.moments.phases
        self._facts.require(phases[a].tick - phases[b].tick <= 0)
        self._facts.require(phases[a].tick - phases[b].tick <= -1, phases[a].rank <= phases[b].rank)
