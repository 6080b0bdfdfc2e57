"""OLAF §2.1, Figure 3: more workers need fewer iterations each."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from pydantic import Field

from olaf import experiments
from olaf.experiments import Baseline, Chart, Result, Row, Spread, Task
from olaf.experiments.training import Trained, band
from olaf.experiments.virtual import LEFT_OUT, Job, train_all


class Parameters(experiments.Parameters):
    """A job, trained once with each number of workers."""

    environment: str
    """Any id that gymnasium.make knows."""
    workers: list[int] = Field(min_length=1)
    """Numbers of workers, each with its own machine, in increasing order."""
    iterations: int = Field(ge=1)
    """Turns of each worker; a run ends after ``iterations * workers`` turns in all."""
    mark: float
    """Target reward of the count of iterations."""
    smoothing: int = Field(ge=1)
    """Number of iterations averaged in a point of the plot."""
    last: int = Field(ge=1)
    """Number of iterations averaged in the reward at the end."""


def run(task: Task[Parameters]) -> Result:
    """Train with each number of workers and each seed."""
    given = task.parameters
    cases = [(count, seed) for seed in task.seeds for count in given.workers]
    jobs = [Job(f"{n} workers, seed {seed}", tables(given, n, seed)) for n, seed in cases]
    runs: dict[int, list[Trained]] = {count: [] for count in given.workers}
    for (count, _), one in zip(cases, train_all(jobs, task.say), strict=True):
        runs[count].append(one)
    return Result(
        rows=[*iteration_rows(runs, given), *reward_rows(runs, given)],
        charts=[
            Chart(
                title="Mean reward of the workers", x="iteration of each worker", y="reward",
                series=[
                    band(f"N = {count}", [one.curve(given.smoothing) for one in own])
                    for count, own in runs.items()
                ],
            )
        ],
        differences=[LEFT_OUT],
    )  # fmt: skip


def tables(given: Parameters, count: int, seed: int) -> dict[str, dict[str, Any]]:
    """The configuration of one run."""
    return {
        "learner": {"environment": given.environment},
        "train": {
            "workers": count,
            "clusters": min(2, count),
            "updates": count * given.iterations,
            "until_reward": "off",
            "seed": seed,
        },
    }


def reached(one: Trained, given: Parameters) -> float:
    """The first iteration at which the curve reaches the target, or the length of the run."""
    curve = one.curve(given.smoothing)
    return next((at for at, reward in curve if reward >= given.mark), float(given.iterations))


def iteration_rows(runs: dict[int, list[Trained]], given: Parameters) -> Iterable[Row]:
    """Iterations to the target: fewer than with half as many workers."""
    spreads = {n: Spread.of([reached(one, given) for one in own]) for n, own in runs.items()}
    before: dict[int, int | None] = {given.workers[0]: None}
    before |= {after: fewer for fewer, after in pairwise(given.workers)}
    return [
        Row(
            quantity=f"iterations to a mean reward of {given.mark:g}",
            where=f"N = {count}",
            unit="iterations",
            ours=spread,
            baseline=None
            if (fewer := before[count]) is None
            else Baseline(name=f"N = {fewer}", ours=spreads[fewer]),
            direction=None if before[count] is None else "below",
        )
        for count, spread in spreads.items()
    ]


def reward_rows(runs: dict[int, list[Trained]], given: Parameters) -> Iterable[Row]:
    """The rewards at the end of the runs."""
    return [
        Row(
            quantity=f"reward, last {given.last} iterations",
            where=f"N = {count}",
            unit="reward",
            ours=Spread.of([one.reward_at_end(given.last) for one in own]),
            headline=False,
        )
        for count, own in runs.items()
    ]
