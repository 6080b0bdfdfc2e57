"""OLAF §8.1, Figure 6: the distribution of contributions per departing update."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from statistics import fmean as mean

from pydantic import Field

from olaf import experiments
from olaf.experiments import Baseline, Chart, Result, Row, Series, Spread, Task
from olaf.experiments.olaf.bursts import Counts, Traffic, replay, write_trace
from olaf.experiments.olaf.real_bursts import Measured, Real, measure, on_time


class Parameters(experiments.Parameters):
    """Traffic, queue and link, as for Table 1."""

    traffic: Traffic
    """Traffic of all workers."""
    queue: str
    """Discipline."""
    slots: int = Field(ge=1)
    """Slots of the queue, including the update on the wire."""
    rates: list[str] = Field(min_length=1)
    """Bandwidth of the uplink."""
    real: Real
    """Settings of the run over sockets."""


def run(task: Task[Parameters]) -> Result:
    """Replay each seed's traffic, then send it through a switch."""
    given = task.parameters
    virtual: dict[str, list[Counts]] = defaultdict(list)
    real: dict[str, list[Measured]] = defaultdict(list)
    trace = task.scratch / "trace.csv"
    for seed in task.each_seed():
        write_trace(trace, given.traffic, seed)
        for rate in given.rates:
            virtual[rate].append(replay(trace, given.queue, given.slots, rate, full=True))
        for rate in given.real.rates:
            task.say(f"seed {seed}: {rate} on sockets")
            real[rate].append(
                measure(
                    given.traffic, given.real, seed,
                    queue=given.queue, slots=given.slots, rate=rate,
                )
            )  # fmt: skip
    rows = []
    for rate, runs in virtual.items():
        rows += virtual_rows(rate, runs, task.paper)
    for rate, measured in real.items():
        counts = [one.counts for one in measured]
        rows.append(mean_row(rate, counts, task.paper, ", slowed down, real sockets"))
    return Result(
        rows=rows,
        charts=[chart(virtual)],
        notes=[on_time([one for runs in real.values() for one in runs])],
    )


def virtual_rows(rate: str, runs: list[Counts], paper: dict[str, float]) -> list[Row]:
    """The mean, and the share of departing updates that are merged."""
    merges = [100 * mean(n > 1 for n in one.contributors) for one in runs]
    many = [float(sorted(one.contributors)[len(one.contributors) * 9 // 10]) for one in runs]
    where = rate.replace("gbit", " Gbit/s")
    return [
        mean_row(rate, runs, paper, ""),
        Row(
            quantity="outgoing updates that are merges",
            where=where,
            unit="%",
            ours=Spread.of(merges),
            headline=False,
        ),
        Row(
            quantity="updates in an outgoing one, nine in ten carry at most",
            where=where,
            ours=Spread.of(many),
            headline=False,
        ),
    ]


def mean_row(rate: str, runs: list[Counts], paper: dict[str, float], how: str) -> Row:
    """Arrivals that were not lost, divided by departures."""
    theirs = paper.get(f"mean_{rate.removesuffix('gbit')}")
    return Row(
        quantity="updates for each outgoing one, mean",
        where=f"{rate.replace('gbit', ' Gbit/s')}{how}",
        paper=theirs,
        ours=Spread.of([(one.received + one.aggregated) / one.received for one in runs]),
        baseline=None if theirs is None else Baseline(name="no merging", paper=1.0, ours=1.0),
        headline=theirs is not None,
    )


def chart(virtual: dict[str, list[Counts]]) -> Chart:
    """The share of departing updates with at most this many contributions."""
    most = max(max(one.contributors) for runs in virtual.values() for one in runs)
    series = []
    for rate, runs in virtual.items():
        sizes = [sorted(one.contributors) for one in runs]
        shares = [[bisect_right(of, n) / len(of) for of in sizes] for n in range(most + 1)]
        series.append(
            Series(
                name=rate.replace("gbit", " Gbit/s"),
                points=[(float(n), mean(share)) for n, share in enumerate(shares)],
                low=[min(share) for share in shares],
                high=[max(share) for share in shares],
            )
        )
    return Chart(
        title="Updates in an outgoing one",
        x="updates merged into an outgoing one, itself included",
        y="share of outgoing updates with at most x updates",
        kind="step",
        series=series,
        from_zero=True,
    )
