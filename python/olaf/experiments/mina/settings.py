"""Settings in which all-reduces matter: the score of each way to share the switches there.

This figure decides the default of `olaf simulate mina`: `chosen` is the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from pydantic import BaseModel, ConfigDict, Field

from olaf import experiments
from olaf.experiments import Chart, Column, Result, Row, Series, Spread, Table, Task
from olaf.experiments.mina.data import DataChoice
from olaf.experiments.mina.measuring import (
    AUTHORS,
    BASELINE,
    OURS,
    SKIP,
    Bench,
    Case,
    Policies,
    Ran,
    default_join,
)
from olaf.schedule.mixes import Mix
from olaf.schedule.reading import Job
from olaf.schedule.simulation import Cluster, Join


class Shape(BaseModel):
    """A cluster of 1,024 hosts, and the number of jobs for which its switches can sum at once."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    name: str
    """Links down to links up of a switch, and the capacity: ``4:1, one job a port``."""
    topology: str
    """Topology as for `olaf simulate mina --topology`."""
    capacity: str
    """Capacity as for `olaf simulate mina --capacity`."""


class Sizes(BaseModel):
    """Range of hosts that a job asks for, all equally likely."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    name: str
    least: int = Field(ge=1)
    most: int = Field(ge=1)

    def mix(self) -> Mix:
        """For `olaf.schedule.mixes.draw`."""
        hosts = list(range(self.least, self.most + 1))
        return Mix(hosts=hosts, weights=[1] * len(hosts))


class Parameters(experiments.Parameters):
    """Settings are all combinations of compute speed, sizes of jobs and cluster."""

    data: DataChoice
    """``auto``, ``own``, ``authors`` or a folder: see `olaf.experiments.mina.data`."""
    bandwidth_gbit: float = Field(gt=0)
    """Bandwidth of a host-only all-reduce in Gbit/s."""
    speedup: float = Field(ge=1)
    """Speed of an all-reduce in the switches relative to host-only."""
    latency_us: float = Field(ge=0)
    """Fixed time of each all-reduce, microseconds."""
    compute_speeds: list[float] = Field(min_length=1)
    """Speeds of the jobs' computation relative to the data's."""
    clusters: list[Shape] = Field(min_length=1)
    """Clusters that the jobs run on."""
    sizes: list[Sizes] = Field(min_length=1)
    """Ranges of hosts that a job asks for."""
    jobs: int = Field(ge=1)
    """Number of jobs in a list."""
    job_list: str
    """Name of the data's list for the authors' setting."""
    listed_jobs: int = Field(ge=1)
    """Number of its first jobs that are used."""
    mix: Mix
    """Mix of the drawn jobs, if the data has no such list."""


@dataclass(frozen=True)
class Candidate:
    """A policy for hosts, trees and sharing."""

    name: str
    policies: Policies
    join: Join | None = None

    @property
    def ours(self) -> bool:
        """True if it may become the default."""
        return self.policies[:2] == OURS[:2] and self.policies[2] != "mina"


CANDIDATES = (
    Candidate("skip", SKIP),
    Candidate("baseline", BASELINE),
    Candidate("MINA", AUTHORS),
    Candidate("ours, none", ("fragments", "gain", "plan"), "none"),
    Candidate("ours, one, greedy", ("fragments", "gain", "greedy"), "one"),
    Candidate("ours, one, plan", ("fragments", "gain", "plan"), "one"),
    Candidate("ours, several, greedy", ("fragments", "gain", "greedy"), "several"),
    Candidate("ours, several, plan", ("fragments", "gain", "plan"), "several"),
    Candidate("ours, several, mina", ("fragments", "gain", "mina"), "several"),
)


def default() -> Candidate:
    """The default of `olaf simulate mina`."""
    wanted = (("fragments", "gain", Cluster().sharing), default_join())
    return next(each for each in CANDIDATES if (each.policies, each.join) == wanted)


@dataclass(frozen=True)
class Setting:
    """A line of the tables."""

    name: str
    compute_speed: float
    capacity: str
    topology: str
    sizes: Sizes | None
    """None: the given list."""

    def case(self, given: Parameters, candidate: Candidate) -> Case:
        """For the simulator."""
        return Case(
            *candidate.policies, topology=self.topology, bandwidth_gbit=given.bandwidth_gbit,
            speedup=given.speedup, latency_us=given.latency_us, compute_speed=self.compute_speed,
            capacity=self.capacity, join=candidate.join,
        )  # fmt: skip


def settings_of(given: Parameters) -> tuple[Setting, list[Setting]]:
    """The authors' setting, then those in which all-reduces matter."""
    theirs = Setting("authors' list, as recorded", 1.0, "port:1", "fat-tree:16", None)
    harder = [
        Setting(
            f"x{speed:g}, {sizes.name} hosts, {shape.name}",
            speed, shape.capacity, shape.topology, sizes,
        )
        for speed, sizes, shape in product(given.compute_speeds, given.sizes, given.clusters)
    ]  # fmt: skip
    return theirs, harder


@dataclass(frozen=True)
class Measured:
    """Runs by setting and candidate, one per seed."""

    theirs: Setting
    harder: list[Setting]
    runs: dict[tuple[str, str], list[Ran]]

    def score(self, setting: Setting, candidate: Candidate) -> Spread:
        """Plain score: every job has the same weight."""
        return Spread.of([ran.score for ran in self.runs[setting.name, candidate.name]])

    def by_hosts(self, setting: Setting, candidate: Candidate) -> Spread:
        """Score with each job weighted by its hosts."""
        runs = self.runs[setting.name, candidate.name]
        return Spread.of([ran.summary.score_by_hosts or 0.0 for ran in runs])

    def headroom(self, setting: Setting) -> Spread:
        """Share of the jobs' time that aggregation could save at most."""
        return Spread.of([ran.summary.headroom for ran in self.runs[setting.name, "skip"]])

    def best(self, setting: Setting, of: Callable[[Setting, Candidate], Spread]) -> float:
        """The best score of those that may become the default."""
        return max(of(setting, each).mean for each in CANDIDATES if each.ours)

    def shortfall(self, candidate: Candidate, of: Callable[[Setting, Candidate], Spread]) -> float:
        """The largest distance from the best in a setting."""
        return max(self.best(each, of) - of(each, candidate).mean for each in self.harder)


def chosen(measured: Measured) -> Candidate:
    """The rule that chooses the default.

    Among our candidates, it takes the one with the smallest largest shortfall: in its worst
    setting, its plain score is closest to the best of ours there. Of shortfalls that are equal to
    two decimals, it takes the one that is smaller by hosts.
    """
    return min(
        (each for each in CANDIDATES if each.ours),
        key=lambda each: (
            round(measured.shortfall(each, measured.score), 2),
            measured.shortfall(each, measured.by_hosts),
        ),
    )


def run(task: Task[Parameters]) -> Result:
    """Measure every candidate in every setting."""
    given, data = task.parameters, task.parameters.data
    theirs, harder = settings_of(given)
    bench = Bench(data, task.seeds, task.say)
    listed = data.given(given.job_list, given.mix, given.listed_jobs)
    for candidate in CANDIDATES:
        bench.want_given(theirs.case(given, candidate), "listed", listed)
        for setting in harder:
            bench.want(setting.case(given, candidate), list_name(setting), lists(setting, given))
    bench.run()
    runs = {
        (setting.name, each.name): bench.of(setting.case(given, each), list_name(setting))
        for setting in harder
        for each in CANDIDATES
    }
    for each in CANDIDATES:
        runs[theirs.name, each.name] = bench.of_given(theirs.case(given, each), "listed")
    measured = Measured(theirs, harder, runs)
    winner = chosen(measured)
    return Result(
        rows=rows(measured, winner),
        data=f"{data.words}. Jobs: {data.whence(given.job_list)}, and lists drawn by seed",
        charts=charts(given, measured),
        tables=[scores(measured), differences(measured), rule(measured, winner)],
        notes=notes(measured, winner),
    )


def list_name(setting: Setting) -> str:
    """Settings with jobs of the same sizes have the same lists."""
    return setting.sizes.name if setting.sizes else "listed"


def lists(setting: Setting, given: Parameters) -> Callable[[int], Sequence[Job]]:
    """The lists of a setting, by seed."""
    if setting.sizes is None:
        raise ValueError("the given list is drawn by no seed")
    mix, data = setting.sizes.mix(), given.data
    return lambda seed: data.drawn(mix, given.jobs, seed)


def rows(measured: Measured, winner: Candidate) -> list[Row]:
    """How easy the authors' setting is, and the candidates' scores in the others."""
    theirs = measured.theirs
    by_name = {each.name: each for each in CANDIDATES}

    def row(quantity: str, where: str, ours: Spread, **more: object) -> Row:
        return Row(quantity=quantity, where=where, ours=ours, **{"digits": 4, **more})  # type: ignore[arg-type]

    in_percent = Spread.of([100 * value for value in measured.headroom(theirs).values])
    listed = [
        row("what all aggregation is worth, of the jobs' time", theirs.name, in_percent,
            unit="%", digits=2),
        *(row("score", f"{theirs.name}: {name}", measured.score(theirs, by_name[name]))
          for name in ("skip", "baseline", "MINA", default().name)),
    ]  # fmt: skip
    return [
        *listed,
        *(row("score, mean of the settings", each.name, over(measured, each), digits=3)
          for each in CANDIDATES),
        *(row("score, largest shortfall in a setting against the best of ours", each.name,
              Spread.of([measured.shortfall(each, measured.score)] * len(in_percent.values)),
              digits=3, headline=each in (default(), winner))
          for each in CANDIDATES if each.ours),
    ]  # fmt: skip


def over(measured: Measured, candidate: Candidate) -> Spread:
    """The mean over the settings, by seed."""
    by_setting = [measured.score(each, candidate).values for each in measured.harder]
    return Spread.of([sum(seed) / len(seed) for seed in zip(*by_setting, strict=True)])


def charts(given: Parameters, measured: Measured) -> list[Chart]:
    """Each candidate's loss against the best in a setting, one map per compute speed."""
    drawn = []
    ticks = [each.name.removeprefix("ours, ").replace(", ", "\n") for each in CANDIDATES]
    for at, speed in enumerate(given.compute_speeds):
        shown = [each for each in measured.harder if each.compute_speed == speed]
        series = []
        for setting in shown:
            means = [measured.score(setting, each).mean for each in CANDIDATES]
            points = [(float(x), max(means) - mean) for x, mean in enumerate(means)]
            name = setting.name.partition(", ")[2]
            series.append(Series(name=f"{name} (best {max(means):.2f})", points=points))
        drawn.append(
            Chart(
                name="" if at == 0 else f"x{speed:g}", kind="map", series=series,
                title=f"Score lost against the best, computation x{speed:g}",
                x="", y="", ticks=ticks,
            )
        )  # fmt: skip
    return drawn


def scores(measured: Measured) -> Table:
    """Plain and by hosts."""

    def cells(setting: Setting) -> list[str | Spread | float | None]:
        return [f"{measured.headroom(setting).mean:.1%}", *(
            f"{plus_minus(measured.score(setting, each))}"
            f" / {measured.by_hosts(setting, each).mean:.3f}"
            for each in CANDIDATES
        )]  # fmt: skip

    return Table(
        title="Score by setting: plain, mean ± 95 % / by hosts",
        columns=[
            Column(name="setting"), Column(name="aggregation is worth"),
            *(Column(name=each.name) for each in CANDIDATES),
        ],
        rows=[[each.name, *cells(each)] for each in (measured.theirs, *measured.harder)],
        note="*Aggregation is worth* the share of the jobs' time that is saved if every all-reduce "
        "of every job is summed by the switches. The authors' list is one list: there the seeds "
        "draw candidates for trees only.",
    )  # fmt: skip


def differences(measured: Measured) -> Table:
    """Scores minus the default's, list by list."""
    against = default()

    def cell(setting: Setting, candidate: Candidate) -> str:
        base = measured.score(setting, against).values
        mine = measured.score(setting, candidate).values
        paired = Spread.of([a - b for a, b in zip(mine, base, strict=True)])
        sure = abs(paired.mean) > paired.half_width
        words = plus_minus(paired, signed=True)
        return f"**{words}**" if sure else words

    others = [each for each in CANDIDATES if each is not against]
    return Table(
        title=f"Plain score less that of the default ({against.name}), list by list: mean ± 95 %",
        columns=[Column(name="setting"), *(Column(name=each.name) for each in others)],
        rows=[[each.name, *(cell(each, other) for other in others)] for each in measured.harder],
        note="In bold where the interval does not hold 0.",
    )


def rule(measured: Measured, winner: Candidate) -> Table:
    """The numbers that choose the default."""
    ours = [each for each in CANDIDATES if each.ours]

    def worst(candidate: Candidate) -> Setting:
        return max(
            measured.harder,
            key=lambda each: (
                measured.best(each, measured.score) - measured.score(each, candidate).mean
            ),
        )

    return Table(
        title="Which of ours deserves to be the default",
        columns=[
            Column(name="policy"), Column(name="mean score", digits=3),
            Column(name="largest shortfall", digits=3), Column(name="in"),
            Column(name="largest shortfall by hosts", digits=3), Column(name=""),
        ],
        rows=[
            [
                each.name, over(measured, each).mean, measured.shortfall(each, measured.score),
                worst(each).name, measured.shortfall(each, measured.by_hosts),
                ", ".join(
                    [*(["chosen by the rule"] if each is winner else []),
                     *(["the default"] if each is default() else [])]
                ),
            ]
            for each in ours
        ],
        note="The rule: of ours, the policy whose plain score is least behind the best of ours in "
        "the setting that suits the policy least. Of shortfalls that are equal to two decimals, "
        "the one that is smaller by hosts.",
    )  # fmt: skip


def notes(measured: Measured, winner: Candidate) -> list[str]:
    """Remarks about this run for the reader."""
    said = []
    if winner is not default():
        said.append(
            f"In this run the rule chooses {winner.name}, and the default is {default().name}."
        )
    by_name = {each.name: each for each in CANDIDATES}
    bad, good = by_name["ours, several, mina"], by_name["ours, several, greedy"]
    lost = max(
        measured.harder,
        key=lambda each: measured.score(each, good).mean - measured.score(each, bad).mean,
    )
    said.append(
        "`--sharing mina` lets one job of a sharing group use the switches at a time, in conflict "
        "or not. With `--join several` nearly all jobs are one group, so that nearly all of the "
        f"cluster waits for one job: in `{lost.name}` the pair comes to "
        f"{measured.score(lost, bad).mean:.3f}, greedy sharing of the same trees to "
        f"{measured.score(lost, good).mean:.3f}. `olaf simulate mina` warns of the pair."
    )
    return said


def plus_minus(spread: Spread, *, signed: bool = False) -> str:
    """``0.841 ± 0.004``."""
    mean = f"{spread.mean:+.3f}" if signed else f"{spread.mean:.3f}"
    return f"{mean} ± {spread.half_width:.3f}" if len(spread.values) > 1 else mean
