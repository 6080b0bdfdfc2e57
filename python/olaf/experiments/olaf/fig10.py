"""OLAF §8.3, Figure 10: the age of two groups while SW1's link gets narrower."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias

from pydantic import Field

from olaf.experiments import Chart, Column, Result, Row, Series, Spread, Table, Task, ns3
from olaf.experiments.multihop import (
    FAIR,
    FIFO,
    FRESHEST,
    GROUPS,
    OLAF,
    PAPER,
    VIEWS,
    Group,
    Measured,
    Network,
    Variant,
    View,
    age_ms,
    fairness,
    measure_settings,
    peak_ms,
    percent,
)
from olaf.scenarios import Outcome

DRAWN = (FIFO, OLAF, PAPER, FAIR)


class Parameters(Network):
    """The network, and the rates of SW1's link."""

    ratios: list[Annotated[float, Field(gt=0)]] = Field(min_length=1)
    """SW1's rates, as fractions of ``sw1_bps``."""
    ns3_ratios: list[Annotated[float, Field(gt=0)]]
    """The fractions that also run in ns-3."""

    def at(self, ratio: float) -> Network:
        """The network with this rate of SW1's link."""
        return self.model_copy(update={"sw1_bps": round(self.sw1_bps * ratio)})


def run(task: Task[Parameters]) -> Result:
    """Measure four variants at every ratio, in both views."""
    given = task.parameters
    settings = {ratio: given.at(ratio) for ratio in given.ratios}
    measured = measure_settings(task.each_seed(), settings, [*DRAWN, FRESHEST])
    cases: list[ns3.Case] = [
        (f"{variant.name}, x1/x2 = {ratio:g}", given.at(ratio), variant, "ns-3")
        for ratio in given.ns3_ratios
        for variant in (FIFO, OLAF, PAPER)
    ]
    ns3_rows, ns3_tables, notes = ns3.beside(cases, task.seeds, task.say)
    own = [row for view in measured for row in rows(view, measured[view], task.paper)]
    return Result(
        rows=[*own, *ns3_rows],
        charts=[ages(measured["ns-3"]), indices(measured["ns-3"])],
        tables=[*(table(view, by_ratio) for view, by_ratio in measured.items()), *ns3_tables],
        notes=notes,
    )


ByRatio: TypeAlias = dict[float, Measured]


def rows(view: View, by_ratio: ByRatio, paper: dict[str, float]) -> list[Row]:
    """Ages at the narrowest link."""
    ratio = min(by_ratio)
    return [
        Row(
            quantity=f"AoM of a cluster of {group}",
            where=f"{variant.name}, x1/x2 = {ratio:g}, {view} view",
            unit="ms",
            paper=paper["s1_fifo_lowest"] if (variant, group) == (FIFO, "S1") else None,
            ours=age_ms(outcomes, group),
            headline=view == "ns-3",
            note="the paper: more than this" if (variant, group) == (FIFO, "S1") else "",
        )
        for variant, outcomes in by_ratio[ratio]
        for group in GROUPS
    ]


def ages(by_ratio: ByRatio) -> Chart:
    """The paper's plot: both groups of each variant."""

    def age_of(group: Group) -> Callable[[Sequence[Outcome]], Spread]:
        return lambda outcomes: age_ms(outcomes, group)

    return Chart(
        title="Average AoM of S1 and S2 while S1's link becomes narrower",
        x="rate of SW1's link over SW2's", y="AoM, ms", y_scale="log",
        series=[
            series(f"{variant.name}: {group}", variant, by_ratio, age_of(group))
            for variant in DRAWN
            for group in GROUPS
        ],
    )  # fmt: skip


def indices(by_ratio: ByRatio) -> Chart:
    """Fairness over the ratio."""
    return Chart(
        name="fairness",
        title="Jain's index of the clusters' average AoM",
        x="rate of SW1's link over SW2's", y="fairness",
        series=[
            series(variant.name, variant, by_ratio, fairness)
            for variant in DRAWN
        ],
    )  # fmt: skip


def series(
    name: str, variant: Variant, by_ratio: ByRatio, of: Callable[[Sequence[Outcome]], Spread]
) -> Series:
    """A variant's line over the ratios."""
    spreads = {ratio: of(dict(measured)[variant]) for ratio, measured in by_ratio.items()}
    return Series(
        name=name,
        points=[(ratio, spread.mean) for ratio, spread in spreads.items()],
        low=[spread.low for spread in spreads.values()],
        high=[spread.high for spread in spreads.values()],
    )


def table(view: View, by_ratio: ByRatio) -> Table:
    """All numbers that the plots leave out."""
    return Table(
        title=f"By ratio: {VIEWS[view]}",
        columns=[
            Column(name="x1/x2", digits=1), Column(name=""),
            Column(name="AoM S1, ms"), Column(name="AoM S2, ms"),
            Column(name="mean peak S1, ms"), Column(name="mean peak S2, ms"),
            Column(name="loss by packets, %"), Column(name="loss by contributions, %"),
            Column(name="fairness", digits=4),
        ],
        rows=[
            [
                ratio, variant.name,
                *(age_ms(outcomes, group) for group in GROUPS),
                *(peak_ms(outcomes, group) for group in GROUPS),
                percent(outcomes, lambda o: o.loss_packets),
                percent(outcomes, lambda o: o.loss_contributions),
                fairness(outcomes),
            ]
            for ratio, measured in by_ratio.items()
            for variant, outcomes in measured
        ],
    )  # fmt: skip
