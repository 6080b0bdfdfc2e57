"""Every protocol of sums and the baselines over the same links, in virtual time."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from olaf import experiments
from olaf.experiments import Chart, Column, Goal, Result, Row, Series, Spread, Table, Task
from olaf.experiments.iswitch.synchronous import done
from olaf.scenarios.sums import Job, plain
from olaf.scenarios.sums import run as simulate

ARMS: dict[str, dict[str, Any]] = {
    "reduce": {"engine": "reduce"},
    "SwitchML": {"engine": "reduce", "options": {"recovery": "timer", "scale": 1e8}},
    "iSwitch": {"engine": "iswitch"},
    "Trio-ML": {"engine": "trio"},
    "ATP": {"engine": "atp"},
    "ring": {"engine": "ring"},
    "PS": {"engine": "ps"},
    "N PS": {"engine": "ps", "colocated": True},
    "ideal": {"engine": "ideal"},
}
OURS = "reduce"
RIVALS = [arm for arm in ARMS if arm not in {OURS, "ideal"}]


class Parameters(experiments.Parameters):
    """The network and the gradients."""

    racks: list[Annotated[int, Field(ge=1)]] = Field(min_length=1)
    """Workers of each rack."""
    rate_gbit: float = Field(gt=0)
    """Rate of each link of a host."""
    trunk_gbit: float = Field(gt=0)
    """Rate of a link between a rack's switch and the upper one."""
    delay_us: float = Field(ge=0)
    """Delay of each link."""
    queue_kilobytes: int = Field(ge=10)
    """Room of a switch's port; a fifth of it marks frames (ECN)."""
    sizes: list[Annotated[int, Field(ge=4)]] = Field(min_length=1)
    """Bytes of a gradient."""
    losses: list[Annotated[float, Field(ge=0, lt=100)]] = Field(min_length=1)
    """Frames that each link loses, in percent."""
    sums: int = Field(ge=1)
    """Sums of a run, one after the other."""


Runs = dict[tuple[int, float, str], list[Job]]
"""By size, loss and arm, one per seed."""


def run(task: Task[Parameters]) -> Result:
    """Every size and loss, in every way."""
    given = task.parameters
    runs: Runs = {}
    for seed in task.each_seed():
        for size in given.sizes:
            for loss in given.losses:
                for arm in ARMS:
                    task.say(f"seed {seed}: {size:,} bytes, {loss:g} % lost, {arm}")
                    job = train(given, size, loss, arm, seed)
                    runs.setdefault((size, loss, arm), []).append(job)
    return Result(
        rows=rows(given, runs),
        charts=[chart(given, runs)],
        tables=[table(given, runs, loss) for loss in given.losses],
    )


def train(given: Parameters, size: int, loss: float, arm: str, seed: int) -> Job:
    """One run. Raises RunError if it fails."""
    scenario = {
        "network": {
            "racks": given.racks,
            "rate_bps": round(given.rate_gbit * 1e9),
            "trunk_rate_bps": round(given.trunk_gbit * 1e9),
            "delay_ns": round(given.delay_us * 1e3),
            "loss": loss / 100,
            "queue_bytes": given.queue_kilobytes * 1000,
            "ecn_bytes": given.queue_kilobytes * 200,
        },
        "jobs": [
            {
                "name": arm,
                "workers": sum(given.racks),
                "model_bytes": size,
                "iterations": given.sums,
                "compute_ns": 1_000_000,
                **ARMS[arm],
            }
        ],
    }
    return done(simulate(plain(scenario), seed).jobs[0])


def sum_ms(jobs: list[Job]) -> Spread:
    """Time of a sum."""
    return Spread.of([job.aggregation_ns / 1e6 for job in jobs])


def rows(given: Parameters, runs: Runs) -> list[Row]:
    """Ours against the best of the others, which is chosen by its mean."""
    made = []
    for size in given.sizes:
        for loss in given.losses:
            best = min(RIVALS, key=lambda arm: sum_ms(runs[size, loss, arm]).mean)
            both = zip(runs[size, loss, OURS], runs[size, loss, best], strict=True)
            made.append(
                Row(
                    quantity="time of a sum of `reduce` over that of the best other",
                    where=f"{size:,} bytes, {loss:g} % lost",
                    ours=Spread.of(
                        [one.aggregation_ns / other.aggregation_ns for one, other in both]
                    ),
                    goal=Goal(at_most=1.02),
                    note=best,
                    headline=False,
                )
            )
    return made


def table(given: Parameters, runs: Runs, loss: float) -> Table:
    """Times of all arms."""
    return Table(
        title=f"Time of a sum, ms; each link loses {loss:g} %",
        columns=[Column(name="bytes", digits=0), *(Column(name=arm, digits=3) for arm in ARMS)],
        rows=[[size, *(sum_ms(runs[size, loss, arm]) for arm in ARMS)] for size in given.sizes],
        note="ideal: bytes over bandwidth, without headers, delays and losses.",
    )


def chart(given: Parameters, runs: Runs) -> Chart:
    """The largest gradient over the losses."""
    size = max(given.sizes)
    return Chart(
        title=f"a sum of {size:,} bytes",
        x="frames that each link loses",
        y="ms",
        y_scale="log",
        kind="bars",
        series=[
            Series(
                name=arm,
                points=[
                    (float(at), sum_ms(runs[size, loss, arm]).mean)
                    for at, loss in enumerate(given.losses)
                ],
            )
            for arm in ARMS
        ],
        ticks=[f"{loss:g} %" for loss in given.losses],
    )
