"""Where every contribution of a run ended, from the counters of those who saw it.

The sender counts what it pushed, the switch what it did with what came, the server what was
delivered. What lies between two parties is the difference of their counters: zero, or lost on the
way. A party that was killed takes with it what it did after its last report; then a difference is
all there is, over the hops it touched, and the row says so. Nothing is adjusted: a difference that
cannot be is reported as a discrepancy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Stats = Mapping[str, Any]


@dataclass(frozen=True)
class Incarnation:
    """The last report of one process, and whether that was its last word."""

    name: str
    number: int
    stats: Stats
    final: bool
    """True for the report at a clean end (or of a process that still runs): nothing came after."""

    @property
    def label(self) -> str:
        """``switch #1``."""
        return f"{self.name} #{self.number}"


@dataclass(frozen=True)
class Row:
    """One fate and how many contributions met it."""

    fate: str
    count: int
    counted: str
    """Who counted: ``workers``, ``switch``, ``server``, or ``difference``."""
    lost: bool = False
    """Whether the design calls this a loss: dropped or lost."""
    note: str = ""


@dataclass(frozen=True)
class Accounts:
    """All fates of a run."""

    pushed: int
    rows: list[Row]
    discrepancies: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Sum of all fates."""
        return sum(row.count for row in self.rows)

    @property
    def matches(self) -> bool:
        """Every contribution has exactly one fate, at every hop."""
        return self.total == self.pushed and not self.discrepancies

    @property
    def lost(self) -> int:
        """Contributions dropped or lost."""
        return sum(row.count for row in self.rows if row.lost)

    @property
    def loss(self) -> float | None:
        """Dropped or lost, over sent (the design's word); None before anything was sent."""
        unsent = sum(r.count for r in self.rows if r.fate in ("replaced at worker", "unsent"))
        sent = self.pushed - unsent
        return self.lost / sent if sent > 0 else None

    def count(self, fate: str) -> int:
        """Contributions that met this fate; fates with reasons are summed."""
        return sum(r.count for r in self.rows if r.fate == fate or r.fate.startswith(fate + ":"))

    def to_json(self) -> dict[str, Any]:
        """As written to run.json."""
        return {
            "pushed": self.pushed,
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


def settle(
    workers: Sequence[Incarnation],
    switches: Sequence[Incarnation],
    servers: Sequence[Incarnation],
    job: int = 1,
) -> Accounts:
    """Draw up the accounts from the last report of every incarnation of every process."""
    discrepancies: list[str] = []
    sent = _workers(workers, discrepancies)
    queue = _switches(switches, discrepancies)
    result = _servers(servers, job, discrepancies)

    killed = [i.label for i in (*workers, *switches, *servers) if not i.final]
    killed_before = [i.label for i in (*workers, *switches) if not i.final]
    killed_switch = [i.label for i in switches if not i.final]
    rows: list[Row] = []
    if sent.replaced:
        rows.append(Row("replaced at worker", sent.replaced, "workers"))
    if sent.unsent:
        rows.append(Row("unsent", sent.unsent, "workers", note="still with a worker at its end"))
    handed = sent.pushed - sent.replaced - sent.unsent
    if killed_switch:
        # Its queue, and what it did after its last report, are gone: one difference over both hops.
        missing = handed - queue.settled_here - queue.waiting - result.received
        rows += _difference(
            f"lost with {', '.join(killed)}",
            missing,
            "sent by workers, less all that was counted elsewhere: what was in the queue then, "
            "on the way, or done after the last report",
            discrepancies,
        )
        rows += queue.rows
    else:
        rows += _difference(
            "lost worker to switch" if not killed_before else f"lost with {', '.join(killed)}",
            handed - queue.received,
            "" if not killed_before else "includes what a killed worker sent after it last reported",
            discrepancies,
            excusable=bool(killed_before),
        )
        rows += queue.rows
        killed_servers = [i.label for i in servers if not i.final]
        rows += _difference(
            f"lost with {', '.join(killed_servers)}" if killed_servers else "lost switch to server",
            queue.departed - result.received,
            "includes what a killed server took in after it last reported"
            if killed_servers
            else "",
            discrepancies,
        )
    rows += result.rows
    return Accounts(sent.pushed, rows, discrepancies)


def _difference(
    fate: str, count: int, note: str, discrepancies: list[str], *, excusable: bool = False
) -> list[Row]:
    if count < 0 and not excusable:
        discrepancies.append(f"{fate}: {-count} more arrived than were sent")
    if count < 0 and excusable:
        fate, note = "sent after the last report", "by a killed worker; not among the pushed"
    if count or not fate.startswith("lost w") or "#" not in fate:
        return [Row(fate, count, "difference", lost=True, note=note)]
    return []


@dataclass
class _Sent:
    pushed: int = 0
    replaced: int = 0
    unsent: int = 0


def _workers(workers: Sequence[Incarnation], discrepancies: list[str]) -> _Sent:
    total = _Sent()
    for one in workers:
        stats = one.stats
        total.pushed += stats["contributions"]
        total.replaced += stats["replaced_unsent"]
        # What a killed worker had not sent when it last spoke may have gone out since: it belongs
        # to the difference between workers and switch.
        total.unsent += stats["unsent"] if one.final else 0
        if stats["contributions"] != stats["sent"] + stats["replaced_unsent"] + stats["unsent"]:
            discrepancies.append(f"{one.label}: contributions != sent + replaced + unsent")
    return total


@dataclass
class _Queue:
    received: int = 0
    departed: int = 0
    waiting: int = 0
    settled_here: int = 0
    rows: list[Row] = field(default_factory=list)


def _switches(switches: Sequence[Incarnation], discrepancies: list[str]) -> _Queue:
    total = _Queue()
    ended: dict[str, int] = {"replaced": 0, "filtered": 0}
    for one in switches:
        fates = one.stats["fates"]
        total.received += one.stats["received"]
        departed = fates["sent_alone"] + fates["merged"]
        total.departed += departed
        here = fates["replaced"] + fates["filtered"]
        ended["replaced"] += fates["replaced"]
        ended["filtered"] += fates["filtered"]
        for fate in ("dropped", "rejected"):
            for reason, count in fates[fate].items():
                here += count
                key = f"{fate}: {reason}"
                ended[key] = ended.get(key, 0) + count
        total.settled_here += here
        if one.final:
            total.waiting += fates["waiting"]
        if one.stats["received"] != departed + here + fates["waiting"]:
            discrepancies.append(f"{one.label}: received != sum of fates")
    total.rows = [
        Row(fate, count, "switch", lost=fate.startswith("dropped"))
        for fate, count in ended.items()
        if count or ":" not in fate
    ]
    if "dropped" not in {row.fate.partition(":")[0] for row in total.rows}:
        total.rows.append(Row("dropped", 0, "switch", lost=True))
    if total.waiting:
        total.rows.append(
            Row("waiting", total.waiting, "switch", note="in the queue when it was stopped")
        )
    return total


@dataclass
class _Result:
    received: int = 0
    rows: list[Row] = field(default_factory=list)


def _servers(servers: Sequence[Incarnation], job: int, discrepancies: list[str]) -> _Result:
    total = _Result()
    alone = merged = gated = 0
    rejected: dict[str, int] = {}
    for one in servers:
        for served in one.stats["jobs"]:
            if served["job"] != job:
                continue
            fates = served["fates"]
            total.received += served["received"]
            alone += fates["delivered_alone"]
            merged += fates["delivered_merged"]
            gated += fates["gated"]
            counted = fates["delivered_alone"] + fates["delivered_merged"] + fates["gated"]
            for reason, count in fates["rejected"].items():
                counted += count
                rejected[reason] = rejected.get(reason, 0) + count
            if counted != served["received"]:
                discrepancies.append(f"{one.label}: received != sum of fates")
    total.rows = [
        Row("delivered alone", alone, "server"),
        Row("delivered merged", merged, "server"),
    ]
    if gated:
        total.rows.append(Row("gated", gated, "server", note="refused by the server's rule"))
    total.rows += [
        Row(f"rejected at server: {reason}", count, "server")
        for reason, count in rejected.items()
        if count
    ]
    return total
