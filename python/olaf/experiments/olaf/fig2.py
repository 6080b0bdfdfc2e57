"""OLAF §2.1, Figure 2: three ways to apply updates at a server, by iteration and by time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from pydantic import Field

from olaf import experiments
from olaf.experiments import Baseline, Chart, Result, Row, Series, Spread, Task
from olaf.experiments.training import Trained, band, mean_over
from olaf.experiments.virtual import LEFT_OUT, Job, train_all

MODES = {
    "each": "asynchronous",
    "periodic": "periodic aggregation",
    "round": "synchronous",
    "passes": "asynchronous, a push each pass",
}
"""In the first three a turn is one push, as in the paper. In the last one it is a push for each of
its passes, the default of `olaf train`; the server is that of ``each``."""
POINTS = 40
"""Number of points of a curve over time."""

Runs: TypeAlias = dict[tuple[float, str], list[Trained]]
"""Runs by ratio of speeds and mode, one per seed."""


class Parameters(experiments.Parameters):
    """A job, trained once in each mode on machines of each kind."""

    environment: str
    """Any id that gymnasium.make knows."""
    workers: int = Field(ge=2)
    """Workers, each with a machine of its own."""
    clusters: int = Field(ge=1)
    """Number of clusters."""
    speeds: list[float] = Field(min_length=1)
    """The fastest machine's speed divided by the slowest's, one job each; 1: all equal."""
    iterations: int = Field(ge=1)
    """Turns of each worker; a run ends after ``iterations * workers`` turns in all."""
    aggregate_updates: int = Field(ge=1)
    """Number of contributions applied together in periodic aggregation."""
    round_ms: int = Field(ge=1)
    """A round ends this long after its first contribution, without the missing ones."""
    smoothing: int = Field(ge=1)
    """Number of iterations averaged in a point of the plot."""
    last: int = Field(ge=1)
    """Number of iterations averaged in the reward at the end."""


def run(task: Task[Parameters]) -> Result:
    """Train in each mode, with each ratio of speeds and each seed."""
    given = task.parameters
    cases = [(ratio, mode) for ratio in given.speeds for mode in MODES]
    jobs = [
        Job(
            name=f"{MODES[mode]}, {machines(ratio)}, seed {seed}",
            tables=tables(given, mode, seed),
            speeds=ratio,
        )
        for seed in task.seeds
        for ratio, mode in cases
    ]
    runs: Runs = {case: [] for case in cases}
    for at, one in enumerate(train_all(jobs, task.say)):
        runs[cases[at % len(cases)]].append(one)
    return Result(
        rows=[*lead_rows(runs, given), *time_rows(runs), *reward_rows(runs, given)],
        charts=charts(runs, given),
        differences=[LEFT_OUT],
        notes=[answer(runs, given), *notes(runs)],
    )


def tables(given: Parameters, mode: str, seed: int) -> dict[str, dict[str, Any]]:
    """The configuration of one run."""
    return {
        "learner": {"environment": given.environment},
        "train": {
            "workers": given.workers,
            "clusters": given.clusters,
            "updates": given.workers * given.iterations,
            "until_reward": "off",
            "seed": seed,
        },
        "server": {
            "aggregate": "each" if mode == "passes" else mode,
            "aggregate_updates": given.aggregate_updates,
            "aggregate_ms": given.round_ms,
        },
        "worker": {"push_every": "pass" if mode == "passes" else "turn"},
    }


def machines(ratio: float) -> str:
    """A ratio of speeds in words."""
    return "equal machines" if ratio == 1 else f"machines {ratio:g}x apart"


def by_iteration(given: Parameters) -> dict[str, Callable[[Trained], float]]:
    """The comparison in the paper's plot."""
    return {
        "mean over all iterations": lambda one: mean_over(one.pushes),
        f"last {given.last} iterations": lambda one: one.reward_at_end(given.last),
    }


def by_time(runs: Runs, ratio: float) -> dict[str, list[float]]:
    """By mode, mean reward over the time that every mode trained with that seed."""
    own = {mode: runs[ratio, mode] for mode in MODES}
    shared = [min(one.result["time_s"] for one in same) for same in zip(*own.values(), strict=True)]
    return {
        mode: [one.reward_until(end_s) for one, end_s in zip(ones, shared, strict=True)]
        for mode, ones in own.items()
    }


def lead_rows(runs: Runs, given: Parameters) -> Iterable[Row]:
    """The paper's claim: asynchronous is above the two others throughout."""
    for ratio in given.speeds:
        for way in ("each", "passes"):
            for other in ("periodic", "round"):
                for where, of in by_iteration(given).items():
                    yield lead_row(
                        f"{where}, {machines(ratio)}",
                        [of(one) for one in runs[ratio, way]],
                        [of(one) for one in runs[ratio, other]],
                        way,
                        other,
                    )


def time_rows(runs: Runs) -> Iterable[Row]:
    """The same over equal virtual time, in which the modes push at different rates."""
    for ratio in dict.fromkeys(ratio for ratio, _ in runs):
        means = by_time(runs, ratio)
        for way in ("each", "passes"):
            for other in ("periodic", "round"):
                yield lead_row(
                    f"mean over the same virtual time, {machines(ratio)}",
                    means[way],
                    means[other],
                    way,
                    other,
                )


def lead_row(
    where: str, ours: Sequence[float], theirs: Sequence[float], way: str, other: str
) -> Row:
    """An asynchronous way compared with another mode, seed by seed.

    More pushes in a turn are no part of the paper's claim: such rows are not judged.
    """
    beside = Spread.of(theirs)
    return Row(
        quantity=f"{MODES[way]}: reward, against {MODES[other]}",
        where=where,
        comparable=way == "each",
        ours=Spread.of(ours),
        baseline=Baseline(name=MODES[other], ours=beside),
        direction="above",
        note=f"{MODES[other]}: {beside.mean:.0f}",
    )


def reward_rows(runs: Runs, given: Parameters) -> Iterable[Row]:
    """The rewards at the end, and the durations."""
    for (ratio, mode), own in runs.items():
        where = f"{MODES[mode]}, {machines(ratio)}"
        yield Row(
            quantity=f"reward, last {given.last} iterations",
            where=where,
            ours=Spread.of([one.reward_at_end(given.last) for one in own]),
            headline=False,
        )
        yield Row(
            quantity=f"virtual time of {given.iterations} iterations of each worker, on average",
            where=where,
            unit="s",
            ours=Spread.of([one.result["time_s"] for one in own]),
            headline=False,
        )


def charts(runs: Runs, given: Parameters) -> list[Chart]:
    """By iteration, then by time, for each ratio of speeds."""
    made = []
    for ratio in given.speeds:
        own = {mode: runs[ratio, mode] for mode in MODES}
        # A dot in a file's name would begin its suffix.
        apart = f"{ratio:g}x".replace(".", "-")
        made.append(
            Chart(
                name=f"iteration-{apart}",
                title=f"Mean reward of the workers, {machines(ratio)}",
                x="iteration of each worker",
                y="reward",
                series=[
                    band(MODES[mode], [one.curve(given.smoothing) for one in ones])
                    for mode, ones in own.items()
                ],
            )
        )
        made.append(
            Chart(
                name=f"time-{apart}",
                title=f"Mean reward of the workers by virtual time, {machines(ratio)}",
                x="virtual time, s",
                y="reward",
                series=[by_time_series(MODES[mode], ones, given) for mode, ones in own.items()],
            )
        )
    return made


def by_time_series(name: str, ones: Sequence[Trained], given: Parameters) -> Series:
    """One line over time: means over the seeds of each of the `POINTS` points."""
    curves = [one.curve_by_time(POINTS, given.smoothing) for one in ones]
    length = min(len(curve) for curve in curves)
    points = list(zip(*(curve[-length:] for curve in curves), strict=True))
    values = [[reward for _, reward in same] for same in points]
    times = [sum(at for at, _ in same) / len(same) for same in points]
    return Series(
        name=name,
        points=[(round(t, 3), sum(v) / len(v)) for t, v in zip(times, values, strict=True)],
        low=[min(v) for v in values],
        high=[max(v) for v in values],
    )


def answer(runs: Runs, given: Parameters) -> str:
    """Whether asynchronous beats synchronous here."""
    told = []
    for row in [*lead_rows(runs, given), *time_rows(runs)]:
        assert row.baseline is not None
        if row.baseline.name == MODES["round"] and row.comparable:
            word = {"same direction": "yes", "differs": "no"}.get(row.verdict, "undecided")
            told.append(
                f"{row.where}: {word} ({row.ours.mean:.0f} against {row.baseline.mean:.0f})"
            )
    return f"Does asynchronous training beat synchronous training here? {'; '.join(told)}."


def notes(runs: Runs) -> list[str]:
    """The speeds of the modes, and whether rounds were complete."""
    speeds = "; ".join(
        f"{MODES[mode]}, {machines(ratio)} {sum(one.updates_per_s for one in own) / len(own):.1f}"
        for (ratio, mode), own in runs.items()
    )
    collected = [
        one.result["aggregate"] for (_, mode), own in runs.items() for one in own if mode == "round"
    ]
    short = sum(one["rounds_short"] for one in collected)
    rounds = sum(one["collections"] for one in collected)
    return [
        f"Updates a virtual second over all workers: {speeds}.",
        f"Of {rounds} rounds {short} ended without somebody.",
    ]
