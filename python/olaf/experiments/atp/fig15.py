"""ATP §5.5, Figure 15: a job with half of its aggregators, with and without congestion control."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from olaf.experiments import Baseline, Chart, Column, Result, Row, Spread, Table, Task
from olaf.experiments.atp import cluster
from olaf.experiments.comparing import line, over
from olaf.scenarios.sums import Outcome

Arm = Literal["halve", "queue", "off"]
ARMS: dict[Arm, str] = {
    "halve": "the paper's control",
    "queue": "our control",
    "off": "without control",
}


class Parameters(cluster.Training):
    """One job of VGG16 with few aggregators."""

    workers: int = Field(ge=1, le=32)
    """Workers."""
    iterations: int = Field(ge=1)
    """Iterations of a run."""
    share: float = Field(gt=0, le=100)
    """Aggregators, in percent of those that fill the link."""


Runs = dict[Arm, list[Outcome]]
"""One per seed."""


def run(task: Task[Parameters]) -> Result:
    """Train in every way."""
    given = task.parameters
    runs: Runs = {arm: [] for arm in ARMS}
    for seed in task.each_seed():
        for arm, name in ARMS.items():
            task.say(f"seed {seed}: {name}")
            runs[arm].append(train(given, arm, seed))
    return Result(rows=rows(task, runs), charts=[chart(given, runs)], tables=[table(given, runs)])


def train(given: Parameters, arm: Arm, seed: int) -> Outcome:
    """One run."""
    job = {
        **given.job("job", given.iterations),
        "workers": given.workers,
        "protocol": {**given.protocol("window", 0, 1), "congestion": arm},
    }
    network = given.network(given.workers, given.scale())
    aggregators = given.share_of(given.aggregators * given.share / 100)
    return cluster.run(network, [job], seed, aggregators=aggregators)


def speeds(given: Parameters, runs: Runs, arm: Arm) -> list[float]:
    """Images a second of a worker, one per seed."""
    return [given.images * 1e9 / cluster.iteration_ns(one.jobs[0], 0) for one in runs[arm]]


def rows(task: Task[Parameters], runs: Runs) -> list[Row]:
    """Images a second, and how many times as fast control makes it."""
    given, paper = task.parameters, task.paper
    free = Spread.of(speeds(given, runs, "off"))
    made = [
        Row(
            quantity="images a second of a worker",
            where=ARMS["off"],
            paper=paper["free"],
            ours=free,
            headline=False,
        )
    ]
    controlled: tuple[Arm, ...] = ("halve", "queue")
    for arm in controlled:
        values = speeds(given, runs, arm)
        made += [
            Row(
                quantity="images a second of a worker",
                where=ARMS[arm],
                paper=paper["controlled"],
                ours=Spread.of(values),
                baseline=Baseline(name=ARMS["off"], paper=paper["free"], ours=free),
                headline=False,
            ),
            Row(
                quantity="images a second over those without control",
                where=ARMS[arm],
                paper=round(paper["controlled"] / paper["free"], 2),
                ours=over(values, free.values),
                baseline=Baseline(name=ARMS["off"], paper=1, ours=1),
            ),
        ]
    return made


def table(given: Parameters, runs: Runs) -> Table:
    """Every way."""

    def link(arm: Arm, name: str) -> Spread:
        links = [
            next(one for one in outcome.links if one.name == "rack0 to server0")
            for outcome in runs[arm]
        ]
        return Spread.of([100 * getattr(one, name) / one.offered for one in links])

    def jobs(arm: Arm, name: str) -> Spread:
        each = [outcome.jobs[0] for outcome in runs[arm]]
        return Spread.of([100 * getattr(job, name) / job.packets for job in each])

    return Table(
        title="With and without control",
        columns=[
            Column(name="way"),
            Column(name="images a second", digits=1),
            Column(name="iteration, ms", digits=0),
            Column(name="added by the server, %", digits=1),
            Column(name="sent again, %", digits=1),
            Column(name="dropped before the server, %", digits=1),
            Column(name="marked, %", digits=1),
        ],
        rows=[
            [
                name,
                Spread.of(speeds(given, runs, arm)),
                Spread.of([one.jobs[0].iteration_ns / 1e6 for one in runs[arm]]),
                jobs(arm, "at_server"),
                jobs(arm, "resent"),
                link(arm, "dropped"),
                link(arm, "marked"),
            ]
            for arm, name in ARMS.items()
        ],
        note=(
            f"{given.share_of(given.aggregators * given.share / 100)} aggregators. Bytes and rate "
            f"are divided by {given.scale():.0f}. The first two percentages are of the workers' "
            "packets, the last two of the frames of the link to the server."
        ),
    )


def chart(given: Parameters, runs: Runs) -> Chart:
    """A line for each way, over the iterations."""
    lines = []
    for arm, name in ARMS.items():
        each = [
            Spread.of(
                [
                    given.images * 1e9 / (iteration.end_ns - iteration.begin_ns)
                    for iteration in iterations
                ]
            )
            for iterations in zip(*(one.jobs[0].iterations for one in runs[arm]), strict=True)
        ]
        lines.append(line(name, range(1, len(each) + 1), each))
    return Chart(
        title=f"VGG16 with {given.share:g} % of the aggregators",
        x="iteration",
        y="images a second of a worker",
        series=lines,
        from_zero=True,
        marked=True,
    )
