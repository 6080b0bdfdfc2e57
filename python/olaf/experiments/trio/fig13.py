"""Trio-ML §6.2, Figure 13: iterations under the Slow Worker Pattern, in virtual time."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from olaf import experiments
from olaf.experiments import (
    Baseline,
    Bound,
    Chart,
    Column,
    Goal,
    Result,
    Row,
    Spread,
    Table,
    Task,
)
from olaf.experiments.comparing import line
from olaf.experiments.trio import testbed
from olaf.experiments.trio.testbed import FLOAT_BYTES
from olaf.scenarios.sums import Job

Arm = Literal["ideal", "waits", "printed", "largest"]
ARMS: dict[Arm, str] = {
    "ideal": "Ideal",
    "waits": "SwitchML's way",
    "printed": "Trio-ML, window as printed",
    "largest": "Trio-ML, largest window",
}
LEAST_POOL = 8
"""A scaled pool of fewer packets would not fill a link that the whole pool fills."""
LARGEST = 65_535
"""The largest window (Trio-ML §5)."""


class Model(experiments.Parameters):
    """A model of the paper's Table 1."""

    megabytes: float = Field(gt=0)
    """Bytes of its gradient, in millions."""
    compute_ms: float = Field(gt=0)
    """Time to compute a gradient: our estimate."""


class Parameters(testbed.Links):
    """The testbed (Trio-ML §6.1), scaled."""

    racks: list[Annotated[int, Field(ge=1)]] = Field(min_length=1)
    """Workers of each lower switch."""
    gradients: int = Field(ge=1, le=2048)
    """Values in a packet of Trio-ML."""
    window: int = Field(ge=1)
    """Packets on their way, of Trio-ML."""
    timeout_ms: int = Field(ge=1)
    """Trio-ML's time-out, and the period of its timers."""
    switchml_values: int = Field(ge=1)
    """Values in a packet of SwitchML."""
    switchml_pool: int = Field(ge=1)
    """Packets on their way, of SwitchML."""
    packets: int = Field(ge=1)
    """Packets of a scaled gradient: bytes, rate and windows are divided alike."""
    iterations: int = Field(ge=1)
    """Iterations of a run."""
    probabilities: list[Annotated[float, Field(ge=0, le=100)]] = Field(min_length=1)
    """Of a delay at each of the three points, in percent."""
    models: dict[str, Model] = Field(min_length=1)
    """Each model's gradient and computation."""

    def scale(self, model: str) -> float:
        """What bytes, rate and windows are divided by."""
        return self.models[model].megabytes * 1e6 / (self.packets * self.gradients * FLOAT_BYTES)

    def typical_ms(self, model: str) -> float:
        """The typical iteration: computation, and bytes over bandwidth."""
        of = self.models[model]
        return of.compute_ms + of.megabytes * 8 / self.rate_gbit


Runs = dict[tuple[str, float, Arm], list[Job]]
"""By model, probability and arm, one per seed."""


def run(task: Task[Parameters]) -> Result:
    """Every model at every probability, in every way."""
    given = task.parameters
    runs: Runs = {}
    for seed in task.each_seed():
        for model in given.models:
            for probability in given.probabilities:
                for arm, name in ARMS.items():
                    task.say(f"seed {seed}: {model}, p = {probability:g} %, {name}")
                    job = train(given, model, probability, arm, seed)
                    runs.setdefault((model, probability, arm), []).append(job)
    return Result(
        rows=rows(task, runs),
        charts=[chart(given, runs, model) for model in given.models],
        tables=[table(given, runs)],
        bounds=bounds(given, runs),
        differences=differences(given),
    )


def train(given: Parameters, model: str, probability: float, arm: Arm, seed: int) -> Job:
    """One run. Raises RunError if it fails."""
    scale = given.scale(model)
    job: dict[str, Any] = {
        "name": arm,
        "workers": sum(given.racks),
        "model_bytes": given.packets * given.gradients * FLOAT_BYTES,
        "iterations": given.iterations,
        "compute_ns": round(given.models[model].compute_ms * 1e6),
        **engine(given, scale, arm),
    }
    if probability > 0 and arm != "ideal":
        typical_ns = round(given.typical_ms(model) * 1e6)
        job["straggler"] = {"probability": probability / 100, "typical_ns": typical_ns}
    what = f"{ARMS[arm]}, {model}, p = {probability:g} %"
    network = given.network(given.racks, scale)
    return testbed.run(network, job, seed, timer_ms=given.timeout_ms, what=what).jobs[0]


def engine(given: Parameters, scale: float, arm: Arm) -> dict[str, Any]:
    """What sums in an arm."""
    if arm == "ideal":
        return {"engine": "ideal"}
    if arm == "waits":
        return {
            "engine": "reduce",
            "window": max(LEAST_POOL, round(given.switchml_pool / scale)),
            "options": {"block_bytes": given.switchml_values * FLOAT_BYTES, "recovery": "off"},
        }
    window = max(1, round((LARGEST if arm == "largest" else given.window) / scale))
    return {
        "engine": "trio",
        "window": min(window, given.packets),
        "options": {"deadline_ms": given.timeout_ms},
        "protocol": {"gradients": given.gradients},
    }


def ratios(runs: Runs, model: str, probability: float, arm: Arm, over: Arm) -> list[float]:
    """Time of an iteration of one arm over another one's, one per seed."""
    both = zip(runs[model, probability, arm], runs[model, probability, over], strict=True)
    return [one.iteration_ns / other.iteration_ns for one, other in both]


def rows(task: Task[Parameters], runs: Runs) -> list[Row]:
    """At the largest probability: over SwitchML's way, and over ideal."""
    given = task.parameters
    most = max(given.probabilities)
    made: list[Row] = []
    trio: tuple[Arm, Arm] = ("printed", "largest")
    made += [
        Row(
            quantity=f"speed-up over SwitchML, p = {most:g} %",
            where=f"{model}; {ARMS[arm]}",
            paper=task.paper["speed_up"][model],
            ours=Spread.of(ratios(runs, model, most, "waits", arm)),
            baseline=Baseline(name="SwitchML", paper=1, ours=1),
        )
        for arm in trio
        for model in given.models
    ]
    made += [
        Row(
            quantity=f"iteration over Ideal, p = {most:g} %",
            where=f"{model}; {ARMS[arm]}",
            ours=Spread.of(ratios(runs, model, most, arm, "ideal")),
            goal=Goal(at_most=1.1) if arm == "largest" else None,
            headline=arm == "largest",
        )
        for model in given.models
        for arm in ARMS
        if arm != "ideal"
    ]
    return made


def bounds(given: Parameters, runs: Runs) -> list[Bound]:
    """An iteration of a worker lasts as long as its own computation and delays."""
    most = max(given.probabilities)
    return [
        Bound(
            quantity=f"speed-up over SwitchML, {model}",
            value=Spread.of(
                [waits.iteration_ns / waits.compute_ns for waits in runs[model, most, "waits"]]
            ).mean,
            why="without any network a worker computes, and is delayed itself",
        )
        for model in given.models
    ]


def table(given: Parameters, runs: Runs) -> Table:
    """Every run."""
    return Table(
        title="Time of an iteration, ms",
        columns=[
            Column(name="model"),
            Column(name="p, %", digits=0),
            Column(name="way"),
            Column(name="compute and own delays", digits=1),
            Column(name="wait", digits=1),
            Column(name="sum", digits=1),
            Column(name="iteration", digits=1),
            Column(name="partial sums, %", digits=1),
        ],
        rows=[
            [
                model,
                probability,
                ARMS[arm],
                Spread.of([job.compute_ns / 1e6 for job in jobs]),
                Spread.of([job.wait_ns / 1e6 for job in jobs]),
                Spread.of([job.aggregation_ns / 1e6 for job in jobs]),
                Spread.of([job.iteration_ns / 1e6 for job in jobs]),
                Spread.of([100 * job.degraded / (job.degraded + job.exact) for job in jobs]),
            ]
            for (model, probability, arm), jobs in runs.items()
        ],
        note=(
            "wait: from a worker's gradient to the slowest worker's, or to the sum if that comes "
            "first. Scaled alike: "
            + ", ".join(f"{model} by {given.scale(model):.0f}" for model in given.models)
            + "."
        ),
    )


def chart(given: Parameters, runs: Runs, model: str) -> Chart:
    """A line for each way."""
    lines = []
    for arm, name in ARMS.items():
        spreads = [
            Spread.of([job.iteration_ns / 1e6 for job in runs[model, probability, arm]])
            for probability in given.probabilities
        ]
        lines.append(line(name, given.probabilities, spreads))
    return Chart(
        name="" if model == next(iter(given.models)) else model.lower(),
        title=f"{model}: iterations with stragglers",
        x="probability of a delay at each point, %",
        y="time of an iteration, ms",
        series=lines,
        from_zero=True,
        marked=True,
    )


def differences(given: Parameters) -> list[str]:
    """The arithmetic of windows and time-outs."""
    parts = []
    for name, model in given.models.items():
        packets = model.megabytes * 1e6 / (given.gradients * FLOAT_BYTES)
        windows = packets / given.window
        low, high = windows * given.timeout_ms, 2 * windows * given.timeout_ms
        parts.append(f"{name} {windows:.1f} windows, {low:.0f} to {high:.0f} ms")
    return [
        f"A block ages out after {given.timeout_ms} to {2 * given.timeout_ms} ms, and the next "
        "window begins then. With the printed window a worker that misses a whole iteration costs "
        f"the others that time for each window of the gradient: {'; '.join(parts)}. That is as "
        "long as the delays themselves, so that the printed parameters cannot give iterations near "
        "the ideal ones. §5 allows windows of up to 65,535 packets: with ResNet50's or "
        "DenseNet161's gradient in one window the time-out passes once, with VGG11's twice."
    ]
