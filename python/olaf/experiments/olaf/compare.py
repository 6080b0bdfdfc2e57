"""Two baselines for OLAF on the same uplink: see `olaf compare`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from olaf import experiments
from olaf.experiments import Baseline, Chart, Column, Result, Row, Series, Spread, Table, Task
from olaf.experiments.training import Trained, train_with
from olaf.jobs.comparison import arms_of, plan
from olaf.jobs.reading import read_settings
from olaf.jobs.settings import Settings
from olaf.jobs.summary import MEASURES, by_arm, ratios, summarize, verdict
from olaf.report.comparing import ROWS
from olaf.report.comparing import Row as Measure

HEADLINES = ("until_s", "reward")


class Parameters(experiments.Parameters):
    """A job on a narrow uplink, trained with each arm."""

    environment: str
    """Any id that gymnasium.make knows."""
    workers: int = Field(ge=2)
    """Number of worker processes."""
    clusters: int = Field(ge=1)
    """Number of clusters."""
    slots: int = Field(ge=1)
    """Number of updates that the queue holds."""
    queues: list[str] = Field(min_length=1)
    """Disciplines."""
    baselines: list[str]
    """Baselines that run after the queues: push-less-often, tcp."""
    uplink: str
    """Bandwidth of the uplink of every arm."""
    until_reward: float
    """A run ends at this mean reward."""
    reward_window: int = Field(ge=1)
    """Number of episodes in the mean."""
    time_limit_s: float = Field(gt=0)
    """Time limit of a run."""


def run(task: Task[Parameters]) -> Result:
    """Train every arm with every seed; return the table, the ratios and the verdict."""
    settings = settings_of(task.parameters, list(task.seeds))
    results: list[dict[str, Any]] = []
    trained: dict[str, list[Trained]] = {}
    every = len(task.seeds) * len(arms_of(settings))
    for done, planned in enumerate(plan(settings, task.scratch, results)):
        task.say(f"seed {planned.settings.train.seed}: {planned.arm}", done / every)
        one = train_with(planned.settings, name=planned.name, say=task.say)
        results.append({**one.result, "arm": planned.arm})
        trained.setdefault(planned.arm, []).append(one)
    found = ratios(results)
    return Result(
        rows=ratio_rows(results),
        tables=[table_of(results), *([ratio_table(found)] if found else [])],
        charts=[curve_chart(trained)],
        notes=[verdict(summarize(results), results)],
    )


def settings_of(given: Parameters, seeds: list[int]) -> Settings:
    """The parameters as `olaf compare` takes them."""
    tables: dict[str, dict[str, Any]] = {
        "learner": {"environment": given.environment},
        "train": {
            "workers": given.workers,
            "until_reward": given.until_reward,
            "reward_window": given.reward_window,
        },
        "compare": {
            "queues": given.queues,
            "baselines": given.baselines,
            "clusters": given.clusters,
            "slots": given.slots,
            "uplink": given.uplink,
            "time_limit_s": given.time_limit_s,
            "seeds": seeds,
        },
    }
    return read_settings(base=tables)


def ratio_rows(results: list[dict[str, Any]]) -> list[Row]:
    """Each baseline relative to our best queue, a value per seed: 1 is no difference."""
    found = ratios(results)
    if found is None:
        return []
    arms = by_arm(results)
    ours = {run["seed"]: run for run in arms[found["best"]]}
    rows = []
    for baseline in found["of"]:
        for measure in ROWS:
            of = MEASURES[measure.key]
            pairs = [(of(one), of(ours[one["seed"]])) for one in arms[baseline]]
            known = [(a, b) for a, b in pairs if a is not None and b is not None and min(a, b) > 0]
            if len(known) < len(pairs):
                continue  # a ratio means nothing where one of them is 0 or below
            theirs, own = ([float(pair[n]) for pair in known] for n in (0, 1))
            rows.append(
                Row(
                    quantity=f"{_plain(measure)}, {baseline} over {found['best']}",
                    where="ratio of the means",
                    ours=Spread.ratio(Spread.of(theirs), Spread.of(own)),
                    baseline=Baseline(name="no difference", ours=1.0),
                    headline=measure.key in HEADLINES,
                )
            )
    return rows


def table_of(results: list[dict[str, Any]]) -> Table:
    """Measures by arm, each over the seeds."""
    arms = by_arm(results)
    rows: list[list[Spread | float | str | None]] = []
    for measure in ROWS:
        row: list[Spread | float | str | None] = [measure.name]
        for runs in arms.values():
            values = [value for run in runs if (value := MEASURES[measure.key](run)) is not None]
            shown = [measure.factor * float(value) for value in values]
            row.append(Spread.of(shown) if shown else None)
        rows.append(row)
    rows.append(["runs that reached the reward", *(
        float(sum(run["reached_s"] is not None for run in runs)) for runs in arms.values()
    )])  # fmt: skip
    rows.append(["turns of a push (k), mean", *(
        Spread.of([float(run["turns_per_push"]) for run in runs]) for runs in arms.values()
    )])  # fmt: skip
    return Table(
        title="Measures by arm",
        columns=[Column(name="measure"), *(Column(name=arm) for arm in arms)],
        rows=rows,
        note="A run that did not reach the reward counts with its whole time.",
    )


def ratio_table(found: dict[str, Any]) -> Table:
    """The ratios of the means, with their intervals."""
    rows: list[list[Spread | float | str | None]] = []
    for measure in ROWS:
        key = measure.key
        row: list[Spread | float | str | None] = [_plain(measure)]
        for own in found["of"].values():
            one = own["measures"][key]
            if one is None or (key == "until_s" and own["bound"] == "unknown"):
                row.append("-")
                continue
            bound = f"{own['bound']} " if key == "until_s" and own["bound"] else ""
            ends = "" if one["low"] is None else f" [{one['low']:.2f}, {one['high']:.2f}]"
            row.append(f"{bound}{one['value']:.2f}{ends}")
        rows.append(row)
    return Table(
        title=f"Baselines over {found['best']}: ratio of the means [95 % interval]",
        columns=[Column(name="measure"), *(Column(name=baseline) for baseline in found["of"])],
        rows=rows,
        note="Bootstrap over the seeds, paired: a resample draws the baseline's run and ours "
        "together. From five seeds on.",
    )


def _plain(measure: Measure) -> str:
    """The measure's name; a ratio has no unit."""
    return measure.name.removesuffix(", s").removesuffix(", kB").removesuffix(", %")


def curve_chart(trained: dict[str, list[Trained]]) -> Chart:
    """Reward against time, a line per arm: the mean over the seeds that still run."""
    series = []
    for arm, runs in trained.items():
        points: dict[int, list[float]] = {}
        for one in runs:
            for at_s, reward in one.rewards:
                points.setdefault(int(at_s), []).append(reward)
        known = sorted(points.items())
        if known:
            series.append(
                Series(
                    name=arm,
                    points=[(float(at), sum(own) / len(own)) for at, own in known],
                    low=[min(own) for _, own in known],
                    high=[max(own) for _, own in known],
                )
            )
    return Chart(title="Mean reward", x="seconds since the launch", y="reward", series=series)
