"""ATP §D.2, Figure 20: what a job loses when another one trains beside it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from olaf import experiments
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

Arm = Literal["window", "hashed"]
ARMS: dict[Arm, str] = {"window": "our indices", "hashed": "the paper's hash"}
BASE = "VGG16"
"""The model of the settings; another one has its own bytes and computation."""


class Model(experiments.Parameters):
    """A model beside VGG16."""

    bytes_over: float = Field(gt=0)
    """Bytes of its gradient over VGG16's."""
    compute_over: float = Field(gt=0)
    """Its computation over VGG16's."""


class Pair(experiments.Parameters):
    """Two jobs that train at the same time."""

    models: list[str] = Field(min_length=2, max_length=2)
    """The models of the two jobs."""
    workers: list[Annotated[int, Field(ge=1, le=32)]] = Field(min_length=2, max_length=2)
    """The workers of the two jobs."""


class Parameters(cluster.Training):
    """Pairs of jobs."""

    switch_aggregators: int = Field(ge=1)
    """Aggregators of the switch; ``aggregators`` fill the link."""
    time_out_ms: int = Field(ge=1)
    """ATP's shortest time-out."""
    others: dict[str, Model]
    """Models beside VGG16."""
    pairs: dict[str, Pair] = Field(min_length=1)
    """By name, the settings of the figure."""
    iterations: int = Field(ge=2)
    """Iterations of a job of VGG16; a faster model has as many more."""
    warm_up: int = Field(ge=0)
    """Iterations of a job that are not counted."""


Key = tuple[str, Arm, int]
"""Pair, arm, and which of the two jobs."""
Runs = dict[Key, list[float]]
"""Images a second of a worker, one per seed."""


def run(task: Task[Parameters]) -> Result:
    """Every pair, and each of its jobs alone."""
    given = task.parameters
    beside: Runs = {}
    alone: Runs = {}
    for seed in task.each_seed():
        for name in given.pairs:
            for arm, how in ARMS.items():
                task.say(f"seed {seed}: {name}, {how}")
                both = train(given, name, arm, (0, 1), seed)
                for at in (0, 1):
                    key = (name, arm, at)
                    beside.setdefault(key, []).append(speed(given, both[at]))
                    (one,) = train(given, name, arm, (at,), seed)
                    alone.setdefault(key, []).append(speed(given, one))
    return Result(
        rows=rows(task, beside, alone),
        charts=[chart(given, beside, alone)],
        tables=[table(given, beside, alone)],
        bounds=[bound(given)],
    )


def train(given: Parameters, name: str, arm: Arm, which: tuple[int, ...], seed: int) -> list[Job]:
    """The jobs of a pair that train at the same time, on hosts of their own."""
    pair = given.pairs[name]
    begins = cluster.offsets_ns(seed, 2, given.compute_ms() * 1e6)
    jobs = []
    for at in which:
        first = sum(pair.workers[:at])
        jobs.append(
            {
                **job(given, pair.models[at], f"job{at}"),
                "workers": pair.workers[at],
                "hosts": list(range(first, first + pair.workers[at])),
                "begin_ns": begins[at],
                "protocol": {
                    **given.protocol(arm, at, 1),
                    "time_out_ms": given.time_out_ms,
                },
            }
        )
    network = given.network(sum(pair.workers), given.scale())
    aggregators = given.share_of(given.switch_aggregators)
    return cluster.run(network, jobs, seed, aggregators=aggregators).jobs


def job(given: Parameters, model: str, name: str) -> dict[str, Any]:
    """A job of a model."""
    made = given.job(name, given.iterations)
    if model == BASE:
        return made
    of = given.others[model]
    return {
        **made,
        "model_bytes": round(made["model_bytes"] * of.bytes_over),
        "compute_ns": round(made["compute_ns"] * of.compute_over),
        "iterations": round(given.iterations / of.compute_over),
    }


def speed(given: Parameters, job: Job) -> float:
    """Images a second of a worker."""
    return given.images * 1e9 / cluster.iteration_ns(job, given.warm_up)


def rows(task: Task[Parameters], beside: Runs, alone: Runs) -> list[Row]:
    """What each job keeps of its speed alone, and the five workers over the two."""
    given, paper = task.parameters, task.paper
    made = []
    for arm, how in ARMS.items():
        for name, pair in given.pairs.items():
            kept = paper["kept"].get(name)
            for at in (0, 1):
                key = (name, arm, at)
                made.append(
                    Row(
                        quantity="images a second, over those of the job alone",
                        where=f"{name}: {label(pair, at)}; {how}",
                        paper=None if kept is None else kept[at],
                        ours=over(beside[key], alone[key]),
                        baseline=None if kept is None else Baseline(name="alone", paper=1, ours=1),
                        headline=arm == "window" and kept is not None,
                    )
                )
            if name == paper["uneven"]:
                made.append(
                    Row(
                        quantity="images a second, the first job's over the second one's",
                        where=f"{name}; {how}",
                        paper=round(paper["images_per_s"][0] / paper["images_per_s"][1], 3),
                        ours=over(beside[name, arm, 0], beside[name, arm, 1]),
                        baseline=Baseline(name="the second job", paper=1, ours=1),
                        headline=arm == "window",
                    )
                )
    return made


def label(pair: Pair, at: int) -> str:
    """A job in words."""
    which = ("first", "second")[at]
    return f"the {which} job, {pair.models[at]} on {pair.workers[at]} workers"


def bound(given: Parameters) -> Bound:
    """What computation allows."""
    return Bound(
        quantity=f"images a second of a worker, {BASE}",
        value=given.images / given.compute_ms() * 1e3,
        why="without any network a worker computes all the time",
    )


def table(given: Parameters, beside: Runs, alone: Runs) -> Table:
    """Every job."""
    return Table(
        title="Images a second of a worker",
        columns=[
            Column(name="jobs"),
            Column(name="aggregators by"),
            Column(name="model"),
            Column(name="workers", digits=0),
            Column(name="alone", digits=1),
            Column(name="beside the other job", digits=1),
            Column(name="kept, %", digits=1),
        ],
        rows=[
            [
                name,
                ARMS[arm],
                given.pairs[name].models[at],
                given.pairs[name].workers[at],
                Spread.of(alone[name, arm, at]),
                Spread.of(speeds),
                Spread.of(
                    [
                        100 * one / other
                        for one, other in zip(speeds, alone[name, arm, at], strict=True)
                    ]
                ),
            ]
            for (name, arm, at), speeds in beside.items()
        ],
        note=f"Bytes and rate are divided by {given.scale():.0f}.",
    )


def chart(given: Parameters, beside: Runs, alone: Runs) -> Chart:
    """A set of bars for each place in a pair."""
    names = list(given.pairs)
    return Chart(
        title="Two jobs beside each other",
        x="jobs",
        y="images a second, over those alone",
        kind="bars",
        series=[
            Series(
                name=f"{which} job, {how}",
                points=[
                    (float(x), over(beside[name, arm, at], alone[name, arm, at]).mean)
                    for x, name in enumerate(names)
                ],
            )
            for arm, how in ARMS.items()
            for at, which in enumerate(("first", "second"))
        ],
        ticks=names,
        from_zero=True,
    )
