"""Whether a run's value exceeds a bound, as a formula over the timeline.

Values here are in ticks. Ages come from sums of Booleans: the content of an update whose service
begins at t is at least j ticks old if its cluster sent nothing in the j ticks before.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from math import floor

from olaf.verify.gates import Bit, negation
from olaf.verify.instance import Kind, Objective
from olaf.verify.timeline import ages
from olaf.verify.timeline.queue import Unrolled

Weights = list[tuple[Bit, int]]


class Values:
    """The parts of bounds, built once for all bounds."""

    def __init__(self, timeline: Unrolled) -> None:
        self._line = timeline
        self._gates = timeline.gates
        self._instance = timeline.instance
        self._of = [self._instance.senders_of(c) for c in range(len(self._instance.clusters))]
        self._sums: dict[int, tuple[Weights, list[Bit]]] = {}
        self._ages: dict[int, ages.MeanAge] = {}

    def may_end_early(self) -> None:
        """Leave open whether a departure at the horizon comes just after it."""
        self._line.last_counts = self._gates.free("last_counts")

    def above(self, objective: Objective, bound: Fraction, about: Iterable[int]) -> Bit:
        """Whether the value, in ticks or as a share, is above the bound.

        about: the clusters to check. A few of equal clusters represent all.
        """
        clusters = list(about)
        any_of = self._gates.any_of
        match objective.kind:
            case Kind.WORST_PEAK:
                return any_of(self._older(c, floor(bound) + 1) for c in clusters)
            case Kind.STARVATION:
                return any_of(self._gap(c, floor(bound) + 1) for c in clusters)
            case Kind.NO_AVERAGE:
                starved = [negation(self._delivers_twice(c)) for c in objective.clusters]
                return self._gates.at_least(starved, floor(bound) + 1)
            case Kind.LOSS:
                return self._loses(objective.clusters, bound)
            case Kind.FAIR_PEAK:
                pairs = product(clusters, repeat=2)
                return any_of(self._apart(u, v, bound) for u, v in pairs if u != v)
            case Kind.FAIR_AGE:
                pairs = product(clusters, repeat=2)
                return any_of(
                    ages.apart(self._gates, self._mean_age(u), self._mean_age(v), bound)
                    for u, v in pairs
                    if u != v
                )

    def older_after(self, cluster: int, age: int, begun: int) -> Bit:
        """Whether the cluster reaches this age after the update whose service begins at
        ``begun``."""
        return self._older(cluster, age, begun)

    def silent_after(self, cluster: int, ticks: int, begin: int) -> Bit:
        """Whether no update of the cluster is delivered for this many ticks from ``begin`` on."""
        return self._gates.all_of(
            negation(self._line.departs(cluster, t)) for t in range(begin + 1, begin + ticks)
        )

    def _older(self, cluster: int, age: int, only: int | None = None) -> Bit:
        """Whether the cluster, once delivered, reaches this age: no delivery until then."""
        line, gates, instance = self._line, self._gates, self._instance
        ways: list[Bit] = []
        for begun, aged in self._aged_starts(cluster):
            if only not in (None, begun):
                continue
            delivered = begun + instance.service
            for j, content in aged:
                reached = begun - j + age
                if max(reached, delivered) > instance.horizon:
                    continue
                silent = [negation(line.departs(cluster, t)) for t in range(delivered + 1, reached)]
                ways.append(gates.all_of([content, *silent]))
        return gates.any_of(ways)

    def _gap(self, cluster: int, ticks: int) -> Bit:
        """Whether no update of the cluster is delivered for this many ticks."""
        last = self._instance.horizon - ticks
        return self._gates.any_of(
            self.silent_after(cluster, ticks, begin) for begin in range(last + 1)
        )

    def _loses(self, clusters: Iterable[int], share: Fraction) -> Bit:
        """Whether dropped > share * sent."""
        weights: Weights = []
        for s in (s for c in clusters for s in self._of[c]):
            weights += [(bit, share.denominator) for bit in self._line.dropped[s]]
            weights += [(bit, -share.numerator) for bit in self._line.sent[s]]
        return self._gates.weighs_at_least(weights, 1)

    def _delivers_twice(self, cluster: int) -> Bit:
        return self._gates.at_least(self._deliveries(cluster), 2)

    def _deliveries(self, cluster: int) -> list[Bit]:
        """For each tick of the horizon, whether a delivery ends then."""
        instance = self._instance
        return [
            self._line.departs(cluster, t) for t in range(instance.service, instance.horizon + 1)
        ]

    def _apart(self, u: int, v: int, bound: Fraction) -> Bit:
        """Whether u's mean peak exceeds v's by more than the bound.

        With ku and kv peaks that sum to su and sv: kv su - ku sv > bound ku kv.
        """
        gates = self._gates
        of_u, counts_u = self._peaks(u)
        of_v, counts_v = self._peaks(v)
        ways: list[Bit] = []
        for ku, kv in product(range(1, len(counts_u) - 1), range(1, len(counts_v) - 1)):
            case = gates.all_of(
                [
                    counts_u[ku],
                    negation(counts_u[ku + 1]),
                    counts_v[kv],
                    negation(counts_v[kv + 1]),
                ]
            )
            if case is False:
                continue
            # The services cancel, since each peak contains one.
            weights = [(bit, kv * w) for bit, w in of_u] + [(bit, -ku * w) for bit, w in of_v]
            more = floor(bound * ku * kv) + 1
            ways.append(gates.all_of([case, gates.weighs_at_least(weights, more)]))
        return gates.any_of(ways)

    def _mean_age(self, cluster: int) -> ages.MeanAge:
        if cluster not in self._ages:
            starts = self._aged_starts(cluster)
            self._ages[cluster] = ages.MeanAge(self._gates, self._instance, starts)
        return self._ages[cluster]

    def _peaks(self, cluster: int) -> tuple[Weights, list[Bit]]:
        """The sum of the peaks without their services, and whether there are at least k.

        Peak k is D(k) - g(k-1): the time since the previous delivery, a service, and the wait of
        its content. So the sum is the time between the first and the last delivery, a service for
        each, and the age of each content but the last when its service began.
        """
        if cluster not in self._sums:
            gates, service = self._gates, self._instance.service
            ends = self._deliveries(cluster)
            if ends:
                ends[-1] = gates.all_of([ends[-1], self._line.last_counts])
            later: list[Bit] = [False] * (len(ends) + 1)
            for at in reversed(range(len(ends))):
                later[at] = gates.any_of([ends[at], later[at + 1]])
            weights: Weights = []
            seen: Bit = False
            # counts[k]: more than k deliveries so far, that is k peaks or more. Each delivery takes
            # a service, and an update that no other delivery has.
            made = sum(
                self._instance.horizon // self._instance.senders[s].interval + 1
                for s in self._of[cluster]
            )
            most = min(len(ends) // service + 1, made) + 1
            counts: list[Bit] = [False] * (most + 1)
            for at, end in enumerate(ends):
                for k in reversed(range(1, most + 1)):
                    counts[k] = gates.any_of([counts[k], gates.all_of([counts[k - 1], end])])
                counts[0] = gates.any_of([counts[0], end])
                seen = gates.any_of([seen, end])
                weights.append((gates.all_of([seen, later[at + 1]]), 1))
            for begun, aged in self._aged_starts(cluster):
                if begun < len(ends):
                    followed = later[begun + 1]
                    weights += [(gates.all_of([b, followed]), 1) for j, b in aged if j > 0]
            while counts and counts[-1] is False:
                counts.pop()
            self._sums[cluster] = weights, [*counts, False]
        return self._sums[cluster]

    def _aged_starts(self, cluster: int) -> Iterable[tuple[int, list[tuple[int, Bit]]]]:
        """For each tick and j = 0, 1 ..: whether service begins for content at least j ticks
        old."""
        line, gates, instance = self._line, self._gates, self._instance
        longest = (instance.slots - 1) * instance.service
        for begun in range(instance.horizon + 1):
            start = line.starts[cluster][begun]
            waited = gates.all_of([start, negation(line.starts_at_once[cluster][begun])])
            aged: list[tuple[int, Bit]] = [(0, start)]
            for j in range(1, min(longest, begun) + 1):
                came = [
                    (line.before if j == 1 else line.sent)[s][begun - j + 1]
                    for s in self._of[cluster]
                ]
                waited = gates.all_of([waited, *(negation(bit) for bit in came)])
                aged.append((j, waited))
            yield begun, aged
