"""Runs at real times, to the nanosecond: what proofs about whole ticks must hold for."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from olaf.verify.instance import Control, Hears, Instance, Ties
from olaf.verify.schedule import Delivery, Run, Schedule, Send, replay

NEAR_NS = 400
"""How far from a tick an event is that is to be next to it."""


@dataclass
class Waiting:
    cluster: int
    start_ns: int
    newest_ns: int
    parts: set[int]


@dataclass
class Switch:
    """A queue, its link, and what its workers hear; `Run` is what the engine says of the same."""

    instance: Instance
    queue: list[Waiting] = field(default_factory=list)
    wire: Waiting | None = None
    heard: list[list[int]] = field(default_factory=list)
    choices: list[list[bool]] = field(default_factory=list)
    departures: list[tuple[int, int, int]] = field(default_factory=list)
    """(end, cluster, newest)."""

    def run_until(self, now_ns: int) -> None:
        """Everything that leaves by then."""
        instance = self.instance
        while self.wire is not None:
            end_ns = self.wire.start_ns + instance.service * instance.tick_ns
            if end_ns > now_ns:
                return
            left = self.wire
            self.departures.append((end_ns, left.cluster, left.newest_ns))
            for worker, sender in enumerate(instance.senders):
                of_cluster = instance.hears is Hears.CLUSTER and sender.cluster == left.cluster
                if of_cluster or worker in left.parts:
                    at_ns = end_ns + instance.answer_delay * instance.tick_ns
                    self.heard[worker].append(at_ns)
            self.wire = self.queue.pop(0) if self.queue else None
            if self.wire is not None:
                self.wire.start_ns = end_ns

    def take(self, now_ns: int, worker: int) -> None:
        """An update that is sent."""
        cluster = self.instance.senders[worker].cluster
        for waiting in self.queue:
            if waiting.cluster == cluster:
                waiting.newest_ns = now_ns
                waiting.parts.add(worker)
                return
        update = Waiting(cluster, now_ns, now_ns, {worker})
        if self.wire is None:
            self.wire = update
        elif len(self.queue) + 1 < self.instance.slots:
            self.queue.append(update)

    def may(self, control: Control, now_ns: int, worker: int) -> tuple[bool, bool]:
        """Whether it may be sent, and whether it may be held back."""
        last_ns = max((at for at in self.heard[worker] if at <= now_ns), default=None)
        age_ns = None if last_ns is None else now_ns - last_ns
        past = self.choices[worker][-(control.window - 1) :] if control.window > 1 else []
        whole = len(past) == control.window - 1
        silent = age_ns is None or age_ns > control.forced * self.instance.tick_ns
        fresh = age_ns is not None and age_ns <= control.threshold * self.instance.tick_ns
        may_send = not fresh or sum(past) + 1 <= control.at_most
        return may_send, not silent and not (whole and sum(past) < control.at_least)


def simulated(instance: Instance, random: Random) -> tuple[Run, list[tuple[int, int, int]]]:
    """A drawn run: what the engine says, and what the switch above does."""
    switch = Switch(instance)
    switch.heard = [[] for _ in instance.senders]
    switch.choices = [[] for _ in instance.senders]
    end_ns = instance.horizon * instance.tick_ns
    often = random.random()
    sends: list[Send] = []
    held: list[tuple[int, int]] = []
    for now_ns, worker in ready_times(instance, random):
        if now_ns > end_ns:
            break
        switch.run_until(now_ns)
        sent = True
        if instance.control is not None:
            may_send, may_hold = switch.may(instance.control, now_ns, worker)
            sent = may_send and not (may_hold and random.random() > often)
            switch.choices[worker].append(sent)
        tick, offset_ns = divmod(now_ns, instance.tick_ns)
        if sent:
            switch.take(now_ns, worker)
            sends.append(Send(tick, offset_ns, worker))
        else:
            held.append((tick, worker))
    switch.run_until(end_ns)
    run = replay(instance, Schedule(tuple(sends), tuple(held)))
    in_time = tuple(tuple(d for d in each if d.end_ns <= end_ns) for each in run.deliveries)
    return Run(run.horizon_ns, in_time, run.sent, run.dropped), switch.departures


def ready_times(instance: Instance, random: Random) -> list[tuple[int, int]]:
    """(time, worker) of all updates, in order. Some runs have all of them next to ticks."""
    tick_ns, horizon_ns = instance.tick_ns, instance.horizon * instance.tick_ns
    near = random.random() < 0.7
    # No two the same: real numbers are not, and on a tick all are.
    fractions = iter(random.sample(range(1, NEAR_NS if near else tick_ns), 300))

    def moment(ticks: int) -> int:
        """A moment in 0 to `ticks` ticks: a whole tick on the grid, else never at an end."""
        if instance.ties is Ties.GRID:
            return random.randint(0, ticks) * tick_ns
        fraction = next(fractions)
        if near and random.random() < 0.5 and ticks > 0:
            return random.randint(1, ticks) * tick_ns - fraction
        return random.randrange(max(ticks, 1)) * tick_ns + fraction

    times: list[tuple[int, int]] = []
    for worker, sender in enumerate(instance.senders):
        phase_ns = moment(sender.interval - (instance.ties is Ties.GRID))
        for due_ns in range(phase_ns, horizon_ns + 1, sender.interval * tick_ns):
            late_ns = moment(sender.jitter) if sender.jitter else 0
            times.append((due_ns + late_ns, worker))
    random.shuffle(times)
    return sorted(times, key=lambda each: each[0])


def departures(run: Run) -> list[tuple[int, int, int]]:
    """(end, cluster, newest) of all deliveries, in order."""

    def of(cluster: int, each: Delivery) -> tuple[int, int, int]:
        return each.end_ns, cluster, each.newest_ns

    return sorted(of(c, each) for c, found in enumerate(run.deliveries) for each in found)
