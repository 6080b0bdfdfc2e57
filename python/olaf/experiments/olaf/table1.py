"""OLAF §8.1, Table 1: bursts of 27 workers before a narrower link."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import fmean as mean
from typing import Any

from pydantic import Field

from olaf import experiments
from olaf.experiments import Baseline, Bound, Column, Result, Row, Spread, Table, Task
from olaf.experiments.olaf.bursts import Counts, Order, Traffic, replay, write_trace
from olaf.experiments.olaf.real_bursts import Measured, Real, measure, on_time

QUEUES = ("fifo", "olaf", "freshest")
FITTED = "rate and length of the bursts"
"""FIFO's rows of the paper gave the bursts, which the paper does not print."""
Runs = dict[tuple[str, str], list[Counts]]
"""By rate and queue; one a seed."""


class Parameters(experiments.Parameters):
    """Traffic, queue and link."""

    traffic: Traffic
    """Traffic of all workers."""
    slots: int = Field(ge=1)
    """Slots of the queue, including the update on the wire."""
    rates: list[str] = Field(min_length=1)
    """Bandwidths of the uplink."""
    fit_bursts: list[int]
    """Burst lengths at which FIFO is looked at."""
    orders: list[Order]
    """Orders of the packets at which FIFO and OLAF are looked at."""
    heads: list[str]
    """And views of the update on the wire, as `olaf replay --head` has them."""
    real: Real
    """On sockets."""


def run(task: Task[Parameters]) -> Result:
    """Replay each seed's traffic, then send it through a switch."""
    given = task.parameters
    virtual: Runs = defaultdict(list)
    other: dict[tuple[str, str, str, str], list[Counts]] = defaultdict(list)
    real: dict[tuple[str, str], list[Measured]] = defaultdict(list)
    trace = task.scratch / "trace.csv"
    for seed in task.each_seed():
        write_trace(trace, given.traffic, seed)
        for rate in given.rates:
            for queue in QUEUES:
                virtual[rate, queue].append(replay(trace, queue, given.slots, rate))
        for case, counts in variants(given, trace, seed).items():
            other[case].append(counts)
        for rate in given.real.rates:
            for queue in QUEUES:
                task.say(f"seed {seed}: {queue} at {rate} on sockets")
                measured = measure(
                    given.traffic, given.real, seed, queue=queue, slots=given.slots, rate=rate
                )
                real[rate, queue].append(measured)
    counted: Runs = {case: [one.counts for one in runs] for case, runs in real.items()}
    return Result(
        rows=[
            *virtual_rows(virtual, task.paper),
            *real_rows(counted, task.paper, given.traffic.workers * given.real.packets),
        ],
        tables=[
            all_table("In virtual time", virtual, given.traffic.total),
            all_table("On real sockets", counted, given.traffic.workers * given.real.packets),
            variant_table(other),
            fit_table(given, trace, task),
        ],
        differences=[what_differs(virtual, other)],
        notes=[on_time([one for runs in real.values() for one in runs])],
        bounds=bounds(given),
    )


def variants(given: Parameters, trace: Path, seed: int) -> dict[tuple[str, str, str, str], Counts]:
    """Other orders and other heads, by order, head, rate and queue. The trace is overwritten."""
    found: dict[tuple[str, str, str, str], Counts] = {}
    for order in given.orders:
        write_trace(trace, given.traffic.model_copy(update={"order": order}), seed)
        for head in given.heads:
            for rate in given.rates:
                for queue in ("fifo", "olaf"):
                    counts = replay(trace, queue, given.slots, rate, head=head)
                    found[order, head, rate, queue] = counts
    return found


def printed(paper: dict[str, Any], name: str, rate: str) -> float | None:
    """The paper's numbers at that rate."""
    return paper.get(f"{name}_{rate.removesuffix('gbit')}")


def virtual_rows(runs: Runs, paper: dict[str, Any]) -> list[Row]:
    """The paper's table, and what it says of the age."""
    rows = []
    for rate in dict.fromkeys(rate for rate, _ in runs):
        fifo, olaf = runs[rate, "fifo"], runs[rate, "olaf"]
        where = f"{rate.removesuffix('gbit')} Gbit/s"
        for name, counts, value, unit in (
            ("received", fifo, [one.received for one in fifo], "updates"),
            ("received", olaf, [one.received for one in olaf], "updates"),
            ("aggregated", olaf, [one.aggregated for one in olaf], "updates"),
            ("loss", fifo, [100 * one.loss for one in fifo], "%"),
            ("loss", olaf, [100 * one.loss for one in olaf], "%"),
        ):
            queue = "fifo" if counts is fifo else "olaf"
            theirs = printed(paper, f"{name}_{queue}", rate)
            of_fifo = printed(paper, f"{name}_fifo", rate)
            row = Row(
                quantity={"loss": "update loss"}.get(name, f"updates {name}"),
                where=f"{queue.upper()}, {where}",
                unit=unit,
                paper=theirs,
                ours=Spread.of(value),
                headline=theirs is not None,
                fitted=FITTED if queue == "fifo" and theirs is not None else "",
            )
            if queue == "olaf" and of_fifo is not None:
                own = [one.received if name == "received" else 100 * one.loss for one in fifo]
                base = Baseline(name="FIFO", paper=of_fifo, ours=Spread.of(own))
                row = row.model_copy(update={"baseline": base})
            rows.append(row)
        rows += age_rows(runs, rate, where, paper)
    return rows


def age_rows(runs: Runs, rate: str, where: str, paper: dict[str, Any]) -> list[Row]:
    """By how much OLAF and the age-optimal queue lower the average AoM."""
    rows = []
    for queue in ("olaf", "freshest"):
        if (rate, queue) not in runs:
            continue
        pairs = zip(runs[rate, queue], runs[rate, "fifo"], strict=True)
        less = [100 * (1 - one.age_ns / fifo.age_ns) for one, fifo in pairs]
        theirs = printed(paper, "reduction", rate) if queue == "olaf" else None
        rows.append(
            Row(
                quantity="average AoM below FIFO's",
                where=f"{queue.upper() if queue == 'olaf' else queue}, {where}",
                unit="%",
                paper=theirs,
                ours=Spread.of(less),
                baseline=None if theirs is None else Baseline(name="FIFO", paper=0.0, ours=0.0),
                headline=theirs is not None,
            )
        )
    return rows


def real_rows(runs: Runs, paper: dict[str, Any], sent: int) -> list[Row]:
    """The same in shares of what was sent."""
    rows = []
    for rate in dict.fromkeys(rate for rate, _ in runs):
        where = f"{rate.removesuffix('gbit')} Gbit/s, slowed down, real sockets"
        fifo_loss = Spread.of([100 * one.loss for one in runs[rate, "fifo"]])
        for queue in ("fifo", "olaf"):
            counts = runs[rate, queue]
            received = printed(paper, f"received_{queue}", rate)
            rows.append(
                Row(
                    quantity="updates received, of those sent",
                    where=f"{queue.upper()}, {where}",
                    unit="%",
                    paper=None if received is None else 100 * received / 13500,
                    ours=Spread.of([100 * one.received / sent for one in counts]),
                    headline=False,
                    fitted=FITTED if queue == "fifo" and received is not None else "",
                )
            )
            loss, loss_fifo = (printed(paper, f"loss_{q}", rate) for q in (queue, "fifo"))
            rows.append(
                Row(
                    quantity="update loss",
                    where=f"{queue.upper()}, {where}",
                    unit="%",
                    paper=loss,
                    ours=Spread.of([100 * one.loss for one in counts]),
                    baseline=Baseline(name="FIFO", paper=loss_fifo, ours=fifo_loss)
                    if queue == "olaf" and loss_fifo is not None
                    else None,
                    fitted=FITTED if queue == "fifo" and loss is not None else "",
                )
            )
        rows += age_rows(runs, rate, where, paper)
    return rows


def all_table(title: str, runs: Runs, sent: int) -> Table:
    """Every rate and queue."""
    return Table(
        title=f"{title}, of {sent:,} updates sent",
        columns=[
            Column(name="uplink"),
            Column(name="queue"),
            Column(name="received", digits=0),
            Column(name="aggregated", digits=0),
            Column(name="loss, %", digits=1),
            Column(name="average AoM, µs", digits=2),
        ],
        rows=[
            [
                rate,
                queue,
                Spread.of([one.received for one in counts]),
                Spread.of([one.aggregated for one in counts]),
                Spread.of([100 * one.loss for one in counts]),
                Spread.of([one.age_ns / 1000 for one in counts]),
            ]
            for (rate, queue), counts in runs.items()
        ],
    )


def variant_table(other: dict[tuple[str, str, str, str], list[Counts]]) -> Table:
    """Other readings of the paper's text."""
    return Table(
        title="Other orders of the packets, and other views of the update on the wire",
        columns=[
            Column(name="order"),
            Column(name="head"),
            Column(name="uplink"),
            Column(name="queue"),
            Column(name="received", digits=0),
            Column(name="aggregated", digits=0),
            Column(name="loss, %", digits=1),
        ],
        rows=[
            [
                order,
                head,
                rate,
                queue,
                mean(one.received for one in counts),
                mean(one.aggregated for one in counts),
                mean(100 * one.loss for one in counts),
            ]
            for (order, head, rate, queue), counts in other.items()
        ],
        note="locked: the update on the wire keeps its slot and takes nothing in (ours, and the "
        "paper's text). open: it keeps its slot and still merges. gone: it has left its slot. FIFO "
        "knows no difference between the first two.",
    )


def fit_table(given: Parameters, trace: Path, task: Task[Parameters]) -> Table:
    """FIFO's received updates at other burst lengths; they decided our burst length."""
    rates = [rate for rate in given.rates if printed(task.paper, "received_fifo", rate)]
    rows: list[list[Spread | float | str | None]] = [
        ["paper", *(printed(task.paper, "received_fifo", rate) for rate in rates)]
    ]
    for burst in given.fit_bursts:
        write_trace(trace, given.traffic.model_copy(update={"burst": burst}), task.seeds[0])
        received = [float(replay(trace, "fifo", given.slots, rate).received) for rate in rates]
        rows.append([f"{burst}", *received])
    return Table(
        title="What FIFO receives, by length of the bursts",
        columns=[
            Column(name="packets in a burst"),
            *(Column(name=rate, digits=0) for rate in rates),
        ],
        rows=rows,
        note="A burst of 1 is smooth traffic.",
    )


def what_differs(virtual: Runs, other: dict[tuple[str, str, str, str], list[Counts]]) -> str:
    """Findings about the rows that differ."""
    narrow, wide = (
        {
            case: (mean(one.received for one in counts), mean(100 * one.loss for one in counts))
            for case, counts in other.items()
            if case[2:] == (rate, "olaf")
        }
        for rate in ("20gbit", "40gbit")
    )
    least = min((received for received, _ in wide.values()), default=0.0)
    most = max((loss for case, (_, loss) in wide.items() if case[0] != "lockstep"), default=0.0)
    heads = ", ".join(
        f"{loss:.1f} % {head}"
        for (order, head, *_), (_, loss) in narrow.items()
        if order == next(iter(narrow))[0]
    )
    ages = ", ".join(
        f"{mean(one.age_ns for one in counts) / 1000:.2f} µs at {rate}"
        for (rate, queue), counts in virtual.items()
        if queue == "olaf"
    )
    return (
        "OLAF at 40 Gbit/s could not be reproduced. While a burst of 135 packets lasts, 2.76 µs, "
        "a link of 40 Gbit/s that always has something to send carries 54 updates, 5,400 in all; "
        "the paper's server received 4,823 from OLAF and 6,109 from FIFO behind the same link. So "
        "its queue did not keep the link busy. Ours does, in every order and with every head (at "
        f"least {least:,.0f} received): it merges less, finds slots free more often, and loses at "
        f"most {most:.1f} % unless the packets come in lockstep, where the same clusters find the "
        f"queue full each time. OLAF's loss at 20 Gbit/s depends on the head: {heads}. The AoM of "
        f"both queues has the silences between bursts in it (OLAF: {ages}), which no queue can "
        "shorten. The paper's 69 and 78 % less than FIFO would need a FIFO that leaves some "
        "clusters without a delivery for many bursts."
    )


def bounds(given: Parameters) -> list[Bound]:
    """The smallest possible loss of a queue that keeps the link busy, with or without merging."""
    return [
        Bound(
            quantity=f"updates received, any queue that keeps the link busy, {rate}",
            value=float(_least_received(given.traffic, rate)),
            unit="updates",
            why="this number leaves while bursts last; the updates that wait at the ends of bursts "
            "come on top",
        )
        for rate in given.rates
    ]


def _least_received(traffic: Traffic, rate: str) -> int:
    from olaf._olaf import parse_rate

    return int(traffic.total * parse_rate(rate) / parse_rate(traffic.peak))
