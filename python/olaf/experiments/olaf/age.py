"""Compares the three queues with the bound on average Age-of-Model: docs/design/006.

Time is counted in services: what the link takes for one datagram.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from olaf import _olaf, experiments
from olaf.errors.outcome import RunError
from olaf.experiments import (
    Baseline,
    Bound,
    Chart,
    Column,
    Goal,
    Result,
    Row,
    Series,
    Spread,
    Table,
    Task,
)
from olaf.experiments.olaf.least_age import Exact, least_age

QUEUES = ("fifo", "olaf", "freshest")
Sized: TypeAlias = dict[tuple[int, str], list[tuple[float, float]]]
"""By slots and queue: age in services and loss in percent, once per seed."""
WORKERS = 8
"""Workers in each cluster."""


class Setting(BaseModel):
    """Clusters that share a queue."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    clusters: int = Field(ge=1)
    slots: int = Field(ge=1)
    uneven: float = Field(default=1.0, ge=1.0)
    """Factor by which every second cluster sends more often than the others."""

    @property
    def name(self) -> str:
        """Name in rows and tables."""
        odd = f", every second {self.uneven:g}x as often" if self.uneven > 1 else ""
        return f"{self.clusters} clusters, {self.slots} slots{odd}"

    def rates(self, load: float) -> np.ndarray:
        """Arrivals of each cluster per service, shape (clusters,), float64."""
        weights = np.where(np.arange(self.clusters) % 2 == 0, self.uneven, 1.0)
        return np.asarray(load * weights / weights.sum())


class Sweep(BaseModel):
    """One load through queues of increasing size: in OLAF §8.1 FIFO's age grows with it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    clusters: int = Field(ge=1)
    slots: list[int] = Field(min_length=2)
    """Numbers of slots, in increasing order."""
    load: float = Field(gt=0)
    """Arrivals per service, all clusters together."""

    def setting(self, slots: int) -> Setting:
        """One size."""
        return Setting(clusters=self.clusters, slots=slots)


class Parameters(experiments.Parameters):
    """The settings and their loads."""

    loads: list[float] = Field(min_length=1)
    """Arrivals per service, all clusters together."""
    arrivals: int = Field(ge=100)
    """Number of arrivals of one trace."""
    rate: str
    """Bandwidth of the link, in tc's units."""
    bytes: int = Field(ge=1)
    """Bytes of a datagram."""
    goal: float
    """Goal: the age-optimal queue's age divided by the bound is at most this."""
    settings: list[Setting] = Field(min_length=1)
    """Clusters that share a queue. The first setting is drawn."""
    sweep: Sweep
    """The queue's size."""
    exact: list[Exact]
    """Small cases for which the best of all policies is computed."""


def run(task: Task[Parameters]) -> Result:
    """Replay the same arrivals through each queue."""
    given = task.parameters
    service_ns = round(given.bytes * 8e9 / _olaf.parse_rate(given.rate))
    ages: dict[tuple[int, float, str], list[float]] = defaultdict(list)
    losses: dict[tuple[int, float, str], list[float]] = defaultdict(list)
    sized: Sized = defaultdict(list)
    for seed in task.each_seed():
        for at, setting in enumerate(given.settings):
            task.say(f"seed {seed}: {setting.name}")
            for load in given.loads:
                trace = task.scratch / "trace.csv"
                write_trace(trace, setting.rates(load), given, service_ns, seed)
                for queue in QUEUES:
                    age, loss = replayed(trace, queue, setting, given)
                    ages[at, load, queue].append(age / service_ns)
                    losses[at, load, queue].append(100 * loss)
        task.say(f"seed {seed}: sizes of the queue")
        trace = task.scratch / "trace.csv"
        write_trace(trace, given.sweep.setting(1).rates(given.sweep.load), given, service_ns, seed)
        for slots in given.sweep.slots:
            for queue in QUEUES:
                age, loss = replayed(trace, queue, given.sweep.setting(slots), given)
                sized[slots, queue].append((age / service_ns, 100 * loss))
    rows, tables = list(size_rows(given.sweep, sized)), [size_table(given.sweep, sized)]
    for at, setting in enumerate(given.settings):
        rows.append(worst_row(setting, given, {q: ages_of(ages, at, q) for q in QUEUES}))
        tables.append(table(at, setting, given, ages, losses))
    exact = []
    for case in given.exact:
        task.say(f"the best of all policies for {case.clusters} clusters")
        exact += [(case, load, least_age(case, load)) for load in case.loads]
    return Result(
        rows=rows,
        tables=[*tables, exact_table(exact)],
        charts=[chart(given, ages), size_chart(given.sweep, sized)],
        notes=NOTES,
        bounds=[
            Bound(
                quantity=f"average AoM, {given.settings[0].name}, load {load:g}",
                value=bound(given.settings[0].rates(load)),
                unit="services",
                why="no policy that cannot see the future gets below it; see the design note",
            )
            for load in (min(given.loads), max(given.loads))
        ],
    )


NOTES = [
    "*Ready bound*: every cluster always has fresh content, the link goes round: 1 + N/2. "
    "*Bound*: with the arrivals there are, each cluster is served the moment that is best for it, "
    "and the link is held to its rate only on average.",
    "Where few clusters share the link the bound is loose: it lets services of two clusters "
    "overlap, which a link cannot. The last table has the best of all policies, computed by value "
    "iteration in discrete time, beside the bound and beside the rule of the age-optimal queue.",
]


def write_trace(
    path: Path, rates: np.ndarray, given: Parameters, service_ns: int, seed: int
) -> None:
    """Poisson arrivals: clusters by their rates, workers at random."""
    chance = np.random.default_rng([seed, len(rates), round(1000 * rates.sum())])
    gaps = chance.exponential(1 / rates.sum(), given.arrivals)
    times = np.cumsum(gaps * service_ns).astype(np.int64)
    clusters = chance.choice(len(rates), given.arrivals, p=rates / rates.sum())
    workers = chance.integers(WORKERS, size=given.arrivals) + WORKERS * clusters
    numbers = np.arange(given.arrivals)
    columns = np.stack([times, clusters, workers, numbers], axis=1)
    with path.open("w", encoding="utf-8") as file:
        file.write("t_ns,cluster,worker,seq,reward,bytes\n")
        file.writelines(f"{t},{c},{w},{n},0,{given.bytes}\n" for t, c, w, n in columns.tolist())


def replayed(trace: Path, queue: str, setting: Setting, given: Parameters) -> tuple[float, float]:
    """Mean over the clusters of their average Age-of-Model, ns, and the loss, 0 to 1."""
    text = _olaf.replay(str(trace), engine=queue, slots=setting.slots, rate=given.rate, full=False)
    summary = json.loads(text)["summary"]
    ages = [c["aom_mean_ns"] for c in summary["clusters"]]
    if None in ages:
        raise RunError(
            f"{queue}, {setting.clusters} clusters: at most one update departed; set more arrivals"
        )
    return sum(ages) / len(ages), summary["loss"]


def bound(rates: np.ndarray) -> float:
    """Smallest average age, in services: docs/design/006 has the derivation.

    A cluster with Poisson arrivals at rate l that is served q times in a unit of time is at least
    1 + 1/(2q) + q/(2 l^2) old on average; the sum of all q is at most 1. The best q for a price c
    of a service is 1/sqrt(1/l^2 + 2c); the price is where the link is just full.
    """

    def served(price: float) -> np.ndarray:
        return 1 / np.sqrt(1 / rates**2 + 2 * price)

    low, high = 0.0, 0.0
    if rates.sum() > 1:
        high = float(len(rates)) ** 2
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if served(middle).sum() > 1 else (low, middle)
    q = served(high)
    return float(np.mean(1 + 1 / (2 * q) + q / (2 * rates**2)))


def ages_of(
    ages: dict[tuple[int, float, str], list[float]], at: int, queue: str
) -> dict[float, list[float]]:
    """By load."""
    return {load: values for (of, load, name), values in ages.items() if (of, name) == (at, queue)}


def worst_row(
    setting: Setting, given: Parameters, ages: dict[str, dict[float, list[float]]]
) -> Row:
    """The age-optimal queue's age divided by the bound, at the load with the largest ratio."""

    def over(queue: str, load: float) -> list[float]:
        least = bound(setting.rates(load))
        return [age / least for age in ages[queue][load]]

    load = max(given.loads, key=lambda load: sum(over("freshest", load)))
    olaf = Spread.of(over("olaf", load))
    return Row(
        quantity="average AoM over the bound, worst load",
        where=f"freshest, {setting.name}",
        ours=Spread.of(over("freshest", load)),
        goal=Goal(at_most=given.goal),
        note=f"at load {load:g}, where OLAF has {olaf.mean:.2f}",
    )


def table(
    at: int,
    setting: Setting,
    given: Parameters,
    ages: dict[tuple[int, float, str], list[float]],
    losses: dict[tuple[int, float, str], list[float]],
) -> Table:
    """All loads of a setting."""
    columns = ["load", "ready bound", "bound", *(f"{queue} AoM" for queue in QUEUES)]
    columns += [f"{queue} / bound" for queue in QUEUES]
    columns += [f"{queue} loss, %" for queue in QUEUES]
    digits = [1, 2, 2, 2, 2, 2, 3, 3, 3, 1, 1, 1]
    lines: list[list[Spread | float | str | None]] = []
    for load in given.loads:
        least = bound(setting.rates(load))
        means = [float(np.mean(ages[at, load, queue])) for queue in QUEUES]
        lost = [float(np.mean(losses[at, load, queue])) for queue in QUEUES]
        over = [mean / least for mean in means]
        lines.append([load, 1 + setting.clusters / 2, least, *means, *over, *lost])
    return Table(
        title=f"Average AoM in services, {setting.name}",
        columns=[Column(name=n, digits=d) for n, d in zip(columns, digits, strict=True)],
        rows=lines,
    )


def size_rows(sweep: Sweep, sized: Sized) -> Iterable[Row]:
    """Whether a larger queue makes models older, as the paper says of FIFO."""
    small, large = sweep.slots[0], sweep.slots[-1]
    for queue in QUEUES:
        ages = {slots: Spread.of([age for age, _ in sized[slots, queue]]) for slots in sweep.slots}
        yield Row(
            quantity=f"average AoM with {large} slots over that with {small}",
            where=f"{queue}, {sweep.clusters} clusters, load {sweep.load:g}",
            ours=Spread.ratio(ages[large], ages[small]),
            baseline=Baseline(name="1", ours=1.0) if queue == "fifo" else None,
            direction="above" if queue == "fifo" else None,
        )
    yield Row(
        quantity="average AoM, FIFO over OLAF",
        where=f"{sweep.clusters} clusters, load {sweep.load:g}, {large} slots each",
        ours=Spread.ratio(
            Spread.of([age for age, _ in sized[large, "fifo"]]),
            Spread.of([age for age, _ in sized[large, "olaf"]]),
        ),
    )


def size_table(sweep: Sweep, sized: Sized) -> Table:
    """Age and loss by the queue's size."""
    columns = [Column(name="slots", digits=0)]
    columns += [Column(name=f"{queue} AoM", digits=2) for queue in QUEUES]
    columns += [Column(name=f"{queue} loss, %", digits=1) for queue in QUEUES]
    lines: list[list[Spread | float | str | None]] = [
        [
            float(slots),
            *(Spread.of([age for age, _ in sized[slots, queue]]) for queue in QUEUES),
            *(Spread.of([lost for _, lost in sized[slots, queue]]) for queue in QUEUES),
        ]
        for slots in sweep.slots
    ]
    return Table(
        title=f"Average AoM in services by the queue's size, {sweep.clusters} clusters, "
        f"load {sweep.load:g}",
        columns=columns,
        rows=lines,
        note="A FIFO queue with more slots loses no less at this load, and what it sends has "
        "waited longer. OLAF has at most one update of a cluster in its queue: beyond as many "
        "slots as clusters it stays as it is.",
    )


def size_chart(sweep: Sweep, sized: Sized) -> Chart:
    """Ages by the queue's size."""

    def line(queue: str) -> Series:
        ages = [[age for age, _ in sized[slots, queue]] for slots in sweep.slots]
        return Series(
            name=queue,
            points=[(slots, float(np.mean(a))) for slots, a in zip(sweep.slots, ages, strict=True)],
            low=[min(a) for a in ages],
            high=[max(a) for a in ages],
        )

    return Chart(
        name="slots",
        title=f"Average AoM by the queue's size, {sweep.clusters} clusters, load {sweep.load:g}",
        x="slots",
        y="average AoM, services",
        x_scale="log",
        from_zero=True,
        marked=True,
        series=[line(queue) for queue in QUEUES],
    )


def exact_table(exact: list[tuple[Exact, float, tuple[float, float, float]]]) -> Table:
    """The best of all policies in the small cases."""
    names = ["clusters", "load", "bound", "best policy", "the queue's rule"]
    names += ["best / bound", "rule / best"]
    digits = [0, 1, 3, 3, 3, 3, 4]
    return Table(
        title="Average AoM in services where the best policy can be computed",
        columns=[Column(name=n, digits=d) for n, d in zip(names, digits, strict=True)],
        rows=[
            [float(case.clusters), load, least, best, rule, best / least, rule / best]
            for case, load, (least, best, rule) in exact
        ],
        note="In discrete time, for the bound and the policies alike.",
    )


def chart(given: Parameters, ages: dict[tuple[int, float, str], list[float]]) -> Chart:
    """The first setting."""
    setting = given.settings[0]
    series = []
    for queue in QUEUES:
        ratios = [
            [age / bound(setting.rates(load)) for age in ages[0, load, queue]]
            for load in given.loads
        ]
        series.append(
            Series(
                name=queue,
                points=[(x, float(np.mean(y))) for x, y in zip(given.loads, ratios, strict=True)],
                low=[min(y) for y in ratios],
                high=[max(y) for y in ratios],
            )
        )
    return Chart(
        title=f"Average AoM over the bound, {setting.name}",
        x="load, arrivals a service",
        y="average AoM / bound",
        x_scale="log",
        series=series,
    )
