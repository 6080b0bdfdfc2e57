"""Where every contribution of a run ended, from the counters of the processes.

The sender counts the contributions that it pushed, the switch each fate in its queue, the server
the contributions that it received. The difference of two neighbours' counters is zero, or was lost
between them. A killed process takes everything after its last report with it. Then only the
difference over its hops is known, and the row says so. Counts are never adjusted: an impossible
difference is reported as a discrepancy.

A difference alone would match whatever was counted. So both ends of each hop count datagrams, too
(:mod:`olaf.jobs.hops`): a lost contribution has to be a number that the receiver never saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from olaf.jobs import hops
from olaf.jobs.incarnation import Incarnation, Stats

NEVER_SENT = ("replaced at worker", "discarded at worker", "unsent")
"""Fates that the worker itself decides."""


MOST_NAMED = 4
"""Processes that the row of a difference names; more are counted."""


@dataclass(frozen=True)
class Row:
    """One fate and the number of contributions that met it."""

    fate: str
    count: int
    counted: str
    """The party that counted: ``workers``, ``leaf``, ``switch``, ``server``, or ``difference``."""
    lost: bool = False
    """True if the fate counts as a loss: dropped or lost."""
    note: str = ""


@dataclass(frozen=True)
class Accounts:
    """All fates of a run."""

    pushed: int
    rows: list[Row]
    discrepancies: list[str] = field(default_factory=list)
    note: str = ""
    """A remark about `pushed`, or an empty text."""

    @property
    def total(self) -> int:
        """Sum of all fates."""
        return sum(row.count for row in self.rows)

    @property
    def matches(self) -> bool:
        """True if every contribution has exactly one fate at every hop."""
        return self.total == self.pushed and not self.discrepancies

    @property
    def lost(self) -> int:
        """Contributions dropped or lost."""
        return sum(row.count for row in self.rows if row.lost)

    @property
    def loss(self) -> float | None:
        """Dropped or lost contributions divided by sent ones; None before the first is sent."""
        unsent = sum(r.count for r in self.rows if r.fate in NEVER_SENT)
        sent = self.pushed - unsent
        return self.lost / sent if sent > 0 else None

    def count(self, fate: str) -> int:
        """Contributions that met this fate; fates with reasons are summed."""
        return sum(r.count for r in self.rows if r.fate == fate or r.fate.startswith(fate + ":"))

    def to_json(self) -> dict[str, Any]:
        """The accounts as written to run.json."""
        return {
            "pushed": self.pushed,
            "note": self.note,
            "total": self.total,
            "matches": self.matches,
            "discrepancies": self.discrepancies,
            "rows": [
                {
                    "fate": r.fate,
                    "count": r.count,
                    "counted": r.counted,
                    "lost": r.lost,
                    "note": r.note,
                }
                for r in self.rows
            ],
        }


def nothing(role: str) -> Stats:
    """Statistics of a process that ended before its first report."""
    none: dict[str, Stats] = {
        "worker": {
            "contributions": 0,
            "sent": 0,
            "replaced_unsent": 0,
            "unsent": 0,
            "held": 0,
            "discarded": 0,
        },
        "switch": {
            "received": 0,
            "departures": 0,
            "queue": {"used": 0, "slots": 0},
            "fates": {
                "sent_alone": 0,
                "merged": 0,
                "replaced": 0,
                "filtered": 0,
                "dropped": {},
                "rejected": {},
                "waiting": 0,
            },
        },
        "server": {"jobs": []},
        "relay": {"bytes": {"up": 0, "down": 0}},
    }
    return none["switch" if role == "leaf" else role]


def settle(
    workers: Sequence[Incarnation],
    switches: Sequence[Incarnation],
    servers: Sequence[Incarnation],
    job: int = 1,
    *,
    leaves: Sequence[Incarnation] = (),
    is_tcp: bool = False,
) -> Accounts:
    """Draw up the accounts from the last report of every incarnation of every process.

    leaves: the switches between the workers and ``switches``, if there are any.
    is_tcp: true for runs without switches, which lose nothing while all processes live.
    """
    discrepancies: list[str] = []
    sent = _workers(workers, discrepancies)
    tiers = [("leaf", leaves), ("switch", switches)] if leaves else [("switch", switches)]
    if is_tcp:
        tiers = []
    queues = [_switches(name, tier, discrepancies) for name, tier in tiers]
    result = _servers(servers, job, discrepancies)
    killed_workers, killed_servers = _killed(workers), _killed(servers)
    handed = sent.pushed - sent.replaced - sent.discarded - sent.unsent

    rows: list[Row] = []
    if sent.replaced:
        rows.append(Row("replaced at worker", sent.replaced, "workers"))
    if sent.discarded:
        note = "held back by transmission control, and then discarded"
        rows.append(Row("discarded at worker", sent.discarded, "workers", note=note))
    if sent.unsent:
        rows.append(Row("unsent", sent.unsent, "workers", note="still at a worker when it ended"))
    way = _Way("worker", handed, killed_workers)
    left = hops.workers_left(workers)
    forgotten = 0
    for (name, tier), queue in zip(tiers, queues, strict=True):
        hop = hops.compare(name, left, tier, job, discrepancies)
        way.pass_through(name, queue, _killed(tier), hop.note)
        forgotten += hop.forgotten
        left = hops.switches_left(tier, job)
    hop = hops.compare("server", left, servers, job, discrepancies)
    way.end("server", result.received, killed_servers, hop.note)
    forgotten += hop.forgotten
    if is_tcp:
        way.name_buffers()
    unreported = 0
    first = way.gaps[0]
    if first.count < 0 and killed_workers:
        # The switch received more than a killed worker reported: these were pushed, too.
        unreported = -first.count
        way.rows.remove(first)
    rows += [*way.rows, *result.rows]
    for row in rows:
        if row.count < 0:
            discrepancies.append(f"{row.fate}: {-row.count} more arrived than were sent")
    notes = []
    if unreported:
        notes.append(f"{unreported} of them after the last report of {', '.join(killed_workers)}")
    if repeated := sum(queue.repeated for queue in queues):
        notes.append(f"{repeated} that the network repeated were refused and are not counted")
    if forgotten:
        notes.append(
            f"{forgotten} lives of senders were forgotten, so that datagrams are not compared"
        )
    return Accounts(sent.pushed + unreported, rows, discrepancies, "; ".join(notes))


def _killed(party: Sequence[Incarnation]) -> list[str]:
    return [one.label for one in party if not one.final]


class _Way:
    """The way up, hop by hop: departures of one party and arrivals at the next."""

    def __init__(self, name: str, handed: int, killed: list[str]) -> None:
        self.rows: list[Row] = []
        self.gaps: list[Row] = []
        self._from, self._handed, self._killed = name, handed, killed

    def pass_through(self, name: str, queue: _Queue, killed: list[str], note: str) -> None:
        """Add a tier of switches."""
        if killed:
            # Its queue, and everything after its last report, are gone: one gap over both hops.
            self._handed -= queue.settled_here + queue.waiting
            self._killed = [*killed, *self._killed]
            self.rows += queue.rows
            return
        self.end(name, queue.received, [], note)
        self.rows += queue.rows
        self._from, self._handed, self._killed = name, queue.departed, []

    def end(self, name: str, received: int, killed: list[str], note: str) -> None:
        """Add the next party that counted its arrivals; missing contributions become a row.

        note: how the receiver knows of the datagrams that were lost, or an empty text.
        """
        between = f"{self._from} to {name}"
        gap = _gap(self._handed - received, between, [*self._killed, *killed], note)
        self.gaps.append(gap)
        self.rows.append(gap)

    def name_buffers(self) -> None:
        """Over TCP a difference without a death is no loss: it waits in the system's buffers."""
        (gap,) = self.gaps
        if not gap.fate.startswith("lost with"):
            note = "in TCP's buffers when the run was stopped"
            self.gaps = [Row("under way", gap.count, "difference", note=note)]
            self.rows[self.rows.index(gap)] = self.gaps[0]


def _in_short(killed: list[str]) -> str:
    """Incarnations by process: ``worker 0 #1 to #6``, and the number of very many processes."""
    numbers: dict[str, list[int]] = {}
    for label in killed:
        name, _, number = label.rpartition(" #")
        numbers.setdefault(name, []).append(int(number))
    if len(numbers) > MOST_NAMED:
        return f"{len(killed)} killed incarnations of {len(numbers)} processes"
    return ", ".join(f"{name} {_range(of)}" for name, of in numbers.items())


def _range(numbers: list[int]) -> str:
    first, last = numbers[0], numbers[-1]
    if len(numbers) > 2 and numbers == list(range(first, last + 1)):
        return f"#{first} to #{last}"
    return ", ".join(f"#{number}" for number in numbers)


def _gap(count: int, between: str, killed: list[str], note: str) -> Row:
    if not killed:
        return Row(f"lost {between}", count, "difference", lost=True, note=note)
    return Row(
        f"lost with {_in_short(killed)}",
        count,
        "difference",
        lost=True,
        note="the rest: held or under way at the kill, or handled after the last report",
    )


@dataclass
class _Sent:
    pushed: int = 0
    replaced: int = 0
    discarded: int = 0
    unsent: int = 0


def _workers(workers: Sequence[Incarnation], discrepancies: list[str]) -> _Sent:
    total = _Sent()
    for one in workers:
        stats = one.stats
        total.pushed += stats["contributions"]
        total.replaced += stats["replaced_unsent"]
        # A killed worker may have sent these after its last report: they belong to the difference
        # between workers and switch.
        kept = stats["unsent"] + stats["held"]
        total.unsent += kept if one.final else 0
        total.discarded += stats["discarded"]
        gone = stats["sent"] + stats["replaced_unsent"] + stats["discarded"]
        if stats["contributions"] != gone + kept:
            discrepancies.append(
                f"{one.label}: contributions != sent + replaced + discarded + unsent + held"
            )
    return total


@dataclass
class _Queue:
    received: int = 0
    departed: int = 0
    waiting: int = 0
    settled_here: int = 0
    repeated: int = 0
    rows: list[Row] = field(default_factory=list)


def _switches(tier: str, switches: Sequence[Incarnation], discrepancies: list[str]) -> _Queue:
    total = _Queue()
    ended: dict[str, int] = {"replaced": 0, "filtered": 0}
    for one in switches:
        fates = one.stats["fates"]
        # A datagram that the network repeated was pushed once: a duplicate is no contribution.
        repeated = fates["rejected"].get("duplicate", 0)
        total.received += one.stats["received"] - repeated
        total.repeated += repeated
        departed = fates["sent_alone"] + fates["merged"]
        total.departed += departed
        here = fates["replaced"] + fates["filtered"]
        ended["replaced"] += fates["replaced"]
        ended["filtered"] += fates["filtered"]
        for fate in ("dropped", "rejected"):
            for reason, count in fates[fate].items():
                here += count
                if reason == "duplicate":
                    continue
                key = f"{fate}: {reason}"
                ended[key] = ended.get(key, 0) + count
        total.settled_here += here - repeated
        if one.final:
            total.waiting += fates["waiting"]
        if one.stats["received"] != departed + here + fates["waiting"]:
            discrepancies.append(f"{one.label}: received != sum of fates")
        hops.check_fates(one, one.stats["received"] - repeated, None, discrepancies)
        hops.check_departures(one, discrepancies)
    total.rows = [
        Row(fate, count, tier, lost=fate.startswith("dropped"))
        for fate, count in ended.items()
        if count or ":" not in fate
    ]
    if "dropped" not in {row.fate.partition(":")[0] for row in total.rows}:
        total.rows.append(Row("dropped", 0, tier, lost=True))
    if total.waiting:
        total.rows.append(
            Row("waiting", total.waiting, tier, note="in the queue when it was stopped")
        )
    return total


@dataclass
class _Result:
    received: int = 0
    rows: list[Row] = field(default_factory=list)


def _of_this_life(served: Stats) -> Stats:
    """A server's counts for a job, without those that it loaded from a checkpoint."""
    before = served.get("restored")
    if not before:
        return served
    fates = dict(served["fates"])
    for fate in ("delivered_alone", "delivered_merged", "gated"):
        fates[fate] -= before[fate]
    fates["rejected"] = {
        reason: count - before["rejected"].get(reason, 0)
        for reason, count in fates["rejected"].items()
    }
    return {**served, "received": served["received"] - before["received"], "fates": fates}


def _servers(servers: Sequence[Incarnation], job: int, discrepancies: list[str]) -> _Result:
    total = _Result()
    alone = merged = gated = waiting = 0
    rejected: dict[str, int] = {}
    for one in servers:
        for whole in one.stats["jobs"]:
            if whole["job"] != job:
                continue
            served = _of_this_life(whole)
            fates = served["fates"]
            total.received += served["received"]
            alone += fates["delivered_alone"]
            merged += fates["delivered_merged"]
            gated += fates["gated"]
            held = fates.get("waiting", 0)
            counted = fates["delivered_alone"] + fates["delivered_merged"] + fates["gated"] + held
            for reason, count in fates["rejected"].items():
                counted += count
                rejected[reason] = rejected.get(reason, 0) + count
            if counted != served["received"]:
                discrepancies.append(f"{one.label}: received != sum of fates")
            hops.check_fates(one, served["received"], job, discrepancies)
            if one.final:
                waiting += held
            else:
                # Contributions that a killed server had collected are lost with it.
                total.received -= held
    total.rows = [
        Row("delivered alone", alone, "server"),
        Row("delivered merged", merged, "server"),
    ]
    if gated:
        total.rows.append(Row("gated", gated, "server", note="refused by the server's rule"))
    if waiting:
        note = "collected and not applied when it was stopped"
        total.rows.append(Row("waiting at server", waiting, "server", note=note))
    total.rows += [
        Row(f"rejected at server: {reason}", count, "server")
        for reason, count in rejected.items()
        if count
    ]
    return total
