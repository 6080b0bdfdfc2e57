"""ATP §5.2.2, Figure 9: bytes to the server with sums at two levels and in racks alone."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from olaf import experiments
from olaf.experiments import Baseline, Chart, Column, Result, Row, Series, Spread, Table, Task
from olaf.experiments.atp import cluster
from olaf.scenarios.sums import Link

ARMS = {"ATP": False, "rack-scale": True}
"""By name, whether only the first switch adds."""


class Parameters(experiments.Parameters):
    """The network of two levels."""

    racks: list[Annotated[int, Field(ge=1)]] = Field(min_length=2)
    """Workers of each rack."""
    rate_gbit: float = Field(gt=0)
    """Rate of each link."""
    delay_us: float = Field(ge=0)
    """Delay of each link."""
    megabytes: float = Field(gt=0)
    """Bytes of a sum, in millions."""
    sums: int = Field(ge=1)
    """Sums of a run."""
    losses: list[Annotated[float, Field(ge=0, lt=100)]] = Field(min_length=1)
    """Percent of the frames that each link loses; the first has the paper's row."""


Runs = dict[tuple[str, float], list[Link]]
"""By arm and loss, the link to the server, one per seed."""


def run(task: Task[Parameters]) -> Result:
    """Both ways at each loss."""
    given = task.parameters
    runs: Runs = {}
    for seed in task.each_seed():
        for loss in given.losses:
            for arm in ARMS:
                task.say(f"seed {seed}: {arm}, loss {loss:g} %")
                runs.setdefault((arm, loss), []).append(measure(given, arm, loss, seed))
    return Result(rows=rows(task, runs), charts=[chart(given, runs)], tables=[table(given, runs)])


def measure(given: Parameters, arm: str, loss: float, seed: int) -> Link:
    """The link from the second switch to the server, after a run."""
    rate = round(given.rate_gbit * 1e9)
    network = {
        "racks": given.racks,
        "rate_bps": rate,
        "trunk_rate_bps": rate,
        "delay_ns": round(given.delay_us * 1e3),
        "loss": loss / 100,
    }
    job = {
        "name": "job",
        "engine": "atp",
        "workers": sum(given.racks),
        "model_bytes": round(given.megabytes * 1e6),
        "iterations": given.sums,
        "compute_ns": 0,
    }
    outcome = cluster.run(network, [job], seed, server={"rack_scale": ARMS[arm]})
    return next(link for link in outcome.links if link.name == "top to server0")


def megabytes(runs: Runs, arm: str, loss: float) -> list[float]:
    """With headers, one per seed."""
    return [link.bytes / 1e6 for link in runs[arm, loss]]


def rows(task: Task[Parameters], runs: Runs) -> list[Row]:
    """Rack-scale over ATP, and what ATP saves."""
    given = task.parameters
    made = []
    for loss in given.losses:
        both = list(
            zip(megabytes(runs, "rack-scale", loss), megabytes(runs, "ATP", loss), strict=True)
        )
        is_papers = loss == given.losses[0]
        made += [
            Row(
                quantity="bytes to the server, rack-scale over ATP",
                where=f"loss {loss:g} %",
                paper=task.paper["ratio"] if is_papers else None,
                ours=Spread.of([racks / levels for racks, levels in both]),
                baseline=Baseline(name="ATP", paper=1, ours=1) if is_papers else None,
                headline=is_papers,
            ),
            Row(
                quantity="less traffic to the server",
                where=f"loss {loss:g} %",
                unit="%",
                paper=task.paper["less"] if is_papers else None,
                ours=Spread.of([100 * (1 - levels / racks) for racks, levels in both]),
                baseline=Baseline(name="rack-scale", paper=0, ours=0) if is_papers else None,
                headline=is_papers,
            ),
        ]
    return made


def table(given: Parameters, runs: Runs) -> Table:
    """Every run."""
    fragments = given.megabytes * 1e6 / cluster.PACKET_BYTES * given.sums
    return Table(
        title="The link to the server",
        columns=[
            Column(name="loss, %", digits=2),
            Column(name="way"),
            Column(name="MB", digits=2),
            Column(name="frames for each fragment", digits=3),
        ],
        rows=[
            [
                loss,
                arm,
                Spread.of(megabytes(runs, arm, loss)),
                Spread.of([link.offered / fragments for link in links]),
            ]
            for (arm, loss), links in runs.items()
        ],
        note="Bytes with headers, joins included.",
    )


def chart(given: Parameters, runs: Runs) -> Chart:
    """A bar for each way and loss."""
    return Chart(
        title=f"Traffic to the server, {sum(given.racks)} workers in {len(given.racks)} racks",
        x="loss on each link",
        y="MB",
        kind="bars",
        series=[
            Series(
                name=arm,
                points=[
                    (float(at), Spread.of(megabytes(runs, arm, loss)).mean)
                    for at, loss in enumerate(given.losses)
                ],
            )
            for arm in ARMS
        ],
        ticks=[f"{loss:g} %" for loss in given.losses],
        from_zero=True,
    )
