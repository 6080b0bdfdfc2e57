"""MINA §II-C, Figure 5: the time of a step over the bandwidth, and its turning point."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from olaf.experiments import Baseline, Chart, Column, Result, Row, Series, Spread, Table, Task
from olaf.experiments.mina.data import Data
from olaf.experiments.mina.measuring import Given
from olaf.schedule.reading import Job, Pattern
from olaf.schedule.simulation import JobOutcome, simulate


class Parameters(Given):
    """The network, and the drawn bandwidths."""

    hosts: int = Field(ge=2)
    """Hosts of a job; more than one, so that it needs the network."""
    lowest_gbit: float = Field(gt=0)
    """The first bandwidth."""
    points: int = Field(ge=2)
    """Number of bandwidths."""
    ratio: float = Field(gt=1)
    """Ratio of each bandwidth to the one before."""

    def bandwidths(self) -> list[float]:
        """Gbit/s."""
        return [self.lowest_gbit * self.ratio**at for at in range(self.points)]


def run(task: Task[Parameters]) -> Result:
    """Measure a step of every pattern at every bandwidth, without random numbers."""
    given, data = task.parameters, task.parameters.data
    for _ in task.each_seed():
        curves = {
            gbit: [job.none_ns / 1e6 for job in steps(given, data, gbit)]
            for gbit in given.bandwidths()
        }
        usual = steps(given, data, given.bandwidth_gbit)
    turning = [turning_gbit(given, data, pattern) for pattern in data.patterns]
    repeat = len(task.seeds)
    return Result(
        rows=rows(given, data, turning, usual, repeat),
        data=data.words,
        charts=[chart(given, curves, turning)],
        tables=[table(given, turning, usual)],
    )


def steps(given: Parameters, data: Data, gbit: float) -> list[JobOutcome]:
    """One step of each pattern alone, from the simulator's own bounds."""
    case = given.case("first-fit", "none", "none")
    cluster = case.cluster(data, seed=0)
    network = cluster.network.model_copy(update={"bytes_per_second": round(gbit * 1e9 / 8)})
    jobs = [
        Job(pattern.name, given.hosts, 1, line) for line, pattern in enumerate(data.patterns, 1)
    ]
    outcome, _ = simulate(cluster.model_copy(update={"network": network}), data.patterns, jobs)
    return outcome.jobs


def turning_gbit(given: Parameters, data: Data, pattern: Pattern) -> float:
    """Where the straight parts of the step's time over 1 / bandwidth meet, Gbit/s.

    From the recorded step. If all bytes follow each other from the first gradient on, it ends at
    ``start_0 + n latency + bytes / b``. With unlimited bandwidth it ends at the later of the
    computation and ``start_last + latency``. 0 if there is nothing to sum.
    """
    if not pattern.operations:
        return 0.0
    faster = given.compute_speed * data.speed
    first, *_, last = (pattern.operations[0], *pattern.operations)
    latency_s = given.latency_us / 1e6
    total = sum(operation.bytes for operation in pattern.operations)
    begin_s = first.start_ns / faster / 1e9 + len(pattern.operations) * latency_s
    floors = [
        (pattern.compute_ns / faster / 1e9, 0),
        (last.start_ns / faster / 1e9 + latency_s, last.bytes),
    ]
    # The first of the two that the falling line meets, as the bandwidth rises.
    meetings = [
        (total - size) / (end_s - begin_s)
        for end_s, size in floors
        if end_s > begin_s and total > size
    ]
    return min(meetings) * 8 / 1e9 if meetings else float("inf")


def rows(
    given: Parameters,
    data: Data,
    turning: Sequence[float],
    usual: Sequence[JobOutcome],
    repeat: int,
) -> list[Row]:
    """The turning point of each pattern, and the number beyond it with the switches."""
    with_switches = given.bandwidth_gbit * given.speedup
    beyond = [100.0 * sum(at <= gbit for at in turning) / len(turning)
              for gbit in (given.bandwidth_gbit, with_switches)]  # fmt: skip
    return [
        Row(
            quantity="patterns that are beyond their turning point",
            where=f"with the switches: {with_switches:g} Gbit/s", unit="%",
            ours=Spread.of([beyond[1]] * repeat), baseline=Baseline(name="half", ours=50.0),
            direction="above", comparable=data.comparable, note="the paper: in most cases",
        ),
        Row(
            quantity="patterns that are beyond their turning point",
            where=f"without: {given.bandwidth_gbit:g} Gbit/s", unit="%",
            ours=Spread.of([beyond[0]] * repeat),
        ),
        *(
            Row(
                quantity="bandwidth at the turning point", where=pattern.name, unit="Gbit/s",
                ours=Spread.of([at] * repeat), headline=pattern.name.startswith("opt-350m"),
                note=f"step {job.none_ns / 1e6:.2f} ms at {given.bandwidth_gbit:g} Gbit/s, "
                f"{job.all_ns / 1e6:.2f} ms with the switches",
            )
            for pattern, at, job in zip(data.patterns, turning, usual, strict=True)
        ),
    ]  # fmt: skip


def chart(given: Parameters, curves: dict[float, list[float]], turning: Sequence[float]) -> Chart:
    """Time over bandwidth, each pattern's turning point on its curve."""
    data = given.data
    marked = [
        (gbit, steps(given, data, gbit)[at].none_ns / 1e6)
        for at, gbit in enumerate(turning)
        if given.lowest_gbit <= gbit <= max(curves)
    ]
    return Chart(
        title="Time of a step over the bandwidth of an all-reduce",
        x="bandwidth, Gbit/s", y="step, ms", x_scale="log", y_scale="log",
        series=[
            *(
                Series(name=pattern.name, points=[(gbit, ms[at]) for gbit, ms in curves.items()])
                for at, pattern in enumerate(data.patterns)
            ),
            Series(name="turning point", points=marked, marks=True),
        ],
    )  # fmt: skip


def table(given: Parameters, turning: Sequence[float], usual: Sequence[JobOutcome]) -> Table:
    """The patterns themselves."""
    patterns = given.data.patterns
    return Table(
        title="The patterns",
        columns=[
            Column(name="pattern"), Column(name="all-reduces", digits=0), Column(name="MB"),
            Column(name="computation, ms", digits=2), Column(name="turns at, Gbit/s", digits=1),
            Column(name="gains by the switches, %", digits=3),
        ],
        rows=[
            [
                pattern.name, float(len(pattern.operations)),
                sum(operation.bytes for operation in pattern.operations) / 1e6,
                pattern.compute_ns / given.compute_speed / given.data.speed / 1e6,
                None if at == float("inf") else at,
                100.0 * (job.none_ns - job.all_ns) / job.none_ns,
            ]
            for pattern, at, job in zip(patterns, turning, usual, strict=True)
        ],
        note="The gain is of a step's time, at the parameters' bandwidth.",
    )  # fmt: skip
