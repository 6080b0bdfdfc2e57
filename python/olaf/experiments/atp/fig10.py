"""ATP §5.2.3, Figure 10: how much a lossy link costs ATP and SwitchML."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from olaf import experiments
from olaf.experiments import Baseline, Chart, Column, Result, Row, Spread, Table, Task
from olaf.experiments.atp import cluster
from olaf.experiments.comparing import line, over
from olaf.scenarios.sums import Job
from olaf.sums.protocols import protocol

Arm = Literal["ATP", "SwitchML"]
ARMS: tuple[Arm, ...] = ("ATP", "SwitchML")


class Parameters(experiments.Parameters):
    """The microbenchmark with a lossy worker."""

    workers: int = Field(ge=2, le=32)
    """Workers; the first one's link loses packets."""
    rate_gbit: float = Field(gt=0)
    """Rate of each link."""
    delay_us: float = Field(ge=0)
    """Delay of each link."""
    window: int = Field(ge=1)
    """Packets on their way."""
    megabytes: float = Field(gt=0)
    """Bytes of a tensor, in millions."""
    tensors: int = Field(ge=1)
    """Tensors that are summed at once."""
    timer_ms: int = Field(ge=1)
    """The timer of SwitchML, and ATP's shortest time-out."""
    losses: list[Annotated[float, Field(ge=0, lt=100)]] = Field(min_length=2)
    """Percent of the frames; the first is without loss."""


Runs = dict[tuple[Arm, float], list[Job]]
"""By arm and loss, one per seed."""


def run(task: Task[Parameters]) -> Result:
    """Every loss, in both ways."""
    given = task.parameters
    runs: Runs = {}
    for seed in task.each_seed():
        for loss in given.losses:
            for arm in ARMS:
                task.say(f"seed {seed}: {arm}, loss {loss:g} %")
                runs.setdefault((arm, loss), []).append(aggregate(given, arm, loss, seed))
    return Result(rows=rows(task, runs), charts=[chart(given, runs)], tables=[table(given, runs)])


def aggregate(given: Parameters, arm: Arm, loss: float, seed: int) -> Job:
    """One run."""
    network: dict[str, Any] = {
        "racks": [given.workers],
        "rate_bps": round(given.rate_gbit * 1e9),
        "delay_ns": round(given.delay_us * 1e3),
    }
    if loss > 0:
        network |= {"loss": loss / 100, "lossy_hosts": [0]}
    job = {
        "name": arm,
        "workers": given.workers,
        "model_bytes": round(given.tensors * given.megabytes * 1e6),
        "tensors": given.tensors,
        "iterations": 1,
        "compute_ns": 0,
        "window": given.window,
        **engine(given, arm),
    }
    return cluster.run(network, [job], seed).jobs[0]


def engine(given: Parameters, arm: Arm) -> dict[str, Any]:
    """What sums in an arm."""
    if arm == "ATP":
        # The paper gives ATP SwitchML's time-out.
        own = {"congestion": "off", "time_out_ms": given.timer_ms}
        return {"engine": "atp", "protocol": own}
    options = {**protocol("switchml-atp").options, "timer_ms": given.timer_ms}
    del options["window_blocks"]
    return {"engine": "reduce", "options": options}


def goodputs(given: Parameters, runs: Runs, arm: Arm, loss: float) -> list[float]:
    """Gbit/s, one per seed."""
    bits = given.tensors * given.megabytes * 8e6
    return [bits / job.iteration_ns for job in runs[arm, loss]]


def kept(given: Parameters, runs: Runs, arm: Arm, loss: float) -> list[float]:
    """The goodput as a share of that without loss, one per seed."""
    none = given.losses[0]
    return over(goodputs(given, runs, arm, loss), goodputs(given, runs, arm, none)).values


def advantages(given: Parameters, runs: Runs, loss: float) -> list[float]:
    """What ATP keeps over what SwitchML keeps, one per seed."""
    return over(kept(given, runs, "ATP", loss), kept(given, runs, "SwitchML", loss)).values


def rows(task: Task[Parameters], runs: Runs) -> list[Row]:
    """What ATP keeps over what SwitchML keeps."""
    given = task.parameters
    lossy = given.losses[1:]
    each = [advantages(given, runs, loss) for loss in lossy]
    made = [
        Row(
            quantity="throughput kept under loss, ATP over SwitchML",
            where="the rate of loss with the largest advantage",
            paper=task.paper["advantage"],
            ours=Spread.of([max(of_seed) for of_seed in zip(*each, strict=True)]),
            baseline=Baseline(name="SwitchML", paper=1, ours=1),
        )
    ]
    made += [
        Row(
            quantity="throughput kept under loss, ATP over SwitchML",
            where=f"loss {loss:g} %",
            ours=Spread.of(values),
            baseline=Baseline(name="SwitchML", ours=1),
            direction="above",
            headline=False,
        )
        for loss, values in zip(lossy, each, strict=True)
    ]
    return made


def table(given: Parameters, runs: Runs) -> Table:
    """Every run."""
    return Table(
        title="Every rate of loss",
        columns=[
            Column(name="loss, %", digits=3),
            Column(name="system"),
            Column(name="goodput, Gbit/s", digits=2),
            Column(name="of that without loss, %", digits=1),
            Column(name="packets", digits=0),
            Column(name="sent again", digits=0),
        ],
        rows=[
            [
                loss,
                arm,
                Spread.of(goodputs(given, runs, arm, loss)),
                Spread.of([100 * share for share in kept(given, runs, arm, loss)]),
                Spread.of([float(job.packets) for job in jobs]),
                Spread.of([float(job.resent) for job in jobs]),
            ]
            for (arm, loss), jobs in runs.items()
        ],
        note="Packets of all workers.",
    )


def chart(given: Parameters, runs: Runs) -> Chart:
    """A line for each system, over the rates of loss in order."""
    lines = []
    for arm in ARMS:
        spreads = [Spread.of(kept(given, runs, arm, loss)) for loss in given.losses]
        lines.append(line(arm, range(len(spreads)), spreads))
    return Chart(
        title="Throughput under losses at one worker",
        x="loss",
        y="throughput over that without loss",
        series=lines,
        ticks=[f"{loss:g} %" for loss in given.losses],
        from_zero=True,
        marked=True,
    )
