"""ATP §5.3.2, Figure 12: two jobs across a dumbbell, as far as an iteration's time gives it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from olaf.experiments import (
    Baseline,
    Bound,
    Chart,
    Column,
    Result,
    Row,
    Series,
    Spread,
    Table,
    Task,
)
from olaf.experiments.atp import cluster
from olaf.experiments.comparing import over
from olaf.scenarios.sums import Job

Arm = Literal["atp", "ring", "ps_n"]
ARMS: dict[Arm, str] = {"atp": "ATP", "ring": "ring", "ps_n": "N servers"}
WORKERS = 3
"""Of each job: one at the near end of the dumbbell, two at the far end."""
HOSTS = ([0, 2, 3], [1, 4, 5])
"""The hosts of each job; the first two are at the near end."""
ENDS = [2, 4]
"""Hosts at each end."""


class Parameters(cluster.Computation):
    """Two jobs of VGG16."""

    megabytes: float = Field(gt=0)
    """Bytes of the gradient, in millions."""
    rate_gbit: float = Field(gt=0)
    """Rate of each link, that of the dumbbell too."""
    delay_us: float = Field(ge=0)
    """Delay of each link."""
    window: int = Field(ge=1)
    """Packets of ATP on their way."""
    time_out_ms: int = Field(ge=1)
    """ATP's shortest time-out."""
    scale: float = Field(ge=1)
    """What bytes and rate are divided by."""
    iterations: int = Field(ge=1)
    """Iterations of a run."""


Runs = dict[Arm, list[list[Job]]]
"""Both jobs, one pair per seed."""


def run(task: Task[Parameters]) -> Result:
    """Train both jobs with every system."""
    given = task.parameters
    runs: Runs = {}
    for seed in task.each_seed():
        for arm, name in ARMS.items():
            task.say(f"seed {seed}: {name}")
            runs.setdefault(arm, []).append(train(given, arm, seed))
    return Result(
        rows=rows(task, runs),
        charts=[chart(given, runs)],
        tables=[table(given, runs)],
        bounds=[bound(given, runs)],
    )


def train(given: Parameters, arm: Arm, seed: int) -> list[Job]:
    """One run of both jobs."""
    rate_bps = round(given.rate_gbit * 1e9 / given.scale)
    network = {
        "racks": ENDS,
        "rate_bps": rate_bps,
        "trunk_rate_bps": rate_bps,
        "delay_ns": round(given.delay_us * 1e3),
    }
    begins = cluster.offsets_ns(seed, len(HOSTS), given.compute_ms() * 1e6)
    jobs = [
        {
            "name": f"job{at}",
            "workers": WORKERS,
            "hosts": hosts,
            "begin_ns": begin,
            "model_bytes": round(given.megabytes * 1e6 / given.scale),
            "iterations": given.iterations,
            **given.work(given.compute_ms()),
            **engine(given, arm),
        }
        for at, (hosts, begin) in enumerate(zip(HOSTS, begins, strict=True))
    ]
    return cluster.run(network, jobs, seed).jobs


def engine(given: Parameters, arm: Arm) -> dict[str, Any]:
    """What sums in an arm."""
    if arm == "atp":
        own = {"time_out_ms": given.time_out_ms}
        return {"engine": "atp", "window": given.window, "protocol": own}
    if arm == "ring":
        return {"engine": "ring"}
    return {"engine": "ps", "colocated": True, "servers": WORKERS}


def fastest(runs: Runs, arm: Arm) -> list[float]:
    """The time of the faster job, one per seed, ns."""
    return [min(job.iteration_ns for job in jobs) for jobs in runs[arm]]


def slowest(runs: Runs, arm: Arm) -> list[float]:
    """The time of the slower job, one per seed, ns."""
    return [max(job.iteration_ns for job in jobs) for jobs in runs[arm]]


def rows(task: Task[Parameters], runs: Runs) -> list[Row]:
    """ATP over the fastest job of the others, and how alike the jobs of a system are."""
    others: tuple[Arm, ...] = ("ps_n", "ring")
    made = [
        Row(
            quantity=f"speed-up of the time to accuracy over {ARMS[arm]}",
            where="the slower job of ATP over the faster other one",
            paper=task.paper[arm],
            ours=over(fastest(runs, arm), slowest(runs, "atp")),
            baseline=Baseline(name=ARMS[arm], paper=1, ours=1),
        )
        for arm in others
    ]
    made += [
        Row(
            quantity="slower job over the faster one, time of an iteration",
            where=name,
            paper=None if arm == "ps_n" else 1,
            ours=over(slowest(runs, arm), fastest(runs, arm)),
            headline=False,
            note="the paper: not the same" if arm == "ps_n" else "the paper: the same",
        )
        for arm, name in ARMS.items()
    ]
    return made


def bound(given: Parameters, runs: Runs) -> Bound:
    """What computation allows."""
    return Bound(
        quantity="speed-up over N servers",
        value=Spread.of(fastest(runs, "ps_n")).mean / 1e6 / given.compute_ms(),
        why="without any network an iteration takes its computation",
    )


def table(given: Parameters, runs: Runs) -> Table:
    """Every system."""
    return Table(
        title="Time of an iteration, ms",
        columns=[
            Column(name="system"),
            Column(name="faster job", digits=1),
            Column(name="slower job", digits=1),
            Column(name="computation", digits=1),
        ],
        rows=[
            [
                name,
                *(Spread.of([ns / 1e6 for ns in of(runs, arm)]) for of in (fastest, slowest)),
                given.compute_ms(),
            ]
            for arm, name in ARMS.items()
        ],
        note=f"Bytes and rate are divided by {given.scale:g}.",
    )


def chart(given: Parameters, runs: Runs) -> Chart:
    """A bar for each job and system."""

    def speed(ns: float) -> float:
        return given.images * 1e9 / ns

    bars = [
        Series(
            name=name,
            points=[
                (float(at), Spread.of([speed(ns) for ns in of(runs, arm)]).mean)
                for at, arm in enumerate(ARMS)
            ],
        )
        for name, of in (("faster job", fastest), ("slower job", slowest))
    ]
    alone = speed(given.compute_ms() * 1e6)
    free = Series(name="without a network", points=[(float(at), alone) for at in range(len(ARMS))])
    return Chart(
        title="Two jobs of VGG16 across a dumbbell",
        x="system",
        y="images a second of a worker",
        kind="bars",
        series=[*bars, free],
        ticks=list(ARMS.values()),
        from_zero=True,
    )
