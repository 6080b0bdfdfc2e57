"""OLAF §3: the threshold on the difference of rewards (`switch.gate`), on against off."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from pydantic import Field

from olaf import experiments
from olaf.experiments import Baseline, Chart, Column, Result, Row, Spread, Table, Task
from olaf.experiments.training import Trained, band, mean_over
from olaf.experiments.virtual import LEFT_OUT, Job, train_all, update_bits

FATES = ("sent_alone", "merged", "replaced", "filtered")


class Parameters(experiments.Parameters):
    """A job on a narrow uplink, trained without the gate and with each threshold."""

    environment: str
    """Any id that gymnasium.make knows."""
    workers: int = Field(ge=2)
    """Workers, each with a machine of its own."""
    clusters: int = Field(ge=1)
    """Number of clusters."""
    slots: int = Field(ge=1)
    """Number of updates that the queue holds."""
    share: float = Field(gt=0)
    """Rate of the uplink divided by the offered rate."""
    thresholds: list[float] = Field(min_length=1)
    """Differences of reward beyond which the queue replaces or refuses, instead of merging."""
    patience_s: float = Field(ge=0)
    """Seconds that a worker waits for an answer; with 0 losses do not change what it offers."""
    iterations: int = Field(ge=1)
    """Turns of each worker; a run ends after ``iterations * workers`` turns in all."""
    smoothing: int = Field(ge=1)
    """Number of iterations averaged in a point of the plot."""
    last: int = Field(ge=1)
    """Number of iterations averaged in the reward at the end."""


def run(task: Task[Parameters]) -> Result:
    """Train without a limit, for the rate; then with each threshold on the same uplink."""
    given = task.parameters
    free = train_all([job(given, "no limit", seed) for seed in task.seeds], task.say)
    arms: list[float | None] = [None, *given.thresholds]
    jobs = [
        job(given, name(arm), seed, given.share * beside.updates_per_s * update_bits(beside), arm)
        for seed, beside in zip(task.seeds, free, strict=True)
        for arm in arms
    ]
    runs: dict[float | None, list[Trained]] = {arm: [] for arm in arms}
    for at, one in enumerate(train_all(jobs, task.say)):
        runs[arms[at % len(arms)]].append(one)
    return Result(
        rows=list(rows(runs, given)),
        tables=[fates(runs, given)],
        charts=[
            Chart(
                title="Mean reward of the workers",
                x="iteration of each worker",
                y="reward",
                series=[
                    band(name(arm), [one.curve(given.smoothing) for one in own])
                    for arm, own in runs.items()
                ],
            )
        ],
        differences=[LEFT_OUT],
    )


def name(threshold: float | None) -> str:
    """An arm in words."""
    return "gate off" if threshold is None else f"threshold {threshold:g}"


def job(
    given: Parameters,
    arm: str,
    seed: int,
    uplink_bps: float | None = None,
    threshold: float | None = None,
) -> Job:
    """One training run."""
    return Job(
        f"{arm}, seed {seed}",
        {
            "learner": {"environment": given.environment},
            "train": {
                "workers": given.workers,
                "clusters": given.clusters,
                "updates": given.workers * given.iterations,
                "until_reward": "off",
                "seed": seed,
            },
            "switch": {
                "slots": given.slots,
                "queue": "olaf",
                "gate": "off" if threshold is None else threshold,
            },
            "worker": {"patience_s": given.patience_s, "push_every": "turn"},
        },
        uplink_bps=uplink_bps,
    )


def spread_of_rewards(one: Trained) -> float:
    """Standard deviation of the workers' rewards around their mean, over the second half."""
    by_iteration: dict[int, list[float]] = {}
    for push in one.pushes:
        by_iteration.setdefault(push.iteration, []).append(push.reward)
    half = max(by_iteration) / 2
    late = [
        statistics.pstdev(rewards)
        for at, rewards in by_iteration.items()
        if at > half and len(rewards) > 1
    ]
    return statistics.fmean(late)


def rows(runs: dict[float | None, list[Trained]], given: Parameters) -> Iterable[Row]:
    """What the paper says of the gate: the baseline is the queue without it."""
    end, stable = f"reward, last {given.last} iterations", "spread of the workers' rewards"
    measures: dict[str, list[list[float]]] = {
        "reward, mean over all iterations": [
            [mean_over(one.pushes) for one in own] for own in runs.values()
        ],
        end: [[one.reward_at_end(given.last) for one in own] for own in runs.values()],
        stable: [[spread_of_rewards(one) for one in own] for own in runs.values()],
    }
    for quantity, (plain, *others) in measures.items():
        yield Row(quantity=quantity, where=name(None), ours=Spread.of(plain), headline=False)
        for threshold, values in zip(given.thresholds, others, strict=True):
            yield Row(
                quantity=quantity,
                where=name(threshold),
                ours=Spread.of(values),
                baseline=Baseline(name="the queue without a gate", ours=Spread.of(plain)),
                direction="below" if quantity == stable else "above",
                note=f"gate off: {statistics.fmean(plain):.0f}",
            )


def fates(runs: dict[float | None, list[Trained]], given: Parameters) -> Table:
    """What became of the updates."""

    def share(own: Sequence[Trained], fate: str) -> Spread:
        return Spread.of(
            [100 * one.result["fates"][fate] / max(one.result["received"], 1) for one in own]
        )

    return Table(
        title=f"Fates of the updates in the queue, % of those received; uplink {given.share:g}",
        columns=[
            Column(name=""),
            *(Column(name=fate.replace("_", " "), digits=1) for fate in FATES),
            Column(name="dropped", digits=1),
            Column(name="Age-of-Model, ms", digits=1),
        ],
        rows=[
            [
                name(arm),
                *(share(own, fate) for fate in FATES),
                Spread.of([100 * one.result["loss"] for one in own]),
                Spread.of([1e3 * (one.result["age_of_model"]["mean_s"] or 0) for one in own]),
            ]
            for arm, own in runs.items()
        ],
        note="Replaced: a later update took the place of what waited, by the gate or because it "
        "was of the same worker. Filtered: refused by the gate.",
    )
