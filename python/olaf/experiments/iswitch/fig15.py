"""iSwitch §6.3, Figure 15 a and c: PPO and DDPG on 4, 6, 9 and 12 workers in racks of three."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from olaf.experiments import Baseline, Chart, Column, Result, Row, Series, Spread, Table, Task
from olaf.experiments.comparing import line
from olaf.experiments.iswitch.synchronous import APPROACHES, Given, measure
from olaf.scenarios.sums import Job


class Parameters(Given):
    """The cluster of two layers (iSwitch §5.3)."""

    workers: list[Annotated[int, Field(ge=1, le=256)]] = Field(min_length=2)
    """Numbers of workers; speed-ups are relative to the first."""
    rack: int = Field(ge=1)
    """Most workers of a rack."""


Runs = dict[tuple[str, int], list[dict[str, Job]]]
"""By model and workers, one per seed."""


def run(task: Task[Parameters]) -> Result:
    """Train each model with each approach and number of workers."""
    given = task.parameters
    runs: Runs = {}
    for seed in task.each_seed():
        for model in given.models:
            for workers in given.workers:
                task.say(f"seed {seed}: {model}, {workers} workers")
                jobs = measure(given, task.paper, model, racks(workers, given.rack), seed=seed)
                runs.setdefault((model, workers), []).append(jobs)
    return Result(
        rows=rows(given, runs),
        charts=[chart(given, runs, model) for model in given.models],
        tables=[table(given, runs)],
    )


def racks(workers: int, most: int) -> list[int]:
    """Full racks, and the rest in another one."""
    full, rest = divmod(workers, most)
    return [*[most] * full, *([rest] if rest else [])]


def speed_ups(given: Parameters, runs: Runs, model: str, workers: int, engine: str) -> list[float]:
    """Of that many workers over the first number, one per seed.

    Twice the workers need half the iterations: the same samples in all.
    """
    first = given.workers[0]
    return [
        workers / first * fewer[engine].iteration_ns / more[engine].iteration_ns
        for fewer, more in zip(runs[model, first], runs[model, workers], strict=True)
    ]


def rows(given: Parameters, runs: Runs) -> list[Row]:
    """At the largest number: iSW is best and AR is worst, says the paper."""
    most = given.workers[-1]
    made = []
    for model in given.models:
        ps = Spread.of(speed_ups(given, runs, model, most, "ps"))
        for engine, side in (("iswitch", "above"), ("ring", "below")):
            made.append(
                Row(
                    quantity=f"speed-up of {most} workers over {given.workers[0]}",
                    where=f"{APPROACHES[engine]}, {model}",
                    ours=Spread.of(speed_ups(given, runs, model, most, engine)),
                    baseline=Baseline(name="PS", ours=ps),
                    direction="above" if side == "above" else "below",
                )
            )
    return made


def table(given: Parameters, runs: Runs) -> Table:
    """Every number of workers."""
    return Table(
        title=f"Speed-up over {given.workers[0]} workers, and time of an iteration",
        columns=[
            Column(name="model"),
            Column(name="approach"),
            Column(name="workers", digits=0),
            Column(name="speed-up", digits=3),
            Column(name="ideal", digits=2),
            Column(name="sum, ms", digits=3),
            Column(name="wait, ms", digits=3),
            Column(name="iteration, ms", digits=3),
        ],
        rows=[
            [
                model,
                name,
                workers,
                Spread.of(speed_ups(given, runs, model, workers, engine)),
                workers / given.workers[0],
                Spread.of([jobs[engine].aggregation_ns / 1e6 for jobs in runs[model, workers]]),
                Spread.of([jobs[engine].wait_ns / 1e6 for jobs in runs[model, workers]]),
                Spread.of([jobs[engine].iteration_ns / 1e6 for jobs in runs[model, workers]]),
            ]
            for model in given.models
            for engine, name in APPROACHES.items()
            for workers in given.workers
        ],
    )


def chart(given: Parameters, runs: Runs, model: str) -> Chart:
    """A line for each approach."""
    lines = []
    for engine, name in APPROACHES.items():
        spreads = [
            Spread.of(speed_ups(given, runs, model, workers, engine)) for workers in given.workers
        ]
        lines.append(line(name, given.workers, spreads))
    first = given.workers[0]
    ideal = [(float(workers), workers / first) for workers in given.workers]
    return Chart(
        name="" if model == next(iter(given.models)) else model.lower(),
        title=f"{model}: speed-up over {first} workers",
        x="workers",
        y="times",
        series=[*lines, Series(name="ideal", points=ideal)],
        marked=True,
    )
