"""The times of the verifier's provers, by number of clusters and horizon.

Every question is a family's: clusters of one worker that are all alike, one service a tick, and one
limit. The provers are asked themselves, without the runs that `olaf verify` tries first.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from math import ceil, floor
from typing import Literal

from pydantic import Field

from olaf import experiments
from olaf.experiments import Chart, Column, Series, Spread, Table
from olaf.verify import (
    PROVERS,
    Control,
    Instance,
    Kind,
    NoRun,
    Objective,
    Portfolio,
    Sender,
    UndecidedError,
)

TICK_NS = 1_000_000
"""Any would do: nothing depends on it but the unit of the limits."""
EDGE_S = 60.0


class Line(experiments.Parameters):
    """A family of questions, and the provers that are asked."""

    name: str
    group: Literal["phases", "jitter", "control"]
    """Freedom of the senders: phases, also lateness, or also which updates are sent."""
    kind: Literal["fair_peak", "worst_peak", "starvation"]
    prover: Literal["sweep", "timeline", "events", "all"]
    """``all``: the portfolio, as `olaf verify` asks."""
    slots: Literal["all", "half"]
    """A slot for each cluster, or for half of them."""
    limit: Literal["reached", "below"]
    """``reached`` by a run and exceeded by none, so that there is something to prove; or a little
    ``below`` that, so that there is a run to find. See `limit_of` for where it is not exact."""

    @property
    def title(self) -> str:
        """Family and prover."""
        return f"{self.name}: {self.prover}"


class Growth(experiments.Parameters):
    """Which questions."""

    timeout_s: float = Field(gt=0)
    """Time limit of a question about growth."""
    goal_timeout_s: float = Field(gt=0)
    """Time limit of a question about the goal."""
    clusters: list[int] = Field(min_length=1)
    """How many."""
    horizons: list[int] = Field(min_length=1)
    """Ticks."""
    intervals: list[int] = Field(min_length=1)
    """Ticks between two updates of a worker; the first seed takes the first. Seeds beyond the last
    ask nothing of the growth, and begin anew for the goal."""
    jitter: int = Field(ge=1)
    """Ticks, in the families with jitter."""
    goal_clusters: int = Field(ge=2)
    """Number of clusters of the goal."""
    goal_horizon: int = Field(ge=1)
    """Ticks, of the goal."""
    lines: list[Line] = Field(min_length=1)
    """The questions for each prover, by number of clusters and horizon."""


@dataclass(frozen=True)
class Taken:
    """The result of one question."""

    answer: Literal["holds", "violated", "gave up"]
    wall_s: float
    cpu_s: float


@dataclass
class Point:
    """One question with each interval."""

    line: Line
    clusters: int
    horizon: int
    taken: list[Taken] = field(default_factory=list)
    skipped: str = ""
    """Why it was not asked."""

    @property
    def gave_up(self) -> bool:
        """Whether any interval found no answer in time."""
        return any(each.answer == "gave up" for each in self.taken)


class Questions:
    """All points, asked interval by interval. What is larger than what timed out is not asked."""

    def __init__(self, given: Growth) -> None:
        self._given = given
        self.points = [
            Point(line, clusters, horizon)
            for line in given.lines
            for horizon in given.horizons
            for clusters in given.clusters
        ]

    def ask(self, turn: int) -> Iterator[str]:
        """Ask what is open with the interval whose turn it is; says what before each."""
        if turn >= len(self._given.intervals):
            return
        for point in self.points:
            if point.gave_up:
                continue
            if self._is_hopeless(point):
                point.skipped = "smaller ones timed out"
                continue
            instance = instance_of(point.line, point.clusters, point.horizon, turn, self._given)
            limit = limit_of(point.line, instance)
            if limit is None or limit >= point.horizon * TICK_NS:
                point.skipped = point.skipped or "nothing can be above the limit"
                continue
            yield f"{point.line.title}, {point.clusters} clusters, {point.horizon} ticks"
            point.taken.append(asked(point.line, instance, limit, self._given.timeout_s))

    def _is_hopeless(self, point: Point) -> bool:
        return any(
            other.gave_up
            for other in self.points
            if other is not point
            and other.line == point.line
            and other.clusters <= point.clusters
            and other.horizon <= point.horizon
        )


def instance_of(line: Line, clusters: int, horizon: int, turn: int, given: Growth) -> Instance:
    """An instance with clusters of one worker each; an update takes one tick on the link."""
    interval = given.intervals[turn % len(given.intervals)]
    slots = clusters if line.slots == "all" else max(1, clusters // 2)
    late = given.jitter if line.group == "jitter" else 0
    return Instance(
        tick_ns=TICK_NS,
        service=1,
        slots=slots,
        horizon=horizon,
        clusters=tuple(f"c{number}" for number in range(1, clusters + 1)),
        alike=(0,) * clusters,
        senders=tuple(Sender(cluster, interval, late) for cluster in range(clusters)),
        control=quota(clusters, slots, interval) if line.group == "control" else None,
    )


def quota(clusters: int, slots: int, threshold: int) -> Control:
    """OLAF §5 with an interval for a threshold, v = 1 / threshold and the smallest window."""
    share = Fraction(slots, clusters)
    window = share.denominator
    return Control(
        window=window,
        at_least=floor(share * window),
        at_most=ceil(share * window),
        threshold=threshold,
        forced=ceil(threshold * (2 - share)),
    )


def limit_of(line: Line, instance: Instance) -> Fraction | None:
    """The limit to ask about, ns; None where no run has a value.

    Without jitter and control it is the largest value of all runs, found by the sweep beforehand.
    With jitter it is interval + jitter + a service of each cluster, for an update waits for each
    other cluster's at most once, and a run reaches that; and between two clusters' means twice the
    jitter + the others' services, of which every run may have less. Both are passed where updates
    are lost: a queue of a slot for each cluster may be full, since the update on the wire holds
    one, as soon as the link is busy all the time. With control it is 2.5 intervals for the worst
    peak and 2 without a delivery: nobody knows the edge beforehand.
    """
    sender, count = instance.senders[0], len(instance.clusters)
    if line.group == "phases":
        edge = largest(line, instance)
    elif line.group == "control":
        intervals = Fraction(5, 2) if line.kind == "worst_peak" else Fraction(2)
        edge = intervals * sender.interval * TICK_NS
    elif line.kind == "worst_peak":
        edge = Fraction(sender.interval + sender.jitter + count) * TICK_NS
    else:
        edge = Fraction(2 * sender.jitter + count - 1) * TICK_NS
    if edge is None or line.limit == "reached":
        return edge
    return edge - 1 if edge > 0 else None


def largest(line: Line, instance: Instance) -> Fraction | None:
    """The largest value of all runs, ns."""
    from olaf.verify.sweep import Sweep

    sweep = Sweep(instance, objective_of(line, instance), forever=False)
    return sweep.maximum(time.monotonic() + EDGE_S).value


def objective_of(line: Line, instance: Instance) -> Objective:
    """An objective for all clusters. Each question has its own limit."""
    return Objective(Kind(line.kind), Fraction(0), tuple(range(len(instance.clusters))))


def asked(line: Line, instance: Instance, limit: Fraction, timeout_s: float) -> Taken:
    """One question to processes that were not there before."""
    begin = time.monotonic()
    provers = list(PROVERS) if line.prover == "all" else [line.prover]
    with Portfolio(provers) as portfolio:
        answer: Literal["holds", "violated", "gave up"]
        try:
            found, _ = portfolio.ask(
                [instance], objective_of(line, instance), limit, begin + timeout_s, line.title
            )
            answer = "holds" if isinstance(found, NoRun) else "violated"
        except UndecidedError:
            answer = "gave up"
    # After the end, so that the CPU time of provers without an answer counts too.
    return Taken(answer, time.monotonic() - begin, portfolio.cpu_seconds)


def table(points: Sequence[Point], timeout_s: float) -> Table:
    """Every point."""
    rows: list[list[Spread | float | str | None]] = []
    for (line, horizon, skipped), group in groupby(points, _alike):
        several = list(group)
        for point in several[:1] if skipped else several:
            last = several[-1].clusters if skipped else point.clusters
            clusters = str(point.clusters) + (f" .. {last}" if last > point.clusters else "")
            rows.append([line.name, line.prover, clusters, str(horizon), *_cells(point)])
    return Table(
        title="Time to an answer",
        columns=[
            Column(name="question"), Column(name="prover"), Column(name="clusters"),
            Column(name="horizon, ticks"), Column(name="answer"),
            Column(name="CPU, s", digits=2), Column(name="wall, s", digits=2),
        ],
        rows=rows,
        note=f"*Gave up* is after {timeout_s:g} s by the clock. The times are then lower bounds, "
        "an arrow in the plot; the other intervals were not asked any more, nor what is at least "
        "as large. The spread is over intervals. CPU is of all the prover's threads, its process's "
        "start included.",
    )  # fmt: skip


def _alike(point: Point) -> tuple[Line, int, str]:
    return point.line, point.horizon, "" if point.taken else point.skipped


def _cells(point: Point) -> list[Spread | float | str | None]:
    if not point.taken:
        return [f"not asked: {point.skipped}", None, None]
    answers = ", ".join(dict.fromkeys(each.answer for each in point.taken))
    cpu = Spread.of([each.cpu_s for each in point.taken])
    return [answers, cpu, Spread.of([each.wall_s for each in point.taken])]


def charts(points: Sequence[Point], given: Growth) -> list[Chart]:
    """Over clusters in the middle horizon, and over horizons at a middling number of clusters."""
    horizon = given.horizons[len(given.horizons) // 2]
    clusters = given.clusters[len(given.clusters) // 2 - 1]
    found = []
    for group, name in (("phases", "phases free"), ("jitter", "jitter"), ("control", "control")):
        of_group = [point for point in points if point.line.group == group]
        over_clusters = [(p.clusters, p) for p in of_group if p.horizon == horizon]
        over_horizons = [(p.horizon, p) for p in of_group if p.clusters == clusters]
        for stem, title, x, chosen in (
            (group, f"{name}, {horizon} ticks", "clusters", over_clusters),
            (f"{group}-horizon", f"{name}, {clusters} clusters", "horizon, ticks", over_horizons),
        ):
            found.append(
                Chart(
                    name=stem, title=f"Time to an answer: {title}", x=x, y="CPU, s", y_scale="log",
                    marked=True, series=_series(chosen),
                )
            )  # fmt: skip
    return found


def _series(chosen: Sequence[tuple[int, Point]]) -> list[Series]:
    lines = list(dict.fromkeys(point.line.title for _, point in chosen))
    series = []
    for title in lines:
        own = [(x, point) for x, point in chosen if point.line.title == title and point.taken]
        spreads = [(x, Spread.of([e.cpu_s for e in p.taken])) for x, p in own if not p.gave_up]
        series.append(
            Series(
                name=title,
                points=[(x, spread.mean) for x, spread in spreads],
                low=[spread.low for _, spread in spreads],
                high=[spread.high for _, spread in spreads],
                beyond=[(x, max(e.cpu_s for e in p.taken)) for x, p in own if p.gave_up],
            )
        )
    return series
