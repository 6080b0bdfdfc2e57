"""Trio-ML §6.2, Figure 14: when the other servers get a result without a straggler."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from olaf.errors.outcome import RunError
from olaf.experiments import (
    Bound,
    Chart,
    Column,
    Result,
    Row,
    Series,
    Spread,
    Table,
    Task,
)
from olaf.experiments.comparing import line
from olaf.experiments.trio import testbed
from olaf.experiments.trio.testbed import FLOAT_BYTES

LATE = 6
"""Time-outs after which the straggler sends: all results have gone without it."""


class Parameters(testbed.Links):
    """The testbed (Trio-ML §6.1), and what it sends."""

    racks: list[Annotated[int, Field(ge=1)]] = Field(min_length=1)
    """Workers of each lower switch; the last worker is the straggler."""
    gradients: int = Field(ge=1, le=2048)
    """Values in a packet."""
    window: int = Field(ge=1)
    """Packets on their way."""
    packets: int = Field(ge=1)
    """Packets back to back."""
    timeouts_ms: list[Annotated[int, Field(ge=1)]] = Field(min_length=1)
    """Time-outs, and periods of the timers."""
    rounds: int = Field(ge=1)
    """Runs for each seed: each one sends at another moment of the timers' period."""


Runs = dict[tuple[int, int], list[list[float]]]
"""By time-out and packets, for each seed the time to recover of every round, ms."""


def run(task: Task[Parameters]) -> Result:
    """Every time-out, with one packet and with several back to back."""
    given = task.parameters
    runs: Runs = {}
    for seed in task.each_seed():
        moments = random.Random(seed)
        for timeout in given.timeouts_ms:
            task.say(f"seed {seed}: {timeout} ms")
            shares = [moments.random() for _ in range(given.rounds)]
            for packets in sizes(given):
                times = [recover(given, timeout, packets, share, seed) for share in shares]
                runs.setdefault((timeout, packets), []).append(times)
    return Result(
        rows=rows(task, runs),
        charts=[chart(given, runs)],
        tables=[table(given, runs)],
        bounds=[bound()],
    )


def sizes(given: Parameters) -> Sequence[int]:
    """Packets of an operation: its time is that of the last result."""
    return (1, given.packets)


def recover(given: Parameters, timeout: int, packets: int, share: float, seed: int) -> float:
    """Mean time from the gradient to the last result, over all workers but the straggler, ms.

    share: how much of the timers' period passes before the workers send.
    """
    workers = sum(given.racks)
    before_ns = round(share * timeout * 1e6)
    late_ns = before_ns + LATE * timeout * 1_000_000
    job = {
        "name": "job",
        "engine": "trio",
        "workers": workers,
        "model_bytes": packets * given.gradients * FLOAT_BYTES,
        "iterations": 1,
        "compute_list_ns": [before_ns] * (workers - 1) + [late_ns],
        "window": given.window,
        "options": {"deadline_ms": timeout},
        "protocol": {"gradients": given.gradients},
    }
    what = f"time-out of {timeout} ms, {packets} packets"
    network = given.network(given.racks)
    ended = testbed.run(network, job, seed, timer_ms=timeout, what=what).jobs[0]
    if ended.degraded == 0:
        raise RunError(f"{what}: no result went without the straggler")
    (once,) = ended.iterations
    # The straggler ends last: what it took is no recovery.
    own_ns = once.end_ns - once.begin_ns - late_ns
    return (workers * (once.wait_ns + once.aggregation_ns) - own_ns) / (workers - 1) / 1e6


def means(runs: Runs, timeout: int, packets: int) -> Spread:
    """Over the rounds, one per seed, ms."""
    return Spread.of([sum(times) / len(times) for times in runs[timeout, packets]])


def longest(runs: Runs, timeout: int, packets: int) -> Spread:
    """Of all rounds, one per seed, ms."""
    return Spread.of([max(times) for times in runs[timeout, packets]])


def rows(task: Task[Parameters], runs: Runs) -> list[Row]:
    """The longest recovery over the time-out, and the mean of a single packet."""
    given = task.parameters
    by_timeout = {
        timeout: [value / timeout for value in longest(runs, timeout, given.packets).values]
        for timeout in given.timeouts_ms
    }
    worst = [max(of_seed) for of_seed in zip(*by_timeout.values(), strict=True)]
    made = [
        Row(
            quantity="longest time to recover, over the time-out",
            where="of all time-outs",
            paper=task.paper["over_timeout"],
            ours=Spread.of(worst),
            note="the paper: within 2",
            digits=3,
        )
    ]
    made += [
        Row(
            quantity="longest time to recover, over the time-out",
            where=f"{timeout} ms",
            ours=Spread.of(values),
            headline=False,
            digits=3,
        )
        for timeout, values in by_timeout.items()
    ]
    made += [
        Row(
            quantity="mean time to recover of one packet, over the time-out",
            where=f"{timeout} ms",
            ours=Spread.of([value / timeout for value in means(runs, timeout, 1).values]),
            headline=False,
            digits=3,
        )
        for timeout in given.timeouts_ms
    ]
    return made


def bound() -> Bound:
    """What no switch with such timers can do better."""
    return Bound(
        quantity="time to recover, over the time-out",
        value=1,
        why="a block ages out at the second look of a timer, one to two periods after its packets",
    )


def table(given: Parameters, runs: Runs) -> Table:
    """Every time-out."""
    return Table(
        title="Time to recover, ms",
        columns=[
            Column(name="time-out, ms", digits=0),
            Column(name="packets", digits=0),
            Column(name="mean", digits=2),
            Column(name="shortest", digits=2),
            Column(name="longest", digits=2),
        ],
        rows=[
            [
                timeout,
                packets,
                means(runs, timeout, packets),
                Spread.of([min(times) for times in runs[timeout, packets]]),
                longest(runs, timeout, packets),
            ]
            for timeout in given.timeouts_ms
            for packets in sizes(given)
        ],
        note=(
            f"Over {given.rounds} runs for each seed, from the gradient to the last result, at "
            "all workers but the straggler."
        ),
    )


def chart(given: Parameters, runs: Runs) -> Chart:
    """Means and the longest, between the time-out and twice the time-out."""
    at = given.timeouts_ms
    packets = given.packets
    limits = [
        Series(
            name=name,
            of="paper",
            points=[(float(timeout), float(times * timeout)) for timeout in at],
        )
        for name, times in (("twice the time-out", 2), ("the time-out", 1))
    ]
    lines = [
        line(f"{packets} packets, mean", at, [means(runs, timeout, packets) for timeout in at]),
        line("one packet, mean", at, [means(runs, timeout, 1) for timeout in at]),
    ]
    return Chart(
        title="Results without a straggler",
        x="time-out, ms",
        y="time to recover, ms",
        series=[*limits, *lines],
        from_zero=True,
        marked=True,
    )
