"""OLAF §8.2, Figure 8: what a narrow uplink does to learning, with FIFO and with OLAF."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from olaf import experiments
from olaf.experiments import Baseline, Chart, Goal, Result, Row, Spread, Task
from olaf.experiments.training import Trained, band, train

NO_LOSS = "no loss"


class Parameters(experiments.Parameters):
    """A job, trained without a limit and then over narrow uplinks."""

    environment: str
    """Any id that gymnasium.make knows."""
    workers: int = Field(ge=2)
    """Worker processes."""
    clusters: int = Field(ge=1)
    """Clusters they are dealt to."""
    slots: int = Field(ge=1)
    """Updates the queue holds."""
    shares: list[float] = Field(min_length=1)
    """Rates of the uplink, over what the workers offer."""
    iterations: int = Field(ge=1)
    """Updates of each worker; a run ends after so many times the workers in all."""
    smoothing: int = Field(ge=1)
    """Iterations that a point of the plot is the mean of."""
    last: int = Field(ge=1)
    """Iterations that the reward at the end is the mean of."""
    goal_percent: float
    """How far OLAF is to end above FIFO."""
    time_limit_s: float = Field(gt=0)
    """A run ends after so long at the latest."""


def run(task: Task[Parameters]) -> Result:
    """Train without loss, then with each queue at each share, seed by seed."""
    given = task.parameters
    runs: dict[str, list[Trained]] = {}
    shares: dict[str, list[float]] = {}
    for seed in task.each_seed():
        newest = one_run(task, NO_LOSS, seed, None)
        runs.setdefault(NO_LOSS, []).append(newest)
        for share in given.shares:
            for queue in ("fifo", "olaf"):
                # Pushing does not wait for the network: the run before says what this one offers.
                uplink_bps = share * newest.updates_per_s * bits(newest)
                name = label(queue, share)
                newest = one_run(task, name, seed, (queue, uplink_bps))
                runs.setdefault(name, []).append(newest)
                came = uplink_bps / (newest.updates_per_s * bits(newest))
                shares.setdefault(name, []).append(came)
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
        notes=[verdict_in_words(runs, task)],
    )  # fmt: skip


def label(queue: str, share: float) -> str:
    """The name of a setting."""
    return f"{queue.upper()}, uplink {share:g}"


def one_run(
    task: Task[Parameters], name: str, seed: int, link: tuple[str, float] | None
) -> Trained:
    """One training run; ``link``: discipline and bits a second, or None without a limit."""
    given = task.parameters
    switch: dict[str, Any] = {"slots": given.slots}
    if link is not None:
        switch |= {"queue": link[0], "uplink": f"{max(link[1], 1):.0f}bit"}
    tables: dict[str, dict[str, Any]] = {
        "learner": {"environment": given.environment},
        "train": {
            "workers": given.workers,
            "clusters": given.clusters,
            "updates": given.workers * given.iterations,
            "until_reward": "off",
            "time_limit_s": given.time_limit_s,
            "seed": seed,
        },
        "switch": switch,
    }
    return train(tables, name=f"{name}, seed {seed}", scratch=task.scratch, say=task.say)


def bits(one: Trained) -> int:
    """Bits of an update on the link: a header of 96 bytes and the parameters."""
    return 8 * (96 + 4 * int(one.result["model"]["parameters"]))


def above_percent(own: Trained, other: Trained, given: Parameters) -> float:
    """By how many percent of the other's reward at the end this one's is above it."""
    mine, theirs = own.reward_at_end(given.last), other.reward_at_end(given.last)
    return 100 * (mine - theirs) / abs(theirs)


def lead_rows(runs: dict[str, list[Trained]], task: Task[Parameters]) -> Iterable[Row]:
    """The paper's two numbers: how far OLAF ends above FIFO."""
    given = task.parameters
    rows = []
    for share in given.shares:
        olaf, fifo = runs[label("olaf", share)], runs[label("fifo", share)]
        # Over FIFO's mean: a ratio of each pair is at the mercy of the seed with the least reward.
        theirs = sum(one.reward_at_end(given.last) for one in fifo) / len(fifo)
        rows.append(
            Row(
                quantity="OLAF's reward above FIFO's mean",
                where=f"uplink {share:g} of the offered rate",
                unit="%",
                paper=task.paper.get(f"{share:g}"),
                ours=Spread.of(
                    [100 * (one.reward_at_end(given.last) - theirs) / abs(theirs) for one in olaf]
                ),
                baseline=Baseline(name="FIFO", paper=0.0, ours=0.0),
                goal=Goal(at_least=given.goal_percent),
            )
        )
        rows.append(
            Row(
                quantity="OLAF's reward above FIFO's, seed by seed",
                where=f"uplink {share:g} of the offered rate",
                unit="%",
                ours=Spread.of(
                    [above_percent(a, b, given) for a, b in zip(olaf, fifo, strict=True)]
                ),
                baseline=Baseline(name="FIFO", ours=0.0),
                direction="above",
                headline=False,
            )
        )
    return rows


def own_rows(name: str, own: list[Trained], given: Parameters) -> Iterable[Row]:
    """What one setting came to."""
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
    """What the uplink came to be of what workers offered in that very run."""
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
