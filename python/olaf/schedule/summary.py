"""The measures of a run of MINA's jobs: scores, use of the switches, migrations, costs.

Each comes from whole numbers by one division, or by a sum that rounds once: all platforms agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from olaf.schedule.simulation import Costs, JobOutcome, Outcome


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Size(_Data):
    """Jobs with this number of hosts."""

    hosts: int
    jobs: int
    score: float | None


class Trees(_Data):
    """Jobs by the trees that they had while they ran; the four counts sum to all jobs."""

    own: int
    """Jobs with a tree at some time, and never a conflict."""
    shared: int
    """Jobs with a tree that conflicted with another's at some time."""
    without: int
    """Jobs on two hosts or more that never had a tree."""
    one_host: int
    """Jobs on one host, with nothing to sum."""


class Migrations(_Data):
    """Changes of running jobs' trees."""

    per_job: float
    """All changes divided by the number of jobs."""
    moved: int
    """Changes from one tree to another."""
    gained: int
    """Trees that a job gained after its start."""
    lost: int


class Latency(_Data):
    """CPU time of single decisions, in milliseconds."""

    count: int
    median_ms: float
    p99_ms: float
    max_ms: float


class Cost(_Data):
    """The cost of computing the run: seconds of CPU, except for the latencies."""

    placement_s: float
    trees_s: float
    rest_s: float
    """The rest: the queue of events, sharing decisions."""
    placement: Latency
    """Latency of placing a job."""
    trees: Latency
    """Latency of choosing trees at an arrival."""


class Summary(_Data):
    """The measures of MINA §V-A, and some of ours; docs/reference/mina.md."""

    jobs: int
    score: float | None
    """(JCT_none - JCT) / (JCT_none - JCT_all), both summed over jobs; None if no job can gain."""
    score_by_hosts: float | None
    """The same, each job weighted by its hosts."""
    worst_decile: float | None
    """Mean score of the worst-off 10 % of the jobs that can gain."""
    sizes: list[Size]
    headroom: float
    """Largest possible saving: the share of the jobs' time without aggregation, summed over jobs,
    that is saved if the switches sum every all-reduce."""
    utilisation: float
    """Share of a job's running time in which the switches sum for it, mean over jobs."""
    utilisation_by_hosts: float
    utilisation_of_cluster: float
    """Share of all hosts' time, idle or not, in which the switches sum for them."""
    hosts_busy: float
    """Share of all hosts' time in which a job runs on them."""
    trees: Trees
    migrations: Migrations
    makespan_s: float
    operations: int
    operations_in_network: int
    events: int
    most_running: int


def summarize(outcome: Outcome, hosts: Sequence[int]) -> Summary:
    """The measures of a run. hosts: of each job, in order."""
    jobs = outcome.jobs
    each = list(zip(jobs, hosts, strict=True))
    cluster_ns = outcome.makespan_ns * outcome.hosts
    in_network = sum(job.in_network_ns * n for job, n in each)
    busy = sum((job.end_ns - job.start_ns) * n for job, n in each)
    return Summary(
        jobs=len(jobs),
        score=_score((job, 1) for job in jobs),
        score_by_hosts=_score(each),
        worst_decile=_worst_decile(jobs),
        sizes=[
            Size(
                hosts=size,
                jobs=sum(1 for n in hosts if n == size),
                score=_score((job, 1) for job, n in each if n == size),
            )
            for size in sorted(set(hosts))
        ],
        headroom=sum(_gain_ns(job) for job in jobs) / sum(job.none_ns for job in jobs),
        utilisation=_mean(job.in_network_ns / (job.end_ns - job.start_ns) for job in jobs),
        utilisation_by_hosts=in_network / busy,
        utilisation_of_cluster=in_network / cluster_ns,
        hosts_busy=busy / cluster_ns,
        trees=_trees(each),
        migrations=_migrations(jobs),
        makespan_s=outcome.makespan_ns / 1e9,
        operations=outcome.operations,
        operations_in_network=sum(job.operations_with for job in jobs),
        events=outcome.events,
        most_running=outcome.most_running,
    )


def cost(costs: Costs, cpu_s: float) -> Cost:
    """The cost of a run that took this much CPU time in all."""
    placement_s = sum(costs.placement_ns) / 1e9
    trees_s = (sum(costs.trees_ns) + sum(costs.leave_ns)) / 1e9
    return Cost(
        placement_s=placement_s,
        trees_s=trees_s,
        rest_s=max(cpu_s - placement_s - trees_s, 0.0),
        placement=_latency(costs.placement_ns),
        trees=_latency(costs.trees_ns),
    )


def _gain_ns(job: JobOutcome) -> int:
    return job.none_ns - job.all_ns


def _gained_ns(job: JobOutcome) -> int:
    return job.none_ns - (job.end_ns - job.start_ns)


def _score(jobs: Iterable[tuple[JobOutcome, int]]) -> float | None:
    gained = possible = 0
    for job, weight in jobs:
        gained += _gained_ns(job) * weight
        possible += _gain_ns(job) * weight
    return gained / possible if possible else None


def _worst_decile(jobs: Sequence[JobOutcome]) -> float | None:
    scores = sorted(_gained_ns(job) / _gain_ns(job) for job in jobs if _gain_ns(job))
    return _mean(scores[: math.ceil(len(scores) / 10)]) if scores else None


def _mean(values: Iterable[float]) -> float:
    """Rounded once: `math.fsum` is exact."""
    listed = list(values)
    return math.fsum(listed) / len(listed)


def _trees(jobs: Sequence[tuple[JobOutcome, int]]) -> Trees:
    many = [job for job, hosts in jobs if hosts > 1]
    shared = sum(1 for job in many if job.shared_ns)
    own = sum(1 for job in many if job.tree_ns and not job.shared_ns)
    return Trees(
        own=own,
        shared=shared,
        without=len(many) - own - shared,
        one_host=len(jobs) - len(many),
    )


def _migrations(jobs: Sequence[JobOutcome]) -> Migrations:
    moved = sum(job.moved for job in jobs)
    gained = sum(job.gained for job in jobs)
    lost = sum(job.lost for job in jobs)
    return Migrations(
        per_job=(moved + gained + lost) / len(jobs), moved=moved, gained=gained, lost=lost
    )


def _latency(ns: Sequence[int]) -> Latency:
    ordered = sorted(ns) or [0]

    def at(share: float) -> float:
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] / 1e6

    return Latency(count=len(ns), median_ms=at(0.5), p99_ms=at(0.99), max_ms=at(1))
