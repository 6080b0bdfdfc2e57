"""MINA §V-D: how often trees move, and the cost of a move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from olaf.experiments import Baseline, Chart, Column, Goal, Result, Row, Series, Spread, Table, Task
from olaf.experiments.mina.measuring import Bench, Case, Listed, Ran, spread

MIGRATIONS_GOAL = 1.0


class Parameters(Listed):
    """The cluster, the jobs, and the cost of a move."""

    migration_ms: float = Field(ge=0)
    """Time that a job is without a tree while it changes trees."""
    prices: list[Annotated[float, Field(ge=0)]] = Field(min_length=1)
    """Prices of a change for which our trees are chosen."""


def run(task: Task[Parameters]) -> Result:
    """Measure every policy with free moves and with moves that take time."""
    given = task.parameters
    jobs = given.first(given.jobs)
    policies = cases(given)
    bench = Bench(given.data, task.seeds, task.say)
    for case in policies.values():
        bench.want_given(case, "all", jobs)
        bench.want_given(replace(case, migration_ms=given.migration_ms), "all", jobs)
    bench.run()
    free = {name: bench.of_given(case, "all") for name, case in policies.items()}
    slow = {
        name: bench.of_given(replace(case, migration_ms=given.migration_ms), "all")
        for name, case in policies.items()
    }
    return Result(
        rows=rows(task, free, slow, comparable=given.comparable),
        data=given.words,
        charts=[chart(given, free, slow)],
        tables=[table(given, free, slow)],
    )


def cases(given: Parameters) -> dict[str, Case]:
    """Cases by name; ours without a price uses the policy's default."""
    crowded = given.case("fragments", "gain", "plan", capacity="switch:1")
    return {
        "MINA, by switch": given.case("fragments", "mina", "mina", conflicts="switch"),
        "MINA, by port": given.case("fragments", "mina", "mina"),
        KEPT: given.case("fragments", "mina", "mina", keep=True),
        "ours": given.case("fragments", "gain", "plan"),
        **{priced(price): replace(crowded, price=price) for price in given.prices},
    }


KEPT = "MINA, by port, trees kept where that is as good"


def priced(price: float) -> str:
    """``ours, one job a switch, price 0.05``."""
    return f"ours, one job a switch, price {price:g}"


def downtime_s(ran: Ran, given: Parameters) -> float:
    """Time without a tree per job, as the paper computes it."""
    return ran.migrations * given.migration_ms / 1000


def rows(
    task: Task[Parameters], free: dict[str, list[Ran]], slow: dict[str, list[Ran]], *,
    comparable: bool,
) -> list[Row]:  # fmt: skip
    """Number and downtime, then the effect of the time on the score."""
    given, paper = task.parameters, task.paper
    told = []
    for name in ("MINA, by switch", "MINA, by port", KEPT, "ours"):
        printed = paper if name == "MINA, by switch" else {}
        none = Baseline(name="0", paper=0.0, ours=0.0) if printed else None
        told += [
            Row(
                quantity="changes of a tree a job", where=name, digits=2,
                paper=printed.get("per_job"), ours=spread(free[name], lambda ran: ran.migrations),
                comparable=comparable or not printed, baseline=none,
                goal=Goal(at_most=MIGRATIONS_GOAL) if name == "ours" and comparable else None,
            ),
            Row(
                quantity="time without a tree for that, a job", where=name, unit="s", digits=2,
                paper=printed.get("downtime_s"), baseline=none,
                ours=spread(free[name], lambda ran: downtime_s(ran, given)),
                comparable=comparable or not printed,
            ),
        ]  # fmt: skip
    differences = [
        Row(
            quantity=f"score, {given.migration_ms:g} ms a change, less score without",
            where=name, digits=4, headline=not name.startswith("ours, one"),
            ours=difference(slow[name], runs),
        )
        for name, runs in free.items()
    ]  # fmt: skip
    return [*told, *differences]


def difference(slow: Sequence[Ran], free: Sequence[Ran]) -> Spread:
    """The difference of scores, by seed."""
    return Spread.of([a.score - b.score for a, b in zip(slow, free, strict=True)])


def chart(given: Parameters, free: dict[str, list[Ran]], slow: dict[str, list[Ran]]) -> Chart:
    """Score against changes: a point for each policy, with free moves and with slow ones."""

    def points(runs: dict[str, list[Ran]], names: Sequence[str]) -> list[tuple[float, float]]:
        return [
            (
                spread(runs[name], lambda ran: ran.migrations).mean,
                spread(runs[name], lambda ran: ran.score).mean,
            )
            for name in names
        ]

    ours = [priced(price) for price in given.prices]
    authors = ["MINA, by switch", "MINA, by port", KEPT]
    moves = f"{given.migration_ms:g} ms a change"
    return Chart(
        title="Score against changes of trees", kind="points", marked=True,
        x="changes of a tree a job", y="score",
        series=[
            Series(name="MINA: by switch, by port, by port with trees kept",
                   points=points(free, authors)),
            Series(name=f"MINA, {moves}", points=points(slow, authors)),
            Series(name="ours, by port", points=points(free, ["ours"])),
            Series(name="ours, one job a switch, by price", points=points(free, ours)),
            Series(name=f"ours, one job a switch, by price, {moves}", points=points(slow, ours)),
        ],
    )  # fmt: skip


def table(given: Parameters, free: dict[str, list[Ran]], slow: dict[str, list[Ran]]) -> Table:
    """The table of all values."""
    return Table(
        title="Changes of trees",
        columns=[
            Column(name="policy"), Column(name="changes a job", digits=3),
            Column(name="moved", digits=0), Column(name="got one later", digits=0),
            Column(name="lost", digits=0), Column(name="downtime a job, s", digits=3),
            Column(name="score, no time", digits=4),
            Column(name=f"score, {given.migration_ms:g} ms", digits=4),
            Column(name="changes a job then", digits=3),
        ],
        rows=[
            [
                name,
                spread(runs, lambda ran: ran.migrations),
                spread(runs, lambda ran: ran.summary.migrations.moved),
                spread(runs, lambda ran: ran.summary.migrations.gained),
                spread(runs, lambda ran: ran.summary.migrations.lost),
                spread(runs, lambda ran: downtime_s(ran, given)),
                spread(runs, lambda ran: ran.score),
                spread(slow[name], lambda ran: ran.score),
                spread(slow[name], lambda ran: ran.migrations),
            ]
            for name, runs in free.items()
        ],
        note="Changes are all of a running job's; *downtime* is their number times the time of "
        "one, as the paper has it.",
    )  # fmt: skip
