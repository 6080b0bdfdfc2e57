"""ATP §5.4.2, Figure 14: four ways to find an aggregator, for one to eight jobs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from olaf.experiments import (
    Baseline,
    Bound,
    Chart,
    Column,
    Goal,
    Result,
    Row,
    Spread,
    Table,
    Task,
)
from olaf.experiments.atp import cluster
from olaf.experiments.comparing import line, over
from olaf.scenarios.sums import Outcome

Arm = Literal["hashed", "window", "linear", "static"]
ARMS: dict[Arm, str] = {
    "hashed": "the paper's hash",
    "window": "our indices",
    "linear": "in sequence",
    "static": "static",
}


class Parameters(cluster.Testbed):
    """The microbenchmark of several jobs (ATP §5.1, §5.4.2)."""

    jobs: list[Annotated[int, Field(ge=1, le=64)]] = Field(min_length=1)
    """Numbers of jobs."""
    workers: int = Field(ge=1, le=32)
    """Workers of each job."""
    megabytes: float = Field(gt=0)
    """Bytes of a sum, in millions."""
    sums: int = Field(ge=2)
    """Sums of a run."""
    warm_up: int = Field(ge=0)
    """Sums that are not counted."""


Runs = dict[tuple[Arm, int], list[Outcome]]
"""By arm and number of jobs, one per seed."""


def run(task: Task[Parameters]) -> Result:
    """Every number of jobs, in every way."""
    given = task.parameters
    runs: Runs = {}
    for seed in task.each_seed():
        for jobs in given.jobs:
            for arm, name in ARMS.items():
                task.say(f"seed {seed}: {jobs} jobs, {name}")
                runs.setdefault((arm, jobs), []).append(aggregate(given, jobs, arm, seed))
    return Result(
        rows=rows(given, runs),
        charts=[chart(given, runs)],
        tables=[table(given, runs)],
        bounds=[bound(given)],
    )


def aggregate(given: Parameters, count: int, arm: Arm, seed: int) -> Outcome:
    """One run of that many jobs."""
    one_ns = given.megabytes * 8e6 / given.rate_gbit
    jobs: list[dict[str, Any]] = [
        {
            "name": f"job{at}",
            "engine": "atp",
            "workers": given.workers,
            "hosts": list(range(at * given.workers, (at + 1) * given.workers)),
            "model_bytes": round(given.megabytes * 1e6),
            "iterations": given.sums,
            "begin_ns": begin,
            "compute_ns": 0,
            "protocol": given.protocol(arm, at, count),
        }
        for at, begin in enumerate(cluster.offsets_ns(seed, count, one_ns))
    ]
    network = given.network(count * given.workers)
    return cluster.run(network, jobs, seed, aggregators=given.share_of(given.aggregators))


def goodputs(given: Parameters, runs: Runs, arm: Arm, jobs: int) -> list[float]:
    """Gbit/s of each job, the mean over the jobs, one per seed."""
    bits = given.megabytes * 8e6
    made = []
    for outcome in runs[arm, jobs]:
        each = [bits / cluster.iteration_ns(job, given.warm_up) for job in outcome.jobs]
        made.append(sum(each) / len(each))
    return made


def ratio(given: Parameters, runs: Runs, arm: Arm, other: Arm) -> Spread:
    """How many times the goodput of another arm, with the most jobs."""
    most = given.jobs[-1]
    return over(goodputs(given, runs, arm, most), goodputs(given, runs, other, most))


def rows(given: Parameters, runs: Runs) -> list[Row]:
    """With the most jobs: over static, and over the sequence."""
    most = given.jobs[-1]
    made = []
    dynamic: tuple[Arm, ...] = ("hashed", "window")
    for arm in dynamic:
        made += [
            Row(
                quantity=f"goodput over static, {most} jobs",
                where=ARMS[arm],
                ours=ratio(given, runs, arm, "static"),
                goal=Goal(at_least=0.95),
                note="the paper: matches",
            ),
            Row(
                quantity=f"goodput over the sequence, {most} jobs",
                where=ARMS[arm],
                ours=ratio(given, runs, arm, "linear"),
                baseline=Baseline(name="in sequence", ours=1),
                direction="above",
                goal=Goal(at_least=0.95),
            ),
        ]
    return made


def bound(given: Parameters) -> Bound:
    """What the server's link allows."""
    share = cluster.PACKET_BYTES / cluster.FRAME_BYTES
    most = given.jobs[-1]
    return Bound(
        quantity=f"goodput of each of {most} jobs",
        value=given.rate_gbit * share / most,
        unit="Gbit/s",
        why=f"with every sum in the switch; {100 * share:.0f} % of a frame are values",
    )


def table(given: Parameters, runs: Runs) -> Table:
    """Every run."""

    def percent(arm: Arm, jobs: int, name: Literal["at_server", "collisions"]) -> Spread:
        made = []
        for outcome in runs[arm, jobs]:
            packets = sum(job.packets + job.resent for job in outcome.jobs)
            made.append(100 * getattr(outcome.jobs[0], name) / packets)
        return Spread.of(made)

    return Table(
        title="Every number of jobs",
        columns=[
            Column(name="jobs", digits=0),
            Column(name="aggregators"),
            Column(name="goodput of a job, Gbit/s", digits=2),
            Column(name="found it taken, %", digits=2),
            Column(name="added by the server, %", digits=2),
            Column(name="sent again, %", digits=2),
        ],
        rows=[
            [
                jobs,
                name,
                Spread.of(goodputs(given, runs, arm, jobs)),
                percent(arm, jobs, "collisions"),
                percent(arm, jobs, "at_server"),
                Spread.of(
                    [
                        100
                        * sum(job.resent for job in outcome.jobs)
                        / sum(job.packets for job in outcome.jobs)
                        for outcome in runs[arm, jobs]
                    ]
                ),
            ]
            for jobs in given.jobs
            for arm, name in ARMS.items()
        ],
        note=f"A link's delay is {given.delay_ns() / 1e3:.1f} us.",
    )


def chart(given: Parameters, runs: Runs) -> Chart:
    """A line for each way."""
    lines = []
    for arm, name in ARMS.items():
        spreads = [Spread.of(goodputs(given, runs, arm, jobs)) for jobs in given.jobs]
        lines.append(line(name, given.jobs, spreads))
    return Chart(
        title="Four ways to find an aggregator",
        x="jobs",
        y="goodput of a job, Gbit/s",
        series=lines,
        from_zero=True,
        marked=True,
    )
