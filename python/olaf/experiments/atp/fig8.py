"""ATP §5.2.1, Figure 8: images a second of seven models with ATP and with other systems."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from olaf import experiments
from olaf.experiments import (
    Baseline,
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
from olaf.experiments.atp import cluster
from olaf.experiments.comparing import over
from olaf.scenarios.sums import Job

Arm = Literal["atp", "switchml", "ring", "ps_n", "ps_1"]
ARMS: dict[Arm, str] = {
    "atp": "ATP",
    "switchml": "SwitchML",
    "ring": "ring",
    "ps_n": "N servers",
    "ps_1": "one server",
}
BASE = "VGG16"
"""The model whose time to compute follows from the paper."""
NEVER_MS = 10_000
"""The timers of ATP and SwitchML: nothing is lost here, and workers wait for the slowest one."""


class Model(experiments.Parameters):
    """A model."""

    megabytes: float = Field(gt=0)
    """Bytes of its gradient, in millions."""
    multiplications: float = Field(gt=0)
    """Billions for a forward pass of an image."""


class Parameters(cluster.Computation):
    """The testbed and the models (ATP §5.1)."""

    workers: int = Field(ge=2, le=32)
    """Workers."""
    rate_gbit: float = Field(gt=0)
    """Rate of each link."""
    delay_us: float = Field(ge=0)
    """Delay of each link."""
    window: int = Field(ge=1)
    """Packets on their way, of ATP and SwitchML."""
    switchml_values: int = Field(ge=1)
    """Values in a packet of SwitchML."""
    scale: float = Field(ge=1)
    """What bytes and rate are divided by."""
    iterations: int = Field(ge=1)
    """Iterations of a run."""
    models: dict[str, Model] = Field(min_length=1)
    """The models; VGG16 is one of them."""

    def model_ms(self, model: str) -> float:
        """Another model's time to compute follows from its multiplications."""
        share = self.models[model].multiplications / self.models[BASE].multiplications
        return self.compute_ms() * share


Runs = dict[tuple[str, Arm], list[Job]]
"""By model and arm, one per seed."""


def run(task: Task[Parameters]) -> Result:
    """Train every model with every system."""
    given = task.parameters
    runs: Runs = {}
    for seed in task.each_seed():
        for model in given.models:
            for arm, name in ARMS.items():
                task.say(f"seed {seed}: {model}, {name}")
                runs.setdefault((model, arm), []).append(train(given, model, arm, seed))
    return Result(
        rows=rows(task, runs),
        charts=[chart(given, runs)],
        tables=[table(given, runs)],
        bounds=bounds(given, runs),
        notes=[links(given)],
    )


def train(given: Parameters, model: str, arm: Arm, seed: int) -> Job:
    """One run."""
    network = {
        "racks": [given.workers],
        "rate_bps": round(given.rate_gbit * 1e9 / given.scale),
        "delay_ns": round(given.delay_us * 1e3),
    }
    job = {
        "name": arm,
        "workers": given.workers,
        "model_bytes": round(given.models[model].megabytes * 1e6 / given.scale),
        "iterations": given.iterations,
        **given.work(given.model_ms(model)),
        **engine(given, arm),
    }
    return cluster.run(network, [job], seed).jobs[0]


def engine(given: Parameters, arm: Arm) -> dict[str, Any]:
    """What sums in an arm."""
    if arm == "atp":
        own = {"time_out_ms": NEVER_MS}
        return {"engine": "atp", "window": given.window, "protocol": own}
    if arm == "switchml":
        options = {
            "block_bytes": given.switchml_values * cluster.VALUE_BYTES,
            "scale": 1e8,
            "recovery": "timer",
            "timer_ms": NEVER_MS,
            "ecn": False,
        }
        return {"engine": "reduce", "window": given.window, "options": options}
    if arm == "ring":
        return {"engine": "ring"}
    return {"engine": "ps", "colocated": arm == "ps_n", "servers": servers(given, arm)}


def servers(given: Parameters, arm: Arm) -> int:
    """Parameter servers of an arm."""
    return given.workers if arm == "ps_n" else 1


def speeds(given: Parameters, runs: Runs, model: str, arm: Arm) -> list[float]:
    """Images a second of a worker, one per seed."""
    return [given.images * 1e9 / job.iteration_ns for job in runs[model, arm]]


def speed_ups(given: Parameters, runs: Runs, model: str, than: Arm) -> list[float]:
    """ATP over another system, one per seed."""
    return over(speeds(given, runs, model, "atp"), speeds(given, runs, model, than)).values


def rows(task: Task[Parameters], runs: Runs) -> list[Row]:
    """The largest speed-up of all models over each system, and each model's."""
    given = task.parameters
    made = []
    for arm, name in ARMS.items():
        if arm == "atp":
            continue
        each = {model: speed_ups(given, runs, model, arm) for model in given.models}
        largest = [max(of_seed) for of_seed in zip(*each.values(), strict=True)]
        made.append(
            Row(
                quantity=f"largest speed-up of ATP over {name}",
                paper=task.paper[arm],
                ours=Spread.of(largest),
                baseline=Baseline(name=name, paper=1, ours=1),
                note="the paper: over TCP" if arm == "ps_1" else "",
            )
        )
        made += [
            Row(
                quantity=f"speed-up of ATP over {name}",
                where=model,
                ours=Spread.of(values),
                baseline=Baseline(name=name, ours=1),
                direction="above",
                headline=False,
            )
            for model, values in each.items()
        ]
    return made


def bounds(given: Parameters, runs: Runs) -> list[Bound]:
    """What no network could be faster than."""
    made = []
    for arm, name in ARMS.items():
        if arm == "atp":
            continue
        alone = {model: given.images / given.model_ms(model) * 1e3 for model in given.models}
        most = {
            model: fast / Spread.of(speeds(given, runs, model, arm)).mean
            for model, fast in alone.items()
        }
        model = max(most, key=lambda model: most[model])
        made.append(
            Bound(
                quantity=f"speed-up over {name}",
                value=most[model],
                why=f"without any network a worker of {model} computes all the time",
            )
        )
    return made


def links(given: Parameters) -> str:
    """What the bytes on the links explain."""
    workers = given.workers
    atp = cluster.FRAME_BYTES / cluster.PACKET_BYTES
    datagram = (1472 + 66) / 1448
    ring = 2 * (workers - 1) / workers * datagram
    server = 2 * workers * datagram
    return (
        f"Bytes on the busiest link for a vector, headers included: {atp:.2f} vectors with ATP, "
        f"{ring:.2f} with a ring or {workers} servers, {server:.1f} behind one server with one "
        f"tensor. Sums that wait for nothing would so be {ring / atp:.2f} and {server / atp:.1f} "
        f"times as fast with ATP. A ring of {workers} also waits {2 * (workers - 1)} times for the "
        "part of its neighbour, tensor after tensor."
    )


def table(given: Parameters, runs: Runs) -> Table:
    """Every model and system."""
    return Table(
        title="Images a second of a worker",
        columns=[
            Column(name="model"),
            Column(name="MB", digits=0),
            Column(name="compute, ms", digits=0),
            *(Column(name=name, digits=1) for name in ARMS.values()),
        ],
        rows=[
            [
                model,
                of.megabytes,
                given.model_ms(model),
                *(Spread.of(speeds(given, runs, model, arm)) for arm in ARMS),
            ]
            for model, of in given.models.items()
        ],
        note=(
            f"VGG16 computes {given.images} images in {given.images} / ({given.images_per_s:g} / "
            f"{given.beside_another:g}) s; another model as much longer or shorter as it has "
            "multiplications."
        ),
    )


def chart(given: Parameters, runs: Runs) -> Chart:
    """Bars for each system."""
    return Chart(
        title="Seven models with five systems",
        x="model",
        y="images a second, over the speed without a network",
        kind="bars",
        series=[
            Series(
                name=name,
                points=[
                    (
                        float(at),
                        Spread.of(speeds(given, runs, model, arm)).mean
                        * given.model_ms(model)
                        / given.images
                        / 1e3,
                    )
                    for at, model in enumerate(given.models)
                ],
            )
            for arm, name in ARMS.items()
        ],
        ticks=list(given.models),
        from_zero=True,
    )
