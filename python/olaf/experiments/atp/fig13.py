"""ATP §5.4.1, Figure 13 a: static and dynamic allocation as aggregators become few."""

from __future__ import annotations

from typing import Annotated, Literal

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

Arm = Literal["static", "window", "hashed"]
ARMS: dict[Arm, str] = {
    "static": "static",
    "window": "dynamic, our indices",
    "hashed": "dynamic, the paper's hash",
}


class Parameters(cluster.Training):
    """Three jobs of VGG16 (ATP §5.4.1)."""

    jobs: int = Field(ge=2, le=64)
    """Jobs, all alike."""
    workers: int = Field(ge=1, le=32)
    """Workers of each job."""
    iterations: int = Field(ge=2)
    """Iterations of a run."""
    warm_up: int = Field(ge=0)
    """Iterations that are not counted."""
    shares: list[Annotated[float, Field(gt=0, le=100)]] = Field(min_length=2)
    """Aggregators, in percent of those that fill the link; the first is the full number."""


Runs = dict[tuple[Arm, float], list[Outcome]]
"""By arm and share, one per seed."""


def run(task: Task[Parameters]) -> Result:
    """Every share of the aggregators, in every way."""
    given = task.parameters
    runs: Runs = {}
    for seed in task.each_seed():
        for share in given.shares:
            for arm, name in ARMS.items():
                task.say(f"seed {seed}: {share:g} % of the aggregators, {name}")
                runs.setdefault((arm, share), []).append(train(given, share, arm, seed))
    return Result(
        rows=rows(task, runs),
        charts=[chart(given, runs)],
        tables=[table(given, runs)],
        bounds=bounds(given),
        differences=arithmetic(given, runs),
    )


def train(given: Parameters, share: float, arm: Arm, seed: int) -> Outcome:
    """One run of all jobs."""
    begins = cluster.offsets_ns(seed, given.jobs, given.compute_ms() * 1e6)
    jobs = [
        {
            **given.job(f"job{at}", given.iterations),
            "workers": given.workers,
            "hosts": list(range(at * given.workers, (at + 1) * given.workers)),
            "begin_ns": begin,
            "protocol": given.protocol(arm, at, given.jobs),
        }
        for at, begin in enumerate(begins)
    ]
    network = given.network(given.jobs * given.workers, given.scale())
    aggregators = given.share_of(given.aggregators * share / 100)
    return cluster.run(network, jobs, seed, aggregators=aggregators)


def speeds(given: Parameters, runs: Runs, arm: Arm, share: float) -> list[float]:
    """Images a second of a worker, the mean over the jobs, one per seed."""
    made = []
    for outcome in runs[arm, share]:
        each = [
            given.images * 1e9 / cluster.iteration_ns(job, given.warm_up) for job in outcome.jobs
        ]
        made.append(sum(each) / len(each))
    return made


def ratios(
    given: Parameters, runs: Runs, than: tuple[Arm, float], one: tuple[Arm, float]
) -> Spread:
    """How many times as fast one arm at one share is as another."""
    return over(speeds(given, runs, *one), speeds(given, runs, *than))


def rows(task: Task[Parameters], runs: Runs) -> list[Row]:
    """Dynamic over static, and what few aggregators cost."""
    given = task.parameters
    full, least = given.shares[0], given.shares[-1]
    dynamic: tuple[Arm, ...] = ("window", "hashed")
    made = [
        Row(
            quantity=f"images a second over static, {least:g} % of the aggregators",
            where=ARMS[arm],
            paper=task.paper["speed_up"],
            ours=ratios(given, runs, ("static", least), (arm, least)),
            baseline=Baseline(name="static", paper=1, ours=1),
            goal=Goal(at_least=task.paper["speed_up"]) if arm == "window" else None,
        )
        for arm in dynamic
    ]
    made += [
        Row(
            quantity=f"images a second over static, {full:g} % of the aggregators",
            where=ARMS[arm],
            ours=ratios(given, runs, ("static", full), (arm, full)),
            headline=False,
            note="the paper: similar",
        )
        for arm in dynamic
    ]
    made += [
        Row(
            quantity=f"images a second at {share:g} % over those at {full:g} %",
            where=name,
            paper=task.paper["half"] if share == 50 and arm != "static" else None,
            note="the paper: 5 to 10 % less" if share == 50 and arm != "static" else "",
            ours=ratios(given, runs, (arm, full), (arm, share)),
            goal=Goal(at_least=0.9) if (arm, share) == ("window", 50) else None,
            headline=share == 50,
        )
        for share in given.shares[1:]
        for arm, name in ARMS.items()
    ]
    return made


def at_server(runs: Runs, arm: Arm, share: float) -> list[float]:
    """The share of the workers' packets that the server added alone, one per seed."""
    return [
        outcome.jobs[0].at_server / sum(job.packets + job.resent for job in outcome.jobs)
        for outcome in runs[arm, share]
    ]


def busy(runs: Runs, arm: Arm, share: float) -> list[float]:
    """The share of the time in which the link to the server is busy, one per seed."""
    return [
        next(link.busy for link in outcome.links if link.name == "rack0 to server0")
        for outcome in runs[arm, share]
    ]


def arithmetic(given: Parameters, runs: Runs) -> list[str]:
    """Why half of the aggregators cost more here than in the paper."""
    full, half = given.shares[0], 50.0
    if half not in given.shares:
        return []
    parts = []
    for share in (full, half):
        alone = Spread.of(at_server(runs, "window", share)).mean
        frames = 1 - alone + alone * given.workers
        link = Spread.of(busy(runs, "window", share)).mean
        parts.append((share, alone, frames, link))
    text = "; ".join(
        f"at {share:g} % of the aggregators {100 * alone:.0f} % of the packets go to the server "
        f"alone, so that its link carries {frames:.2f} frames for a fragment and is busy "
        f"{100 * link:.0f} % of the time"
        for share, alone, frames, link in parts
    )
    (_, _, few, before), (_, _, many, after) = parts
    return [
        f"What half of the aggregators cost: {text}. Fragments go as the link is busy, over frames "
        f"for each: {after:.2f} / {many:.2f} over {before:.2f} / {few:.2f} is "
        f"{after / many / (before / few):.2f}. The jobs here want the link nearly all the time, so "
        "that few aggregators are free because a job computes. The paper's jobs lose 5 to 10 %."
    ]


def bounds(given: Parameters) -> list[Bound]:
    """What computation and the server's link allow."""
    line_ms = given.megabytes * 8 / given.rate_gbit * cluster.FRAME_BYTES / cluster.PACKET_BYTES
    return [
        Bound(
            quantity="images a second of a worker",
            value=given.images / given.compute_ms() * 1e3,
            why="without any network a worker computes all the time",
        ),
        Bound(
            quantity=f"images a second of a worker, {given.jobs} jobs",
            value=given.images / (line_ms * given.jobs) * 1e3,
            why=(
                f"with every sum in the switch, {given.jobs} gradients with headers take "
                f"{line_ms * given.jobs:.0f} ms of the server's link"
            ),
        ),
    ]


def table(given: Parameters, runs: Runs) -> Table:
    """Every run."""

    def each(arm: Arm, share: float, name: str) -> Spread:
        return Spread.of(
            [
                sum(getattr(job, name) for job in outcome.jobs) / len(outcome.jobs) / 1e6
                for outcome in runs[arm, share]
            ]
        )

    def percent(shares: list[float]) -> Spread:
        return Spread.of([100 * share for share in shares])

    return Table(
        title="Every share of the aggregators",
        columns=[
            Column(name="aggregators, %", digits=0),
            Column(name="allocation"),
            Column(name="images a second", digits=1),
            Column(name="compute, ms", digits=1),
            Column(name="wait, ms", digits=1),
            Column(name="sum, ms", digits=1),
            Column(name="added by the server, %", digits=1),
            Column(name="server's link busy, %", digits=1),
        ],
        rows=[
            [
                share,
                name,
                Spread.of(speeds(given, runs, arm, share)),
                each(arm, share, "compute_ns"),
                each(arm, share, "wait_ns"),
                each(arm, share, "aggregation_ns"),
                percent(at_server(runs, arm, share)),
                percent(busy(runs, arm, share)),
            ]
            for share in given.shares
            for arm, name in ARMS.items()
        ],
        note=(
            "Means over the jobs. wait and sum: the time that a sum takes after the end of the "
            "computation. added by the server: packets of single workers that no switch had added. "
            f"Bytes and rate are divided by {given.scale():.0f}; a link's delay is "
            f"{given.delay_ns(given.scale()) / 1e6:.2f} ms."
        ),
    )


def chart(given: Parameters, runs: Runs) -> Chart:
    """A line for each way."""
    lines = []
    for arm, name in ARMS.items():
        spreads = [Spread.of(speeds(given, runs, arm, share)) for share in given.shares]
        lines.append(line(name, given.shares, spreads))
    return Chart(
        title="Three jobs of VGG16, and fewer and fewer aggregators",
        x="aggregators, % of those that fill the link",
        y="images a second of a worker",
        series=lines,
        from_zero=True,
        marked=True,
    )
