"""What both ends of each hop counted: datagrams that left, and datagrams that came.

A sender numbers its updates from 1 in each of its lives. The receiver counts the numbers that came
and those that it skipped, apart from the fates of the contributions. So a contribution that
vanished between two parties must be a number that the receiver never saw. Where it is not, one of
the two ends has miscounted, and the sums do not match.

For each life of a sender, with ``left`` and ``came`` datagrams:

=====================================================  ====================================
numbers that the sender used                           ``left`` + those it left out
numbers that never came                                before the first + missing + tail
``left - came``                                        the same, less those left out
contributions that were lost                           as many as datagrams, or more where
                                                       some datagrams hold several
contributions received, by fate                        those that came + unnumbered ones
=====================================================  ====================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from olaf.jobs.incarnation import Incarnation


@dataclass(frozen=True)
class Left:
    """What one life of a sender counted."""

    label: str
    life: int
    worker: int | None
    """None: a switch."""
    newest: int
    """Number of its last datagram; 0: none left."""
    left_out: int
    datagrams: int
    contributions: int
    final: bool
    joined: int | None = None
    """Most contributions that shared a datagram with others; None: not bounded."""


@dataclass
class Hop:
    """What is known of one hop after all lives of its senders."""

    lost: int = 0
    """Datagrams that left and did not come."""
    tail: int = 0
    """Those of them after the last one that came: the receiver cannot know of them."""
    late: int = 0
    forgotten: int = 0
    """Lives that the receivers forgot: nothing is compared then."""

    @property
    def note(self) -> str:
        """How the receiver knows of the losses."""
        if not self.lost:
            return ""
        seen = self.lost - self.tail
        return f"numbers that never came: {seen} skipped, {self.tail} after the last that came"


def workers_left(workers: Iterable[Incarnation]) -> list[Left]:
    """What workers counted; workers over TCP number nothing."""
    return [
        Left(
            one.label,
            one.stats["session"],
            one.stats["worker"],
            one.stats["hop_sequence"],
            0,
            one.stats["datagrams"],
            one.stats["sent"],
            one.final,
            one.stats["carried"],
        )
        for one in workers
        if "hop_sequence" in one.stats
    ]


def switches_left(switches: Iterable[Incarnation], job: int) -> list[Left]:
    """What switches counted of a job's updates."""
    return [
        Left(
            one.label,
            one.stats["epoch"],
            None,
            left["hop_sequence"],
            left["left_out"],
            left["datagrams"],
            left["contributions"],
            one.final,
        )
        for one in switches
        for left in one.stats.get("departed", [])
        if left["job"] == job
    ]


def compare(
    name: str,
    senders: Sequence[Left],
    receivers: Sequence[Incarnation],
    job: int,
    discrepancies: list[str],
) -> Hop:
    """Compare both ends of one hop, life by life. Disagreements are added to ``discrepancies``.

    Nothing is compared with a party that was killed: it counted on after its last report.
    """
    hop = Hop()
    told = [one for one in receivers if "arrivals" in one.stats]
    forgotten = sum(one.stats["arrivals"]["forgotten"] for one in told)
    unnumbered = sum(one.stats["arrivals"]["unnumbered"] for one in told)
    hop.forgotten = forgotten
    complete = len(told) == len(receivers) and all(one.final for one in receivers)
    lives: dict[tuple[int, int | None], list[Mapping[str, Any]]] = {}
    for one in told:
        for life in one.stats["arrivals"]["hops"]:
            if life["job"] == job:
                lives.setdefault((life["life"], life["worker"]), []).append(life)
    for sender in senders:
        came = lives.get((sender.life, sender.worker), [])
        if not sender.final or not told:
            continue
        where = f"{sender.label} to {name}"
        if sender.newest != sender.datagrams + sender.left_out:
            discrepancies.append(
                f"{sender.label}: {sender.datagrams} datagrams left, and the last one has number "
                f"{sender.newest - sender.left_out}"
            )
        shared = sender.contributions - sender.datagrams
        if shared < 0 or (sender.joined is not None and shared > sender.joined):
            discrepancies.append(
                f"{sender.label}: {sender.contributions} contributions left in {sender.datagrams} "
                f"datagrams, and {sender.joined or 0} were carried with others"
            )
        _check_life(where, sender, came, discrepancies)
        if not complete or forgotten:
            continue
        hop.late += sum(life["late"] for life in came)
        lost = sender.datagrams - sum(life["datagrams"] for life in came)
        newest = max((life["newest"] for life in came), default=0)
        hop.lost += lost
        hop.tail += sender.newest - newest
        _check_contributions(where, sender, came, unnumbered, discrepancies)
    return hop


def _check_life(
    where: str, sender: Left, came: Sequence[Mapping[str, Any]], discrepancies: list[str]
) -> None:
    """The receiver saw no number that was not used, and each number between was skipped or came."""
    for life in came:
        if life["newest"] > sender.newest:
            discrepancies.append(
                f"{where}: number {life['newest']} came, and the last that left was {sender.newest}"
            )
        span = life["newest"] - life["first"] + 1
        if span != life["datagrams"] + life["missing"]:
            discrepancies.append(
                f"{where}: {life['datagrams']} datagrams came and {life['missing']} were skipped, "
                f"of {span} numbers"
            )
    total = sum(life["datagrams"] for life in came)
    if total > sender.datagrams:
        discrepancies.append(f"{where}: {sender.datagrams} datagrams left, and {total} came")


def _check_contributions(
    where: str,
    sender: Left,
    came: Sequence[Mapping[str, Any]],
    unnumbered: int,
    discrepancies: list[str],
) -> None:
    """Contributions were lost with datagrams, one with each or more, and never without."""
    lost = sender.datagrams - sum(life["datagrams"] for life in came)
    gone = sender.contributions - sum(life["contributions"] for life in came)
    # Datagrams of this sender may have come while the receiver did not know it.
    least, most = lost, lost
    if lost > 0:
        most += sender.contributions - sender.datagrams
        least -= min(unnumbered, lost)
    if not least <= gone <= most:
        discrepancies.append(
            f"{where}: {gone} of {sender.contributions} contributions are lost, but {lost} of "
            f"{sender.datagrams} datagrams"
        )


def check_departures(one: Incarnation, found: list[str]) -> None:
    """What left a switch, by job, is what left by fate."""
    departed = one.stats.get("departed")
    if departed is None:
        return
    fates = one.stats["fates"]
    by_fate = fates["sent_alone"] + fates["merged"]
    by_job = sum(left["contributions"] for left in departed)
    if by_job != by_fate:
        found.append(f"{one.label}: {by_fate} contributions left by fate, {by_job} by job")
    datagrams = sum(left["datagrams"] for left in departed)
    if datagrams != one.stats["departures"]:
        found.append(
            f"{one.label}: {one.stats['departures']} datagrams left by fate, {datagrams} by job"
        )


def check_fates(one: Incarnation, received: int, job: int | None, found: list[str]) -> None:
    """Contributions that a receiver counted by number are those that it counted by fate.

    received: by fate, without duplicates. job: None for all jobs.
    """
    arrivals = one.stats.get("arrivals")
    if arrivals is None:
        return
    jobs = {life["job"] for life in arrivals["hops"]}
    if job is not None and jobs - {job}:
        return  # What is unnumbered or forgotten is not known by job.
    by_number = sum(life["contributions"] for life in arrivals["hops"])
    by_number += arrivals["unnumbered"] + arrivals["forgotten_contributions"]
    if by_number != received:
        found.append(
            f"{one.label}: {received} contributions received by fate, {by_number} by number"
        )
