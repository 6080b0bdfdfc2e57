"""OLAF §2.1, Figure 2: three ways in which a server can treat updates, by iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import Field

from olaf import experiments
from olaf.experiments import Baseline, Chart, Result, Row, Spread, Task
from olaf.experiments.training import Trained, band, mean_over, train

MODES = {
    "each": "asynchronous",
    "periodic": "periodic aggregation",
    "round": "synchronous",
}


class Parameters(experiments.Parameters):
    """A job, trained once in each mode."""

    environment: str
    """Any id that gymnasium.make knows."""
    workers: int = Field(ge=2)
    """Worker processes."""
    clusters: int = Field(ge=1)
    """Clusters they are dealt to."""
    iterations: int = Field(ge=1)
    """Updates of each worker; a run ends after so many times the workers in all."""
    aggregate_updates: int = Field(ge=1)
    """Contributions applied together in periodic aggregation."""
    round_ms: int = Field(ge=1)
    """A round ends so long after its first contribution, without those that are missing."""
    smoothing: int = Field(ge=1)
    """Iterations that a point of the plot is the mean of."""
    last: int = Field(ge=1)
    """Iterations that the reward at the end is the mean of."""
    time_limit_s: float = Field(gt=0)
    """A run ends after so long at the latest."""


def run(task: Task[Parameters]) -> Result:
    """Train in each mode with each seed."""
    runs: dict[str, list[Trained]] = {mode: [] for mode in MODES}
    for seed in task.each_seed():
        for mode, own in runs.items():
            name = f"{MODES[mode]}, seed {seed}"
            told = tables(task.parameters, mode, seed)
            own.append(train(told, name=name, scratch=task.scratch, say=task.say))
    given = task.parameters
    return Result(
        rows=[*lead_rows(runs, given), *reward_rows(runs, given)],
        charts=[
            Chart(
                title="Mean reward of the workers", x="iteration of each worker", y="reward",
                series=[
                    band(MODES[mode], [one.curve(given.smoothing) for one in own])
                    for mode, own in runs.items()
                ],
            )
        ],
        differences=order(runs, given),
        notes=notes(runs),
    )  # fmt: skip


def tables(given: Parameters, mode: str, seed: int) -> dict[str, dict[str, Any]]:
    """The configuration of one run."""
    return {
        "learner": {"environment": given.environment},
        "train": {
            "workers": given.workers,
            "clusters": given.clusters,
            "updates": given.workers * given.iterations,
            "until_reward": "off",
            "time_limit_s": given.time_limit_s,
            "seed": seed,
        },
        "server": {
            "aggregate": mode,
            "aggregate_updates": given.aggregate_updates,
            "aggregate_ms": given.round_ms,
        },
    }


def lead_rows(runs: dict[str, list[Trained]], given: Parameters) -> Iterable[Row]:
    """What the paper claims: asynchronous is above the two others, throughout."""
    measures: dict[str, Callable[[Trained], float]] = {
        "mean over all iterations": lambda one: mean_over(one.pushes),
        f"last {given.last} iterations": lambda one: one.reward_at_end(given.last),
    }
    return [
        Row(
            quantity=f"reward, asynchronous less {MODES[other]}",
            where=where,
            unit="reward",
            ours=Spread.of(
                [
                    of(own) - of(against)
                    for own, against in zip(runs["each"], runs[other], strict=True)
                ]
            ),
            baseline=Baseline(name="0", ours=0.0),
            direction="above",
        )
        for other in ("periodic", "round")
        for where, of in measures.items()
    ]


def reward_rows(runs: dict[str, list[Trained]], given: Parameters) -> Iterable[Row]:
    """The rewards behind the differences."""
    return [
        Row(
            quantity=f"reward, last {given.last} iterations",
            where=MODES[mode],
            unit="reward",
            ours=Spread.of([one.reward_at_end(given.last) for one in own]),
            headline=False,
        )
        for mode, own in runs.items()
    ]


def order(runs: dict[str, list[Trained]], given: Parameters) -> list[str]:
    """What to say where the paper's order did not come out."""
    ends = {
        mode: sum(one.reward_at_end(given.last) for one in own) / len(own)
        for mode, own in runs.items()
    }
    ahead = [MODES[mode] for mode in ("periodic", "round") if ends[mode] > ends["each"]]
    if not ahead:
        return []
    return [
        f"The paper's order does not come out for {' and '.join(ahead)}: by iteration it ends "
        "above asynchronous training here. A round takes in only what was computed on the very "
        "model that it changes, and their mean is steadier than eight steps of which most are "
        "several versions old. The seeds spread widely beside these differences."
    ]


def notes(runs: dict[str, list[Trained]]) -> list[str]:
    """How fast the modes were, and whether rounds were whole."""
    speeds = ", ".join(
        f"{MODES[mode]} {sum(one.updates_per_s for one in own) / len(own):.0f}"
        for mode, own in runs.items()
    )
    collected = [one.result["aggregate"] for one in runs["round"]]
    short = sum(one["rounds_short"] for one in collected)
    return [
        f"Updates a second over all workers: {speeds}.",
        f"Of {sum(one['collections'] for one in collected)} rounds {short} ended without somebody.",
    ]
