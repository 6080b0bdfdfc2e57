"""MINA §V-C, Figure 14: how many candidates for a job's tree suffice, and their cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from olaf.experiments import Baseline, Chart, Column, Goal, Result, Row, Series, Spread, Table, Task
from olaf.experiments.mina.measuring import Bench, Case, Listed, Ran, spread

MEDIAN_GOAL_MS, P99_GOAL_MS = 1.0, 20.0
ALL = 0
CLOSE = 0.02
"""A score this close to the best of all numbers of candidates is close to it."""


class Parameters(Listed):
    """The cluster, the jobs and the numbers of candidates."""

    candidates: list[Annotated[int, Field(ge=0)]] = Field(min_length=1)
    """Candidate trees per job; 0: all."""


def run(task: Task[Parameters]) -> Result:
    """Measure MINA's trees and ours with every number of candidates, then ours by default."""
    given = task.parameters
    jobs = given.first(given.jobs)
    policies = {
        "MINA's trees, by switch": given.case("fragments", "mina", "greedy", conflicts="switch"),
        "MINA's trees, by port": given.case("fragments", "mina", "greedy"),
        "our trees, by port": given.case("fragments", "gain", "greedy"),
    }
    usual = policies["our trees, by port"]
    bench = Bench(given.data, task.seeds, task.say)
    for case in [usual, *(case for policy in policies.values() for case in cases(given, policy))]:
        bench.want_given(case, "all", jobs)
    bench.run()
    runs = {
        name: [bench.of_given(case, "all") for case in cases(given, policy)]
        for name, policy in policies.items()
    }
    return Result(
        rows=rows(task, runs, bench.of_given(usual, "all"), comparable=given.comparable),
        data=given.words,
        charts=[
            chart(given, runs, lambda ran: ran.score, title="Score by candidates", y="score"),
            chart(
                given, runs, mean_ms, name="time", y="ms", y_scale="log",
                title="Time to choose trees by candidates, mean over arrivals",
            ),
        ],
        tables=[table(given, runs, bench.of_given(usual, "all"))],
    )  # fmt: skip


def cases(given: Parameters, policy: Case) -> list[Case]:
    """By number of candidates."""
    return [replace(policy, candidates=number) for number in given.candidates]


def mean_ms(ran: Ran) -> float:
    """Mean time to choose trees at an arrival, in ms."""
    return sum(ran.costs.trees_ns) / len(ran.costs.trees_ns) / 1e6


def percentile_ms(ran: Ran, share: float) -> float:
    """Percentile of the times to choose trees at an arrival, in ms."""
    ordered = sorted(ran.costs.trees_ns)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] / 1e6


def rows(
    task: Task[Parameters], runs: dict[str, list[list[Ran]]], usual: Sequence[Ran], *,
    comparable: bool,
) -> list[Row]:  # fmt: skip
    """Whether few candidates suffice, and whether our policy is fast."""
    numbers = task.parameters.candidates
    enough = task.paper["enough"]
    told = []
    for name, by_number in runs.items():
        best = max(spread(each, lambda ran: ran.score).mean for each in by_number)
        if enough in numbers:
            told.append(
                Row(
                    quantity=f"score with {enough} candidates, less the best of all numbers",
                    where=name, digits=4, headline=name.startswith("MINA"),
                    ours=below(by_number[numbers.index(enough)], best),
                    baseline=Baseline(name=f"-{CLOSE:g}", ours=-CLOSE), direction="above",
                    comparable=comparable, note="the paper: close to the best from 5 on",
                )
            )  # fmt: skip
        if 1 in numbers:
            told.append(
                Row(
                    quantity="score with one candidate, less the best of all numbers",
                    where=name, digits=4, headline=False,
                    ours=below(by_number[numbers.index(1)], best),
                )
            )  # fmt: skip
    for name, measure, goal in (
        ("median", 0.5, MEDIAN_GOAL_MS),
        ("99th percentile", 0.99, P99_GOAL_MS),
    ):
        told.append(
            Row(
                quantity=f"time to choose trees at an arrival, {name}",
                where="our trees, by port, usual number of candidates", unit="ms",
                ours=Spread.of([percentile_ms(ran, measure) for ran in usual]),
                goal=Goal(at_most=goal) if comparable else None,
                note="authors' code: 10 to 360 ms on average" if comparable else "",
            )
        )  # fmt: skip
    return told


def below(runs: Sequence[Ran], best: float) -> Spread:
    """Scores minus others."""
    return Spread.of([ran.score - best for ran in runs])


def chart(
    given: Parameters, runs: dict[str, list[list[Ran]]], of: Callable[[Ran], float], **words: Any
) -> Chart:
    """A curve for each policy."""
    series = []
    for policy, by_number in runs.items():
        spreads = [spread(each, of) for each in by_number]
        series.append(
            Series(
                name=policy,
                points=[(float(at), each.mean) for at, each in enumerate(spreads)],
                low=[each.low for each in spreads],
                high=[each.high for each in spreads],
            )
        )
    return Chart(
        **words, x="candidates for each job's tree", marked=True, series=series,
        ticks=["all" if number == ALL else str(number) for number in given.candidates],
    )  # fmt: skip


def table(given: Parameters, runs: dict[str, list[list[Ran]]], usual: Sequence[Ran]) -> Table:
    """Score, time and migrations."""

    def cells(each: Sequence[Ran]) -> list[Spread | float | str | None]:
        return [
            spread(each, lambda ran: ran.score),
            spread(each, mean_ms),
            spread(each, lambda ran: percentile_ms(ran, 0.5)),
            spread(each, lambda ran: percentile_ms(ran, 0.99)),
            spread(each, lambda ran: ran.migrations),
        ]

    return Table(
        title="By candidates",
        columns=[
            Column(name="policy"), Column(name="candidates"), Column(name="score", digits=4),
            Column(name="mean, ms", digits=3), Column(name="median, ms", digits=3),
            Column(name="99th percentile, ms", digits=2),
            Column(name="tree changes a job", digits=2),
        ],
        rows=[
            *(
                [policy, "all" if number == ALL else str(number), *cells(each)]
                for policy, by_number in runs.items()
                for number, each in zip(given.candidates, by_number, strict=True)
            ),
            ["our trees, by port", "usual", *cells(usual)],
        ],
        note="Times are of an arrival, to choose trees.",
    )  # fmt: skip
