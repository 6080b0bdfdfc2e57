"""Turns z3's model into a schedule with real times, or finds that no real times fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cmp_to_key
from itertools import pairwise
from typing import TypeAlias

import z3

from olaf.verify.gates import Bit, negation
from olaf.verify.instance import Ties
from olaf.verify.prover import UndecidedError
from olaf.verify.schedule import Departure, Schedule, Send
from olaf.verify.timeline.queue import Unrolled

Node: TypeAlias = tuple[int, int]
"""(sender, tick) of a late arrival, which has a moment of its own in the tick; (sender, -1): the
moment of a sender's phase, which all its arrivals without lateness share."""
BEGIN: Node = (-1, -1)
"""The moment at which the observation begins and ends."""


@dataclass(frozen=True)
class Unreal:
    """The model's order of events within ticks needs impossible times."""

    clause: z3.BoolRef
    """A condition that excludes every model with the same choice."""


@dataclass(frozen=True)
class _Edge:
    """moment(of) + gap <= moment(to), because of these bits."""

    of: Node
    to: Node
    gap: int
    because: tuple[Bit, ...]


def read(line: Unrolled, model: z3.ModelRef) -> Schedule | Unreal:
    """The schedule of a model."""
    return _Reader(line, model).read()


class _Reader:
    def __init__(self, line: Unrolled, model: z3.ModelRef) -> None:
        self._line = line
        self._model = model
        self._instance = line.instance
        self._edges: list[_Edge] = []
        self._newest: dict[int, tuple[int, Node]] = {}
        """For each cluster: tick and moment of its last arrival."""
        self._began: dict[int, tuple[Node, int, tuple[int, Node]]] = {}
        """By the tick at which it ends: a service's moment, its cluster and its content."""
        self._due: list[int] = [-1] * len(line.instance.senders)

    def read(self) -> Schedule | Unreal:
        arrivals: list[tuple[int, int, Node]] = []
        held: list[tuple[int, int]] = []
        beginner: Node | None = None
        self._begin()
        for tick in range(self._instance.horizon + 1):
            came = self._ordered(tick)
            nodes = {s: self._node(s, tick) for s in came}
            held += [(tick, s) for s in self._ready(tick) if s not in nodes]
            arrivals += [(tick, s, nodes[s]) for s in came]
            departing = self._began[tick][0] if tick in self._began else None
            self._compare(tick, came, nodes, departing)
            if tick == self._instance.horizon and departing is not None:
                self._end(tick, departing)
            first = [s for s in came if not self._is(self._line.before[s][tick])]
            self._arrive(tick, [s for s in came if s not in first], nodes)
            begun = self._starting(tick)
            if begun is not None and self._is(self._line.starts_at_once[begun][tick]):
                beginner = nodes[first[0]]
                self._arrive(tick, first[:1], nodes)
            if begun is not None and beginner is not None:
                content = self._newest[begun]
                self._began[tick + self._instance.service] = (beginner, begun, content)
            self._arrive(tick, first, nodes)
        if self._instance.ties is Ties.GRID:
            moments = {node: 0 for _, _, node in arrivals}
        else:
            solved = _moments(self._edges)
            if isinstance(solved, Unreal):
                return solved
            moments = solved
            if max(moments.values(), default=0) >= self._instance.tick_ns:
                raise UndecidedError(
                    f"its events of one tick need {max(moments.values())} ns for their order, and "
                    f"a tick has {self._instance.tick_ns}: take times with a larger common divisor"
                )
        # A line of a trace is never earlier than the one above, so lines are in order within a
        # tick.
        sends = [Send(tick, moments.get(node, 0), s) for tick, s, node in arrivals]
        counts = self._is(self._line.last_counts)
        return Schedule(tuple(sends), tuple(held), counts, self._departures(moments, counts))

    def _arrive(self, tick: int, senders: list[int], nodes: dict[int, Node]) -> None:
        for s in senders:
            self._newest[self._instance.senders[s].cluster] = (tick, nodes[s])

    def _departures(self, moments: dict[Node, int], last_counts: bool) -> tuple[Departure, ...]:
        def at_ns(tick: int, node: Node) -> int:
            return tick * self._instance.tick_ns + moments.get(node, 0)

        last = self._instance.horizon if last_counts else self._instance.horizon - 1
        return tuple(
            Departure(at_ns(tick, node), cluster, at_ns(*content))
            for tick, (node, cluster, content) in sorted(self._began.items())
            if tick <= last
        )

    def _is(self, bit: Bit) -> bool:
        if isinstance(bit, bool):
            return bit
        return bool(z3.is_true(self._model.eval(bit, model_completion=True)))

    def _true(self, bit: Bit) -> Bit:
        """The bit or its negation, whichever holds in the model."""
        return bit if self._is(bit) else negation(bit)

    def _ready(self, tick: int) -> list[int]:
        ready = self._line.phases.ready
        return [s for s in range(len(ready)) if self._is(ready[s][tick])]

    def _starting(self, tick: int) -> int | None:
        """The cluster of the update that begins service."""
        starts = enumerate(self._line.starts)
        return next((c for c, of_cluster in starts if self._is(of_cluster[tick])), None)

    def _ordered(self, tick: int) -> list[int]:
        """Senders whose updates arrive at the tick, in order of arrival."""
        line = self._line
        came = [s for s in range(len(line.sent)) if self._is(line.sent[s][tick])]

        def compare(a: int, b: int) -> int:
            first_a, first_b = self._is(line.before[a][tick]), self._is(line.before[b][tick])
            if first_a != first_b:
                return -1 if first_a else 1
            return -1 if self._is(line.order.earlier(tick, a, b)) else 1

        return sorted(came, key=cmp_to_key(compare))

    def _begin(self) -> None:
        """The constraints of first and last phases on their moments."""
        if self._instance.ties is Ties.GRID:
            return
        for s, phase in enumerate(self._line.phases.phase):
            if self._is(phase[0]):
                self._edges.append(_Edge(BEGIN, (s, -1), 0, (phase[0],)))
            if self._is(phase[-1]):
                self._edges.append(_Edge((s, -1), BEGIN, 1, (phase[-1],)))

    def _end(self, tick: int, departing: Node) -> None:
        """The constraint on a departure's moment if it is not observed."""
        if not self._is(self._line.last_counts):
            facts = [negation(self._line.last_counts), *self._because_of(departing, tick)]
            self._edges.append(_Edge(BEGIN, departing, 1, tuple(facts)))

    def _because_of(self, departing: Node, tick: int) -> list[Bit]:
        """Record that the departure of a tick has this moment."""
        sender, began = departing
        facts: list[Bit] = [self._line.begins[sender][tick]]
        if began >= 0:
            # This is the sender's arrival: none since has begun another busy period.
            at_once = self._line.starts_at_once
            facts.append(at_once[self._instance.senders[sender].cluster][began])
            facts += [negation(of[later]) for of in at_once for later in range(began + 1, tick)]
        return facts

    def _node(self, sender: int, tick: int) -> Node:
        """The moment of an arrival, with the constraints of its lateness."""
        of = self._instance.senders[sender]
        if of.jitter == 0:
            return (sender, -1)
        node, phase = (sender, tick), (sender, -1)
        due = max(t for t in range(tick + 1) if self._is(self._line.phases.due[sender][t]))
        facts = (self._line.phases.due[sender][due], self._line.sent[sender][tick])
        if due == tick:
            self._edges.append(_Edge(phase, node, 0, facts))
        if tick - due == of.jitter:
            self._edges.append(_Edge(node, phase, 0, facts))
        return node

    def _compare(
        self, tick: int, came: list[int], nodes: dict[int, Node], departing: Node | None
    ) -> None:
        """The constraints of the order of the tick's events on their moments."""
        line = self._line
        for a, b in pairwise(came):
            facts = [line.sent[a][tick], line.sent[b][tick]]
            facts += [line.before[a][tick], line.before[b][tick], line.order.earlier(tick, a, b)]
            if nodes[a] != nodes[b]:
                because = tuple(self._true(f) for f in facts)
                self._edges.append(_Edge(nodes[a], nodes[b], 1, because))
        if departing is None:
            return
        for s in came:
            facts = [line.sent[s][tick], line.before[s][tick]]
            facts += self._because_of(departing, tick)
            because = tuple(self._true(f) for f in facts)
            if self._is(line.before[s][tick]):
                self._edges.append(_Edge(nodes[s], departing, 1, because))
            elif nodes[s] != departing:
                self._edges.append(_Edge(departing, nodes[s], 1, because))


def _moments(edges: list[_Edge]) -> dict[Node, int] | Unreal:
    """The smallest moments, in nanoseconds from 0, that satisfy all edges (Bellman and Ford)."""
    moments = {node: 0 for edge in edges for node in (edge.of, edge.to)}
    by: dict[Node, _Edge] = {}
    for _ in range(len(moments) + 1):
        changed: Node | None = None
        for edge in edges:
            if moments[edge.of] + edge.gap > moments[edge.to]:
                moments[edge.to] = moments[edge.of] + edge.gap
                by[edge.to] = edge
                changed = edge.to
        if changed is None:
            return moments
    assert changed is not None
    node = changed
    for _ in range(len(moments)):
        node = by[node].of
    circle, at = [by[node]], by[node].of
    while at != node:
        circle.append(by[at])
        at = by[at].of
    facts = {str(f): f for edge in circle for f in edge.because if not isinstance(f, bool)}
    return Unreal(z3.Or(*(z3.Not(fact) for fact in facts.values())))
