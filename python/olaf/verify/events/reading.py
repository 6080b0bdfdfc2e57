"""Turns z3's model into a schedule."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import z3

from olaf.verify.events.facts import Term
from olaf.verify.events.queue import Queue
from olaf.verify.gates import Bit
from olaf.verify.instance import Objective
from olaf.verify.schedule import Delivery, Run, Schedule, Send, value


def read(queue: Queue, objective: Objective, model: z3.ModelRef) -> Schedule:
    """The run of a model, on whole ticks.

    Rounding all moments at the same fraction keeps every relation of the model true. The value is
    the largest of some functions that are linear in the moments. Over all fractions, the rounded
    moments average to the model's; so for one fraction the value is not smaller.
    """
    reader = _Reader(queue, model)

    def reached(fraction: Fraction) -> Fraction:
        found = value(reader.run(fraction), objective)
        return Fraction(-1) if found is None else found

    return reader.schedule(max(reader.fractions(), key=reached))


class _Reader:
    def __init__(self, queue: Queue, model: z3.ModelRef) -> None:
        self._queue = queue
        self._model = model
        self._ticks = {u.index: self._number(u.ready.tick) for u in queue.updates}
        fates = enumerate(queue.fates)
        self._ends = {i: self._number(f.departs.tick) for i, f in fates if self._is(f.taken)}

    def fractions(self) -> list[Fraction]:
        """The fractions at which the rounding of some moment changes."""
        return sorted({-tick % 1 for tick in self._ticks.values()} | {Fraction(0)})

    def run(self, fraction: Fraction) -> Run:
        """The model's run, rounded at a fraction."""
        instance = self._queue.instance
        deliveries: list[tuple[Delivery, ...]] = []
        sent, dropped = [0] * len(instance.clusters), [0] * len(instance.clusters)
        for cluster in range(len(instance.clusters)):
            newest: dict[Fraction, Fraction] = {}
            for i in (u.index for u in self._queue.of(cluster)):
                fate = self._queue.fates[i]
                sent[cluster] += self._is(fate.sent)
                dropped[cluster] += self._is(fate.dropped)
                if self._is(fate.delivered):
                    end = self._ends[i]
                    newest[end] = max(newest.get(end, self._ticks[i]), self._ticks[i])
            ends = [
                (floor(end + fraction), floor(content + fraction))
                for end, content in sorted(newest.items())
            ]
            ns = instance.tick_ns
            deliveries.append(
                tuple(Delivery((e - instance.service) * ns, e * ns, c * ns) for e, c in ends)
            )
        horizon_ns = instance.horizon * instance.tick_ns
        return Run(horizon_ns, tuple(deliveries), tuple(sent), tuple(dropped))

    def schedule(self, fraction: Fraction) -> Schedule:
        """The senders' actions. A rank is as many nanoseconds as there are lower ranks."""
        sends: list[tuple[int, Fraction, int]] = []
        held: list[tuple[int, int]] = []
        for update, fate in zip(self._queue.updates, self._queue.fates, strict=True):
            tick = floor(self._ticks[update.index] + fraction)
            if self._is(fate.sent):
                sends.append((tick, self._number(update.ready.rank), update.sender))
            elif self._is(update.counts):
                held.append((tick, update.sender))
        ranks = sorted({rank for _, rank, _ in sends})
        return Schedule(
            tuple(Send(tick, ranks.index(rank), s) for tick, rank, s in sorted(sends)),
            tuple(sorted(held)),
            last_counts=self._last_counts(fraction),
        )

    def _last_counts(self, fraction: Fraction) -> bool:
        """Whether a departure at the horizon is observed."""
        last = self._queue.instance.horizon
        at_last = (i for i, end in self._ends.items() if floor(end + fraction) == last)
        return all(self._is(self._queue.fates[i].delivered) for i in at_last)

    def _is(self, bit: Bit) -> bool:
        if isinstance(bit, bool):
            return bit
        return bool(z3.is_true(self._model.eval(bit, model_completion=True)))

    def _number(self, term: Term) -> Fraction:
        if isinstance(term, int):
            return Fraction(term)
        known = self._model.eval(term, model_completion=True)
        return Fraction(known.numerator_as_long(), known.denominator_as_long())
