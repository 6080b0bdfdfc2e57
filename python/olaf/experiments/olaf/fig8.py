"""OLAF §8.2, Figure 8: the effect of a narrow uplink on learning, with FIFO and with OLAF."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from pydantic import Field

from olaf import experiments
from olaf.experiments import Baseline, Chart, Goal, Result, Row, Spread, Task
from olaf.experiments.training import Trained, band
from olaf.experiments.virtual import LEFT_OUT, Job, train_all, update_bits

NO_LOSS = "no loss"


class Parameters(experiments.Parameters):
    """A job, trained without a limit and then over narrow uplinks."""

    environment: str
    """Any id that gymnasium.make knows."""
    workers: int = Field(ge=2)
    """Workers, each with a machine of its own."""
    clusters: int = Field(ge=1)
    """Number of clusters."""
    slots: int = Field(ge=1)
    """Number of updates that the queue holds."""
    shares: list[float] = Field(min_length=1)
    """Rates of the uplink divided by the offered rate."""
    patience_s: float = Field(ge=0)
    """Seconds that a worker waits for an answer; with 0 losses do not change what it offers."""
    iterations: int = Field(ge=1)
    """Turns of each worker; a run ends after ``iterations * workers`` turns in all."""
    smoothing: int = Field(ge=1)
    """Number of iterations averaged in a point of the plot."""
    last: int = Field(ge=1)
    """Number of iterations averaged in the reward at the end."""
    goal_percent: float
    """Goal for OLAF's lead over FIFO at the end, in percent."""


def run(task: Task[Parameters]) -> Result:
    """Train without loss, then with each queue at each share of the offered rate."""
    given = task.parameters
    free = train_all([job(given, NO_LOSS, seed) for seed in task.seeds], task.say)
    cases = [(queue, share) for share in given.shares for queue in ("fifo", "olaf")]
    jobs = [
        # Both queues have the same uplink: a share of these workers' offered rate without loss.
        job(given, label(queue, share), seed, (queue, share * offered_bps(beside)))
        for seed, beside in zip(task.seeds, free, strict=True)
        for queue, share in cases
    ]
    runs: dict[str, list[Trained]] = {NO_LOSS: free}
    for at, one in enumerate(train_all(jobs, task.say)):
        runs.setdefault(label(*cases[at % len(cases)]), []).append(one)
    shares = {
        label(queue, share): [
            share * offered_bps(beside) / offered_bps(one)
            for beside, one in zip(free, runs[label(queue, share)], strict=True)
        ]
        for queue, share in cases
    }
    return Result(
        rows=[
            *lead_rows(runs, task),
            *(row for name, own in runs.items() for row in own_rows(name, own, given)),
            *share_rows(shares),
        ],
        charts=[
            Chart(
                title="Mean reward of the workers", x="iteration of each worker", y="reward",
                series=[
                    band(name, [one.curve(given.smoothing) for one in own])
                    for name, own in runs.items()
                ],
            )
        ],
        differences=[LEFT_OUT],
        notes=[verdict_in_words(runs, task)],
    )  # fmt: skip


def label(queue: str, share: float) -> str:
    """The name of a setting."""
    return f"{queue.upper()}, uplink {share:g}"


def job(given: Parameters, name: str, seed: int, link: tuple[str, float] | None = None) -> Job:
    """One training run; ``link``: discipline and bits per second, or None without a limit."""
    switch: dict[str, Any] = {"slots": given.slots}
    if link is not None:
        switch["queue"] = link[0]
    tables: dict[str, dict[str, Any]] = {
        "learner": {"environment": given.environment},
        "train": {
            "workers": given.workers,
            "clusters": given.clusters,
            "updates": given.workers * given.iterations,
            "until_reward": "off",
            "seed": seed,
        },
        "switch": switch,
        # Once per turn, as in the paper. Workers that push each pass hold back changes while an
        # update is under way: on a slower uplink they would offer less.
        "worker": {"patience_s": given.patience_s, "push_every": "turn"},
    }
    uplink_bps = None if link is None else max(link[1], 1.0)
    return Job(f"{name}, seed {seed}", tables, uplink_bps=uplink_bps)


def offered_bps(one: Trained) -> float:
    """The workers' pushes in a run, in bits per virtual second."""
    return one.updates_per_s * update_bits(one)


def above_percent(olaf: list[Trained], fifo: list[Trained], given: Parameters) -> Spread:
    """OLAF's mean reward at the end relative to FIFO's, in percent.

    With the spread of both: a ratio of two means, not the mean of ratios.
    """
    ends = [Spread.of([one.reward_at_end(given.last) for one in own]) for own in (olaf, fifo)]
    over = Spread.ratio(*ends)
    sign = 1 if ends[1].mean > 0 else -1
    return Spread.of([sign * 100 * (value - 1) for value in over.values])


def lead_rows(runs: dict[str, list[Trained]], task: Task[Parameters]) -> Iterable[Row]:
    """The paper's two numbers: OLAF's lead over FIFO at the end, in percent and as such."""
    given = task.parameters
    made = []
    for share in given.shares:
        olaf, fifo = runs[label("olaf", share)], runs[label("fifo", share)]
        ends = {
            name: Spread.of([one.reward_at_end(given.last) for one in own])
            for name, own in (("olaf", olaf), ("fifo", fifo))
        }
        where = f"uplink {share:g} of the offered rate"
        # A share of a reward that may be 0 or less says nothing.
        positive = ends["fifo"].interval.is_within(0.0, math.inf)
        made += [
            Row(
                quantity="OLAF's mean reward above FIFO's",
                where=where,
                unit="%",
                paper=task.paper.get(f"{share:g}"),
                ours=above_percent(olaf, fifo, given),
                baseline=Baseline(name="FIFO", paper=0.0, ours=0.0),
                goal=Goal(at_least=given.goal_percent) if positive else None,
                comparable=positive,
                note="ratio of the two means, with the spread of both",
            ),
            Row(
                quantity="OLAF's mean reward, against FIFO's",
                where=where,
                ours=ends["olaf"],
                baseline=Baseline(name="FIFO", ours=ends["fifo"]),
                direction="above",
                note=f"FIFO: {ends['fifo'].mean:.0f}",
            ),
        ]
    return made


def own_rows(name: str, own: list[Trained], given: Parameters) -> Iterable[Row]:
    """The result of one setting."""
    measures: dict[str, tuple[str, Any]] = {
        f"reward, last {given.last} iterations": (
            "reward", lambda one: one.reward_at_end(given.last)
        ),
        "update loss": ("%", lambda one: 100 * (one.result["loss"] or 0.0)),
        "Age-of-Model, mean": ("ms", lambda one: 1e3 * (one.result["age_of_model"]["mean_s"] or 0)),
    }  # fmt: skip
    return [
        Row(
            quantity=quantity,
            where=name,
            unit=unit,
            ours=Spread.of([of(one) for one in own]),
            headline=quantity.startswith("reward"),
        )
        for quantity, (unit, of) in measures.items()
    ]


def share_rows(shares: dict[str, list[float]]) -> Iterable[Row]:
    """The uplink's rate divided by the rate that workers offered in the same run."""
    return [
        Row(
            quantity="uplink / offered rate of the run itself",
            where=name,
            ours=Spread.of(values),
            headline=False,
        )
        for name, values in shares.items()
    ]


def verdict_in_words(runs: dict[str, list[Trained]], task: Task[Parameters]) -> str:
    """The order of the settings at the end."""
    ends = {
        name: sum(one.reward_at_end(task.parameters.last) for one in own) / len(own)
        for name, own in runs.items()
    }
    order = ", ".join(
        f"{name} {end:.0f}" for name, end in sorted(ends.items(), key=lambda e: -e[1])
    )
    return f"Reward at the end, highest first: {order}."
