"""Synchronous training of iSwitch's four models, in virtual time (`olaf simulate sums`).

What the paper prints of each model gives its time to compute: Table 4 has hours and iterations of
each approach, and §6.1 by how much iSwitch's aggregation is shorter than the parameter server's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import Field

from olaf import experiments
from olaf.experiments import Spread, Task
from olaf.scenarios.sums import Job, plain, run

APPROACHES = {"ps": "PS", "ring": "AR", "iswitch": "iSW"}
"""By engine, the paper's names."""
S_PER_HOUR = 3600


class Given(experiments.Parameters):
    """The cluster, and how long it trains."""

    rate_gbit: float = Field(gt=0)
    """Rate of each link of a host."""
    trunk_gbit: float = Field(gt=0)
    """Rate of a link between a rack's switch and the upper one."""
    delay_us: float = Field(ge=0)
    """Delay of each link."""
    iterations: int = Field(ge=1)
    """Iterations of each run."""
    compute_spread: float = Field(ge=0)
    """Standard deviation of the time to compute, as a share of its mean."""
    reduction: float = Field(gt=0, lt=1)
    """Share by which iSwitch's aggregation is shorter than the parameter server's, in the paper."""
    models: dict[str, int] = Field(min_length=1)
    """Bytes of each model's gradient."""


class Cluster(Given):
    """The main cluster (iSwitch §5.3)."""

    workers: int = Field(ge=2)
    """Workers, at one switch."""


Runs = dict[str, list[dict[str, Job]]]
"""By model, one run of each approach per seed."""


def iteration_ms(paper: Mapping[str, Any], model: str, approach: str) -> float:
    """The paper's time of an iteration: hours over iterations of Table 4."""
    of = paper["table4"][model]
    return float(of[approach]) * S_PER_HOUR * 1e3 / float(of["iterations"])


def aggregation_ms(paper: Mapping[str, Any], model: str, approach: str, reduction: float) -> float:
    """The paper's time of aggregation that follows from its times and the reduction.

    PS and iSW differ by their aggregation alone: PS - iSW = reduction * (aggregation of PS).
    """
    ps, isw = (iteration_ms(paper, model, one) for one in ("PS", "iSW"))
    compute = ps - (ps - isw) / reduction
    return iteration_ms(paper, model, approach) - compute


def compute_ms(paper: Mapping[str, Any], model: str, reduction: float) -> float:
    """The paper's time of an iteration of PS without its aggregation."""
    return iteration_ms(paper, model, "PS") - aggregation_ms(paper, model, "PS", reduction)


def share(job: Job) -> float:
    """Percent of an iteration in which a worker waits for others and for the sum."""
    return 100 * (job.wait_ns + job.aggregation_ns) / job.iteration_ns


def measure(
    given: Given,
    paper: Mapping[str, Any],
    model: str,
    racks: Sequence[int],
    *,
    seed: int,
    engines: Sequence[str] = tuple(APPROACHES),
) -> dict[str, Job]:
    """A run of each engine on a network of its own; computation is drawn alike.

    One rack has no upper switch. Raises RunError where a job fails.
    """
    jobs = {}
    for engine in engines:
        scenario = {
            "network": {
                "racks": list(racks),
                "rate_bps": round(given.rate_gbit * 1e9),
                "trunk_rate_bps": round(given.trunk_gbit * 1e9),
                "delay_ns": round(given.delay_us * 1e3),
            },
            "jobs": [
                {
                    "name": engine,
                    "engine": engine,
                    "workers": sum(racks),
                    "model_bytes": given.models[model],
                    "iterations": given.iterations,
                    "compute_ns": round(compute_ms(paper, model, given.reduction) * 1e6),
                    "compute_spread": given.compute_spread,
                }
            ],
        }
        jobs[engine] = done(run(plain(scenario), seed).jobs[0])
    return jobs


def train_all(task: Task[Cluster]) -> Runs:
    """Train each model with each approach."""
    given = task.parameters
    runs: Runs = {model: [] for model in given.models}
    for seed in task.each_seed():
        for model in given.models:
            task.say(f"seed {seed}: {model}")
            runs[model].append(measure(given, task.paper, model, [given.workers], seed=seed))
    return runs


def all_ready_at_once(task: Task[Cluster]) -> Runs:
    """An iteration in which all workers are ready at once.

    Nothing is drawn then: one run counts for every seed.
    """
    given = task.parameters
    even = given.model_copy(update={"compute_spread": 0.0, "iterations": 1})
    return {
        model: [measure(even, task.paper, model, [given.workers], seed=0)] * len(task.seeds)
        for model in given.models
    }


def ends(runs: Runs, of: Callable[[dict[str, Job]], float]) -> tuple[Spread, Spread]:
    """The least and the most of all models, one per seed."""
    seeds = list(zip(*([of(jobs) for jobs in each] for each in runs.values()), strict=True))
    return Spread.of([min(seed) for seed in seeds]), Spread.of([max(seed) for seed in seeds])


def done(job: Job) -> Job:
    """The job, if it ended. Raises RunError."""
    from olaf.errors.outcome import RunError

    if job.failed is not None:
        raise RunError(f"job {job.name}: {job.failed}")
    return job
