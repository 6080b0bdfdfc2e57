"""MINA §V-C, Figure 13: where placement pays, by the number of links up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from olaf.experiments import Baseline, Chart, Column, Result, Row, Series, Spread, Table, Task
from olaf.experiments.mina.measuring import Bench, Case, Conflicts, Listed, Ran, spread

DOWN = "8,8,16"
PLACEMENTS = ("random", "first-fit", "fragments")


class Parameters(Listed):
    """The cluster, and its links up."""

    links_up: list[Annotated[int, Field(ge=1, le=64)]] = Field(min_length=1)
    """Links up of a rack's switch, and of a pod's; each has 8 down."""


@dataclass(frozen=True)
class Curve:
    """One setting at every ratio."""

    name: str
    runs: list[list[Ran]]
    """Runs by ratio, one per seed."""

    def spreads(self) -> list[Spread]:
        """The scores of the curve."""
        return [spread(runs, lambda ran: ran.score) for runs in self.runs]


def run(task: Task[Parameters]) -> Result:
    """Measure three placements at every ratio, with two policies for trees."""
    given = task.parameters
    jobs = given.first(given.jobs)
    bench = Bench(given.data, task.seeds, task.say)
    settings = {
        (trees, rule): {place: cases(given, place, trees, rule) for place in PLACEMENTS}
        for trees, rule in TREES
    }
    for by_place in settings.values():
        for each in by_place.values():
            for case in each:
                bench.want_given(case, "all", jobs)
    bench.run()
    curves = {
        setting: {
            place: Curve(place, [bench.of_given(case, "all") for case in each])
            for place, each in by_place.items()
        }
        for setting, by_place in settings.items()
    }
    return Result(
        rows=rows(task, curves, comparable=given.comparable),
        data=given.words,
        charts=[chart(given, setting, by_place) for setting, by_place in curves.items()],
        tables=[table(given, curves)],
    )


Setting = tuple[str, Conflicts]
TREES: tuple[Setting, ...] = (("mina", "switch"), ("gain", "capacity"))
WORDS: dict[Setting, str] = {
    ("mina", "switch"): "MINA's trees, conflicts by switch",
    ("gain", "capacity"): "our trees, conflicts by port",
}


def cases(given: Parameters, placement: str, trees: str, rule: Conflicts) -> list[Case]:
    """The cases, by ratio."""
    case = given.case(placement, trees, "greedy", conflicts=rule)
    return [replace(case, topology=f"fat-tree:{DOWN}:{up},{up}") for up in given.links_up]


def rows(
    task: Task[Parameters], curves: dict[Setting, dict[str, Curve]], *, comparable: bool
) -> list[Row]:
    """The gain over first fit: the largest and the mean over the ratios."""
    told: list[Row] = []
    none = Baseline(name="0", paper=0.0, ours=0.0)
    for setting, by_place in curves.items():
        printed = task.paper if setting == TREES[0] else {}
        better = by_seed(by_place["fragments"], by_place["first-fit"])
        measures: list[tuple[str, Callable[[Sequence[float]], float], str]] = [
            ("largest of the ratios", max, "largest"),
            ("mean of the ratios", lambda each: sum(each) / len(each), "mean"),
        ]
        for where, together, key in measures:
            paper = printed.get(key)
            told.append(
                Row(
                    quantity="score above first fit's, fewest fragments",
                    where=f"{WORDS[setting]}, {where}", paper=paper, digits=3,
                    ours=Spread.of([together(each) for each in better]),
                    baseline=none if paper is not None else None,
                    comparable=comparable or paper is None, headline=setting == TREES[0],
                )
            )  # fmt: skip
    for setting, by_place in curves.items():
        told += [
            Row(
                quantity=f"score, {up} of 8 links up",
                where=f"{place}, {WORDS[setting]}", ours=curve.spreads()[at], digits=4,
                headline=False,
            )
            for at, up in enumerate(task.parameters.links_up)
            if up in (min(task.parameters.links_up), max(task.parameters.links_up))
            for place, curve in by_place.items()
        ]  # fmt: skip
    return told


def by_seed(curve: Curve, other: Curve) -> list[list[float]]:
    """For each seed, one score minus the other, at every ratio."""
    pairs = zip(curve.runs, other.runs, strict=True)
    at_ratios = [[a.score - b.score for a, b in zip(ours, theirs, strict=True)]
                 for ours, theirs in pairs]  # fmt: skip
    return [list(seed) for seed in zip(*at_ratios, strict=True)]


def chart(given: Parameters, setting: Setting, by_place: dict[str, Curve]) -> Chart:
    """The paper's bars as lines."""
    series = []
    for place, curve in by_place.items():
        spreads = curve.spreads()
        series.append(
            Series(
                name=place,
                points=[(float(up), s.mean) for up, s in zip(given.links_up, spreads, strict=True)],
                low=[s.low for s in spreads],
                high=[s.high for s in spreads],
            )
        )
    return Chart(
        name="" if setting == TREES[0] else "-".join(setting),
        title=f"Score by links up: {WORDS[setting]}", marked=True,
        x="links up of a switch with 8 down", y="score", series=series,
    )  # fmt: skip


def table(given: Parameters, curves: dict[Setting, dict[str, Curve]]) -> Table:
    """All scores."""
    return Table(
        title="Scores",
        columns=[
            Column(name="trees"), Column(name="placement"),
            *(Column(name=f"8:{up}", digits=3) for up in given.links_up),
        ],
        rows=[
            [WORDS[setting], place, *curve.spreads()]
            for setting, by_place in curves.items()
            for place, curve in by_place.items()
        ],
    )  # fmt: skip
