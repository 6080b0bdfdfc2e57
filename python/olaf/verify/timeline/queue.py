"""The queue, tick by tick: open updates, their order, services that begin, and drops.

The steps of a tick: arrivals before its departure; the departure, and the next service; the other
arrivals.
"""

from __future__ import annotations

from itertools import combinations, permutations

from olaf.verify.gates import Bit, Gates, negation
from olaf.verify.instance import Hears, Instance
from olaf.verify.timeline.beginning import Beginning
from olaf.verify.timeline.senders import Phases, Quota
from olaf.verify.timeline.ties import Order

Ahead = dict[tuple[int, int], Bit]


class Unrolled:
    """The unrolled run. Everything is indexed [sender or cluster][tick]."""

    def __init__(
        self, gates: Gates, instance: Instance, beginning: Beginning | None = None
    ) -> None:
        self.gates = gates
        self.instance = instance
        self._beginning = beginning or Beginning(gates, instance)
        self.order = Order(gates, instance)
        self.phases = Phases(gates, instance, self._beginning)
        self._senders = range(len(instance.senders))
        self._clusters = range(len(instance.clusters))
        self._of = [instance.senders_of(c) for c in self._clusters]
        self._any_late = any(sender.jitter for sender in instance.senders)
        for a, b in permutations(self._senders, 2):
            if self._beginning.is_first and self.order.ranked(a, b):
                # Slightly below the interval means before the observation's first moment in its
                # tick.
                last, first = self.phases.phase[a][-1], self.phases.phase[b][0]
                sooner = self.order.earlier(0, a, b)
                gates.require(gates.any_of([negation(last), negation(first), sooner]))
        control = instance.control
        self._quotas: list[Quota] = []
        if control:
            for s in self._senders:
                past = self._beginning.earlier_updates(s, control.window - 1)
                self._quotas.append(Quota(gates, instance, control, s, past))

        self.sent: list[list[Bit]] = [[] for _ in self._senders]
        self.before: list[list[Bit]] = [[] for _ in self._senders]
        """It comes before the departure of its tick."""
        self.dropped: list[list[Bit]] = [[] for _ in self._senders]
        self.starts: list[list[Bit]] = [[] for _ in self._clusters]
        """An update of the cluster begins service."""
        self.starts_at_once: list[list[Bit]] = [[] for _ in self._clusters]
        """It arrived at this very moment, at an idle link."""
        self.begins: list[list[Bit]] = [[] for _ in self._senders]
        """For each sender: its arrival began the busy period of the tick's departure."""
        self.last_counts: Bit = True
        """A departure at the horizon is observed."""

        self._open = list(self._beginning.open)
        self._ahead: Ahead = dict(self._beginning.ahead)
        self._beginner = list(self._beginning.beginner)
        self._part = list(self._beginning.part)
        self._locked_part: list[list[Bit]] = [[] for _ in self._senders]
        for tick in range(instance.horizon + 1):
            self._step(tick)

    def departs(self, cluster: int, tick: int) -> Bit:
        """Whether a delivery of the cluster ends at the tick: the paper's D."""
        return self._started(cluster, tick - self.instance.service)

    def _started(self, cluster: int, tick: int) -> Bit:
        if tick < 0:
            return self._beginning.started(cluster, -tick)
        return self.starts[cluster][tick]

    def _step(self, tick: int) -> None:
        gates, instance = self.gates, self.instance
        departs = gates.any_of(self.departs(c, tick) for c in self._clusters)
        in_service = gates.any_of(
            self._started(c, tick - age)
            for c in self._clusters
            for age in range(1, instance.service)
        )
        first = [self.order.before(tick, s, departs, self._beginner) for s in self._senders]
        for s in self._senders:
            self.begins[s].append(self._beginner[s])
            self.sent[s].append(self._send(tick, s, first[s]))
        before = [gates.all_of([self.sent[s][tick], first[s]]) for s in self._senders]
        self._keep_order(tick, before)
        for s in self._senders:
            self.before[s].append(before[s])
        dropped_first = self._admit(tick, before, held=True)

        heads = [
            gates.all_of(
                [
                    departs,
                    self._open[c],
                    *(
                        negation(gates.all_of([self._open[d], self._ahead[d, c]]))
                        for d in self._clusters
                        if d != c
                    ),
                ]
            )
            for c in self._clusters
        ]
        self._lock(heads)

        after = [gates.all_of([self.sent[s][tick], negation(first[s])]) for s in self._senders]
        busy = gates.any_of([in_service, *heads, *self._open])
        at_once = [self._begins_at_once(tick, s, after, busy) for s in self._senders]
        for s in self._senders:
            self._locked_part[s][-1] = gates.any_of([self._locked_part[s][-1], at_once[s]])
        begun = gates.any_of(at_once)
        keeps = negation(begun)
        self._beginner = [
            gates.any_of([at_once[s], gates.all_of([keeps, self._beginner[s]])])
            for s in self._senders
        ]
        rest = [gates.all_of([after[s], negation(at_once[s])]) for s in self._senders]
        dropped_later = self._admit(tick, rest, held=gates.any_of([in_service, *heads, begun]))
        for s in self._senders:
            self.dropped[s].append(gates.any_of([dropped_first[s], dropped_later[s]]))
        for c in self._clusters:
            mine = gates.any_of(at_once[s] for s in self._of[c])
            self.starts_at_once[c].append(mine)
            self.starts[c].append(gates.any_of([heads[c], mine]))

    def _send(self, tick: int, sender: int, first: Bit) -> Bit:
        ready = self.phases.ready[sender][tick]
        if not self._quotas:
            return ready
        heard: list[tuple[int, Bit]] = []
        delay = self.instance.answer_delay
        of_cluster = self._of[self.instance.senders[sender].cluster]
        shared = self.instance.hears is Hears.SHARED
        # Earlier ticks have no influence.
        control = self.instance.control
        assert control is not None
        oldest = tick - max(control.forced, control.threshold)
        for at in range(oldest, tick + 1):
            begun = at - delay - self.instance.service
            about = [sender] if shared else of_cluster
            if begun < 0:
                answer = self._beginning.heard(sender, at)
            else:
                answer = self.gates.any_of(self._locked_part[s][begun] for s in about)
            if at == tick and delay == 0:
                answer = self.gates.all_of([answer, negation(first)])
            heard.append((at, answer))
        return self._quotas[sender].send(tick, ready, heard)

    def _keep_order(self, tick: int, before: list[Bit]) -> None:
        """If each arrival chooses its side of the departure, the sides must fit their order."""
        if not self._any_late:
            return
        for a, b in permutations(self._senders, 2):
            both = [self.sent[a][tick], before[b], self.order.earlier(tick, a, b)]
            clash = self.gates.all_of(both)
            self.gates.require(self.gates.any_of([negation(clash), before[a]]))

    def _admit(self, tick: int, arrives: list[Bit], held: Bit) -> list[Bit]:
        """Join the open update, take a slot, or be dropped; returns the drops.

        held: whether the link holds a slot with its present update.
        """
        gates = self.gates
        if all(a is False for a in arrives):
            return [False for _ in self._senders]
        comes = [gates.any_of(arrives[s] for s in self._of[c]) for c in self._clusters]
        wants = [gates.all_of([comes[c], negation(self._open[c])]) for c in self._clusters]
        sooner = {
            (c, d): gates.all_of([wants[c], self._first_of(tick, arrives, c, d)])
            for c, d in permutations(self._clusters, 2)
        }
        free = self.instance.slots - 1
        appended: list[Bit] = []
        for c in self._clusters:
            taken = [*self._open, held, *(sooner[d, c] for d in self._clusters if d != c)]
            appended.append(gates.all_of([wants[c], gates.at_most(taken, free)]))
        self._queue(appended, sooner)
        dropped: list[Bit] = []
        for s in self._senders:
            in_queue = self._open[self.instance.senders[s].cluster]
            self._part[s] = gates.any_of([self._part[s], gates.all_of([arrives[s], in_queue])])
            dropped.append(gates.all_of([arrives[s], negation(in_queue)]))
        return dropped

    def _first_of(self, tick: int, arrives: list[Bit], c: int, d: int) -> Bit:
        """Whether, of two clusters' arrivals in a step, the first is c's."""
        gates = self.gates
        ways: list[Bit] = []
        for s in self._of[c]:
            ahead = [
                gates.any_of([negation(arrives[o]), self.order.earlier(tick, s, o)])
                for o in self._of[d]
            ]
            ways.append(gates.all_of([arrives[s], *ahead]))
        return gates.any_of(ways)

    def _queue(self, appended: list[Bit], sooner: Ahead) -> None:
        gates = self.gates
        if all(a is False for a in appended):
            return
        ahead: Ahead = {}
        for c, d in combinations(self._clusters, 2):
            for x, y in ((c, d), (d, c)):
                old = gates.all_of([self._ahead[x, y], self._open[x], self._open[y]])
                behind = gates.all_of([appended[y], self._open[x]])
                both = gates.all_of([appended[x], appended[y], sooner[x, y]])
                ahead[x, y] = gates.any_of([old, behind, both])
        self._ahead = ahead
        self._open = [gates.any_of([self._open[c], appended[c]]) for c in self._clusters]

    def _lock(self, heads: list[Bit]) -> None:
        """The next update begins service, and merges with no more arrivals."""
        gates = self.gates
        for s in self._senders:
            mine = heads[self.instance.senders[s].cluster]
            self._locked_part[s].append(gates.all_of([mine, self._part[s]]))
            self._part[s] = gates.all_of([self._part[s], negation(mine)])
        self._open = [gates.all_of([self._open[c], negation(heads[c])]) for c in self._clusters]

    def _begins_at_once(self, tick: int, sender: int, after: list[Bit], busy: Bit) -> Bit:
        """Whether this arrival finds the link idle and is the first to."""
        others = [
            self.gates.any_of([negation(after[o]), self.order.earlier(tick, sender, o)])
            for o in self._senders
            if o != sender
        ]
        return self.gates.all_of([negation(busy), after[sender], *others])
