"""The model, slow and obvious: an event after the other, by its tick and where in it it is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from olaf.verify.instance import Control, Hears, Instance
from olaf.verify.schedule import Delivery, Run

Moment = tuple[int, Fraction]
Ready = tuple[Moment, int]
"""When, and which sender."""
Choice = Callable[[], bool]


@dataclass
class Entry:
    cluster: int
    newest: int
    workers: set[int]


@dataclass
class Reference:
    """A run in the making."""

    instance: Instance
    choose: Choice
    open: list[Entry] = field(default_factory=list)
    wire: Entry | None = None
    ends: Moment = (0, Fraction(0))
    past: list[list[bool]] = field(default_factory=list)
    answered: list[tuple[int, Entry]] = field(default_factory=list)
    deliveries: list[list[Delivery]] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)

    def run(self, updates: list[Ready]) -> Run:
        instance = self.instance
        self.past = [[] for _ in instance.senders]
        self.deliveries = [[] for _ in instance.clusters]
        self.sent, self.dropped = [0] * len(instance.clusters), [0] * len(instance.clusters)
        for moment, sender in sorted(updates):
            if moment[0] <= instance.horizon:
                self._depart_until(moment)
                self._ready(moment, sender)
        self._depart_until((instance.horizon + 1, Fraction(-1)))
        return Run(
            instance.horizon * instance.tick_ns,
            tuple(map(tuple, self.deliveries)),
            tuple(self.sent),
            tuple(self.dropped),
        )

    def _depart_until(self, moment: Moment) -> None:
        ns, service = self.instance.tick_ns, self.instance.service
        while self.wire is not None and self.ends <= moment:
            at = self.ends[0]
            delivery = Delivery((at - service) * ns, at * ns, self.wire.newest * ns)
            self.deliveries[self.wire.cluster].append(delivery)
            self.answered.append((at + self.instance.answer_delay, self.wire))
            self.wire = self.open.pop(0) if self.open else None
            self.ends = at + service, self.ends[1]

    def _ready(self, moment: Moment, sender: int) -> None:
        control = self.instance.control
        sends = control is None or self._may_send(control, moment[0], sender)
        self.past[sender].append(sends)
        if sends:
            self._arrive(moment, sender)

    def _may_send(self, control: Control, tick: int, sender: int) -> bool:
        cluster = self.instance.senders[sender].cluster
        heard = [
            at
            for at, entry in self.answered
            if at <= tick
            and entry.cluster == cluster
            and (self.instance.hears is Hears.CLUSTER or sender in entry.workers)
        ]
        if not heard or tick - max(heard) > control.forced:
            return True
        before = self.past[sender][len(self.past[sender]) - control.window + 1 :]
        if control.window == 1:
            before = []
        whole = len(before) == control.window - 1
        if tick - max(heard) <= control.threshold and sum(before) + 1 > control.at_most:
            return False
        if whole and sum(before) < control.at_least:
            return True
        return self.choose()

    def _arrive(self, moment: Moment, sender: int) -> None:
        cluster = self.instance.senders[sender].cluster
        self.sent[cluster] += 1
        entry = Entry(cluster, moment[0], {sender})
        if self.wire is None:
            self.wire, self.ends = entry, (moment[0] + self.instance.service, moment[1])
            return
        for waiting in self.open:
            if waiting.cluster == cluster:
                waiting.newest = moment[0]
                waiting.workers.add(sender)
                return
        if 1 + len(self.open) < self.instance.slots:
            self.open.append(entry)
        else:
            self.dropped[cluster] += 1
