"""MINA §V-B, Figure 11: baseline, MINA and ours over mixes of jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from olaf.experiments import Baseline, Chart, Column, Result, Row, Series, Spread, Table, Task
from olaf.experiments.mina.data import Data
from olaf.experiments.mina.measuring import (
    AUTHORS,
    BASELINE,
    OURS,
    SKIP,
    Bench,
    Case,
    Given,
    Ran,
    spread,
)
from olaf.schedule.mixes import Mix
from olaf.schedule.reading import Job


class Named(BaseModel):
    """A mix of the figure."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    name: str
    job_list: str
    """Name of a list in the data that replaces the mix; empty: none."""
    mix: Mix

    def jobs(self, data: Data, count: int, seed: int) -> Sequence[Job]:
        """The jobs of this seed."""
        if self.job_list in data.lists:
            return data.given(self.job_list, self.mix, count)
        return data.drawn(self.mix, count, seed)


class Parameters(Given):
    """The cluster and the mixes."""

    jobs: int = Field(ge=1)
    """Number of jobs in a list."""
    mixes: list[Named] = Field(min_length=1)
    """Mixes of jobs."""


@dataclass(frozen=True)
class Measured:
    """Runs by mix, one per seed."""

    baseline: list[list[Ran]]
    authors: list[list[Ran]]
    port_baseline: list[list[Ran]]
    port_authors: list[list[Ran]]
    ours: list[list[Ran]]
    skip: list[list[Ran]]


def run(task: Task[Parameters]) -> Result:
    """Five settings on every mix."""
    given, data = task.parameters, task.parameters.data
    cases = [
        given.case(*BASELINE, conflicts="switch"),
        given.case(*AUTHORS, conflicts="switch"),
        given.case(*BASELINE),
        given.case(*AUTHORS),
        given.case(*OURS),
        given.case(*SKIP),
    ]
    bench = Bench(data, task.seeds, task.say)
    for named in given.mixes:
        for case in cases:
            bench.want(case, named.name, lists(named, data, given.jobs))
    bench.run()
    measured = Measured(*([bench.of(case, named.name) for named in given.mixes] for case in cases))
    lists_there = [named.job_list for named in given.mixes if named.job_list in data.lists]
    return Result(
        rows=rows(task, measured),
        data=f"{data.words}. Jobs: "
        + (f"the lists {' and '.join(lists_there)}; the others" if lists_there else "all")
        + " drawn by seed from the mixes",
        charts=[scores(given, measured), uses(given, measured)],
        tables=[table(given, measured, cases)],
    )  # fmt: skip


def lists(named: Named, data: Data, count: int) -> Callable[[int], Sequence[Job]]:
    """The lists of a mix, by seed."""
    return lambda seed: named.jobs(data, count, seed)


def over_mixes(
    by_mix: Sequence[Sequence[Ran]], of: Callable[[Ran], float],
    together: Callable[[list[float]], float],
) -> Spread:  # fmt: skip
    """One value per seed, over all mixes."""
    return Spread.of([together([of(ran) for ran in seed]) for seed in zip(*by_mix, strict=True)])


def mean(values: list[float]) -> float:
    """The mean of one seed's values."""
    return sum(values) / len(values)


def times(measured: Measured, together: Callable[[list[float]], float]) -> Spread:
    """MINA's use of the switches divided by the baseline's, by seed."""
    by_seed = zip(
        zip(*measured.authors, strict=True), zip(*measured.baseline, strict=True), strict=True
    )
    return Spread.of(
        [
            together([a.utilisation / b.utilisation for a, b in zip(*seed, strict=True)
                      if b.utilisation > 0] or [1.0])
            for seed in by_seed
        ]
    )  # fmt: skip


def rows(task: Task[Parameters], measured: Measured) -> list[Row]:
    """The paper's averages, then ours."""
    paper = task.paper

    def score(ran: Ran) -> float:
        return ran.score

    base = over_mixes(measured.baseline, score, mean)

    def row(
        where: str, value: Spread, printed: float | None = None, *, quantity: str = "score",
        baseline: Baseline | None = None, digits: int = 4,
    ) -> Row:  # fmt: skip
        return Row(
            quantity=quantity, where=where, ours=value, paper=printed, baseline=baseline,
            # Eight of the ten mixes are ours, so that no average is of the paper's jobs.
            comparable=printed is None, digits=digits,
        )  # fmt: skip

    against = Baseline(name="the baseline", paper=paper["baseline_average"], ours=base)
    one = Baseline(name="1", paper=1.0, ours=1.0)
    switch = "by switch: "
    return [
        row(switch + "baseline, average of ten mixes", base, paper["baseline_average"]),
        row(switch + "MINA, average of ten mixes", over_mixes(measured.authors, score, mean),
            paper["average"], baseline=against),
        row(switch + "MINA, best mix", over_mixes(measured.authors, score, max), paper["best"],
            baseline=against),
        row(switch + "MINA, worst mix", over_mixes(measured.authors, score, min)),
        row(switch + "MINA over the baseline, average", times(measured, mean),
            paper["utilisation_times"],
            quantity="utilisation of the switches", baseline=one, digits=2),
        row(switch + "MINA over the baseline, best mix", times(measured, max),
            paper["utilisation_times_best"],
            quantity="utilisation of the switches", baseline=one, digits=2),
        row("by port: baseline, average", over_mixes(measured.port_baseline, score, mean)),
        row("by port: MINA, average", over_mixes(measured.port_authors, score, mean)),
        row("by port: MINA, worst mix", over_mixes(measured.port_authors, score, min)),
        row("by port: ours, average", over_mixes(measured.ours, score, mean)),
        row("by port: ours, worst mix", over_mixes(measured.ours, score, min)),
        row("by port: the baseline that skips jobs without gain, average",
            over_mixes(measured.skip, score, mean)),
        row("by port: the baseline that skips jobs without gain, worst mix",
            over_mixes(measured.skip, score, min)),
        row("average of ten mixes",
            over_mixes(measured.skip, lambda ran: 100 * ran.summary.headroom, mean),
            quantity="what all aggregation together is worth, % of the jobs' time", digits=2),
    ]  # fmt: skip


def drawn(name: str, by_mix: Sequence[Sequence[Ran]], of: Callable[[Ran], float]) -> Series:
    """Bars of one setting."""
    spreads = [spread(runs, of) for runs in by_mix]
    return Series(
        name=name,
        points=[(float(at), each.mean) for at, each in enumerate(spreads)],
        low=[each.low for each in spreads],
        high=[each.high for each in spreads],
    )


def chart(given: Parameters, measured: Measured, of: Callable[[Ran], float], **words: Any) -> Chart:
    """A group of bars for each mix."""
    return Chart(
        **words, x="mix", kind="bars", from_zero=True,
        ticks=[named.name.replace(" ", "\n") for named in given.mixes],
        series=[
            drawn("baseline, by switch", measured.baseline, of),
            drawn("MINA, by switch", measured.authors, of),
            drawn("baseline, by port", measured.port_baseline, of),
            drawn("MINA, by port", measured.port_authors, of),
            drawn("ours, by port", measured.ours, of),
        ],
    )  # fmt: skip


def scores(given: Parameters, measured: Measured) -> Chart:
    """The paper's upper half."""
    return chart(
        given, measured, lambda ran: ran.score, title="Score over mixes of jobs", y="score"
    )


def uses(given: Parameters, measured: Measured) -> Chart:
    """The paper's lower half."""
    return chart(
        given, measured, lambda ran: ran.utilisation, name="utilisation", y="share",
        title="How long the switches sum for a job, of its running time",
    )  # fmt: skip


def table(given: Parameters, measured: Measured, cases: Sequence[Case]) -> Table:
    """The table by mix."""
    settings = [
        ("baseline, by switch", measured.baseline), ("MINA, by switch", measured.authors),
        ("baseline, by port", measured.port_baseline), ("MINA, by port", measured.port_authors),
        ("ours, by port", measured.ours), ("skips jobs without gain, by port", measured.skip),
    ]  # fmt: skip
    return Table(
        title="By mix",
        columns=[
            Column(name="mix"), Column(name="at stake, %", digits=2), Column(name="setting"),
            Column(name="score", digits=4),
            Column(name="worst decile", digits=3), Column(name="utilisation", digits=3),
            Column(name="tree changes a job", digits=2), Column(name="hosts busy, %", digits=1),
        ],
        rows=[
            [
                named.name, spread(by_mix[at], lambda ran: 100.0 * ran.summary.headroom), name,
                spread(by_mix[at], lambda ran: ran.score),
                spread(by_mix[at], lambda ran: ran.summary.worst_decile or 0.0),
                spread(by_mix[at], lambda ran: ran.utilisation),
                spread(by_mix[at], lambda ran: ran.migrations),
                spread(by_mix[at], lambda ran: 100.0 * ran.summary.hosts_busy),
            ]
            for at, named in enumerate(given.mixes)
            for name, by_mix in settings
        ],
        note="Baseline is "
        + "; MINA ".join(case.words for case in cases[:2])
        + f"; ours {cases[-2].words}; the last of each mix {cases[-1].words}. *At stake* is what "
        "all aggregation together could save of the jobs' time.",
    )  # fmt: skip
