"""One scenario over several seeds: means and spreads by group, fates summed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from olaf.scenarios.outcome import Cluster, Fates, Outcome, Switch
from olaf.statistics.spread import Spread

NS_PER_MS = 1e6


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class GroupSummary(_Data):
    """Equal clusters. A spread has a value for each seed that has one."""

    name: str
    clusters: int
    age_mean_ms: Spread | None
    """Mean over the clusters of each one's time-average age."""
    age_peak_mean_ms: Spread | None
    """Mean over the clusters of each cluster's mean peak."""
    age_peak_max_ms: Spread | None
    """The highest peak of any cluster."""
    worst_age_mean_ms: Spread | None
    """The largest time-average age of a cluster."""
    worst_cluster: int | None
    """That cluster, in the seed with the largest value."""
    worker_age_mean_ms: Spread | None
    """Mean over the clusters' workers of each worker's own age."""
    clusters_unheard: int
    """Clusters without any delivery, over all seeds."""
    workers_unheard: int
    """Workers without any delivery, over all seeds."""


class Summary(_Data):
    """The result of a scenario."""

    seeds: list[int]
    groups: list[GroupSummary]
    fairness: Spread | None
    """Jain's index; seeds without any delivery are left out."""
    loss_packets: Spread
    loss_contributions: Spread
    probability_mean: Spread
    packets_sent: int
    packets_dropped: int
    packets_merged: int
    packets_delivered: int
    fates: Fates
    """Summed over the seeds."""
    fates_match: bool
    """True if ``generated`` is the sum of all others."""
    switches: list[Switch]
    """Summed over the seeds."""


def summarize(seeds: Sequence[int], outcomes: Sequence[Outcome]) -> Summary:
    """Combine the results of the same scenario with each seed."""
    names = dict.fromkeys(cluster.group for cluster in outcomes[0].clusters)
    fates = Fates(**_sums([outcome.fates for outcome in outcomes]))
    parts = fates.model_dump(exclude={"generated"})
    return Summary(
        seeds=list(seeds),
        groups=[_group(name, outcomes) for name in names],
        fairness=_spread(outcome.fairness for outcome in outcomes),
        loss_packets=Spread.of([outcome.loss_packets for outcome in outcomes]),
        loss_contributions=Spread.of([outcome.loss_contributions for outcome in outcomes]),
        probability_mean=Spread.of([outcome.probability_mean for outcome in outcomes]),
        packets_sent=sum(outcome.packets_sent for outcome in outcomes),
        packets_dropped=sum(outcome.packets_dropped for outcome in outcomes),
        packets_merged=sum(outcome.packets_merged for outcome in outcomes),
        packets_delivered=sum(outcome.packets_delivered for outcome in outcomes),
        fates=fates,
        fates_match=fates.generated == sum(parts.values()),
        switches=[
            Switch(name=switches[0].name, **_sums(switches))
            for switches in zip(*(outcome.switches for outcome in outcomes), strict=True)
        ],
    )


def group_mean(outcome: Outcome, group: str, of: Callable[[Cluster], float | None]) -> float | None:
    """The mean of a value over a group's clusters that have it."""
    values = [of(cluster) for cluster in outcome.clusters if cluster.group == group]
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _group(name: str, outcomes: Sequence[Outcome]) -> GroupSummary:
    def means(of: Callable[[Cluster], float | None]) -> Spread | None:
        return _spread(_ms(group_mean(outcome, name, of)) for outcome in outcomes)

    def highest(of: Callable[[Cluster], float | None]) -> Spread | None:
        values = ([of(cluster) for cluster in own] for own in by_seed)
        return _spread(
            _ms(max((v for v in some if v is not None), default=None)) for some in values
        )

    by_seed = [[c for c in outcome.clusters if c.group == name] for outcome in outcomes]
    every = [cluster for own in by_seed for cluster in own]
    worst = max(
        ((c.age_mean_ns, c.cluster) for c in every if c.age_mean_ns is not None), default=None
    )
    return GroupSummary(
        name=name,
        clusters=len(by_seed[0]),
        age_mean_ms=means(lambda c: c.age_mean_ns),
        age_peak_mean_ms=means(lambda c: c.age_peak_mean_ns),
        age_peak_max_ms=highest(lambda c: c.age_peak_max_ns),
        worst_age_mean_ms=highest(lambda c: c.age_mean_ns),
        worst_cluster=None if worst is None else worst[1],
        worker_age_mean_ms=means(lambda c: c.worker_age_mean_ns),
        clusters_unheard=sum(c.packets == 0 for c in every),
        workers_unheard=sum(c.workers_unheard for c in every),
    )


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / NS_PER_MS


def _spread(values: Iterable[float | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    return Spread.of(known) if known else None


def _sums(counts: Sequence[BaseModel]) -> dict[str, int]:
    """Counters summed by name; values that are not numbers are left out."""
    tables = [one.model_dump() for one in counts]
    numbers = [key for key, value in tables[0].items() if isinstance(value, int)]
    return {key: sum(table[key] for table in tables) for key in numbers}
