"""iSwitch §6.1, Table 3 (synchronous): speed-up over the parameter server, in virtual time."""

from __future__ import annotations

from olaf.experiments import (
    Baseline,
    Bound,
    Chart,
    Column,
    Goal,
    Result,
    Row,
    Series,
    Spread,
    Table,
    Task,
)
from olaf.experiments.iswitch.synchronous import (
    APPROACHES,
    Cluster,
    Given,
    Runs,
    aggregation_ms,
    all_ready_at_once,
    compute_ms,
    ends,
    iteration_ms,
    share,
    train_all,
)
from olaf.scenarios.sums import Job

Parameters = Cluster


def run(task: Task[Cluster]) -> Result:
    """Train each model with each approach."""
    given = task.parameters
    runs, together = train_all(task), all_ready_at_once(task)
    return Result(
        rows=[
            *speed_ups(task, runs),
            *reductions(task, together),
            *against_ring(given, together),
        ],
        charts=[chart(task, runs)],
        tables=[times(runs), arithmetic(task)],
        differences=measured(task, runs),
        bounds=bounds(task, runs),
    )


def speed_up(jobs: dict[str, Job], engine: str) -> float:
    """Of an engine over the parameter server."""
    return jobs["ps"].iteration_ns / jobs[engine].iteration_ns


def speed_ups(task: Task[Cluster], runs: Runs) -> list[Row]:
    """The paper's rows."""
    return [
        Row(
            quantity="speed-up",
            where=f"{APPROACHES[engine]}, {model}",
            paper=task.paper["table3"][model][APPROACHES[engine]],
            ours=Spread.of([speed_up(jobs, engine) for jobs in of]),
            baseline=Baseline(name="PS", paper=1, ours=1),
        )
        for engine in ("iswitch", "ring")
        for model, of in runs.items()
    ]


def reductions(task: Task[Cluster], runs: Runs) -> list[Row]:
    """By how much iSwitch's aggregation is shorter: the paper prints the ends of a range.

    All workers are ready at once: how long they wait for the slowest is no matter of the network.
    """
    low, high = task.paper["reduction"]
    least, most = ends(
        runs, lambda jobs: 100 * (1 - jobs["iswitch"].aggregation_ns / jobs["ps"].aggregation_ns)
    )
    rows = [
        ("the least of the models", least, low, Goal(at_least=low)),
        ("the most of the models", most, high, None),
    ]
    return [
        Row(
            quantity="aggregation shorter than PS's",
            where=where,
            unit="%",
            paper=paper,
            ours=ours,
            baseline=Baseline(name="PS", paper=0, ours=0),
            goal=goal,
        )
        for where, ours, paper, goal in rows
    ]


def against_ring(given: Cluster, runs: Runs) -> list[Row]:
    """The ring sends 2(n-1)/n vectors on each link, iSwitch one."""
    theory = 2 * (given.workers - 1) / given.workers
    return [
        Row(
            quantity="aggregation of AR over iSW's",
            where=model,
            ours=Spread.of(
                [jobs["ring"].aggregation_ns / jobs["iswitch"].aggregation_ns for jobs in of]
            ),
            goal=Goal(at_least=0.95 * theory),
            note=f"2(n-1)/n = {theory:g}; goal: at most 5 % lost",
            headline=False,
        )
        for model, of in runs.items()
    ]


def times(runs: Runs) -> Table:
    """The parts of our iterations."""
    return Table(
        title="Our time of an iteration, ms",
        columns=[
            Column(name="model"),
            Column(name="approach"),
            Column(name="compute", digits=3),
            Column(name="wait", digits=3),
            Column(name="sum", digits=3),
            Column(name="iteration", digits=3),
            Column(name="share of aggregation, %", digits=1),
        ],
        rows=[
            [
                model,
                name,
                Spread.of([jobs[engine].compute_ns / 1e6 for jobs in of]),
                Spread.of([jobs[engine].wait_ns / 1e6 for jobs in of]),
                Spread.of([jobs[engine].aggregation_ns / 1e6 for jobs in of]),
                Spread.of([jobs[engine].iteration_ns / 1e6 for jobs in of]),
                Spread.of([share(jobs[engine]) for jobs in of]),
            ]
            for model, of in runs.items()
            for engine, name in APPROACHES.items()
        ],
        note="wait: from a worker's gradient to the slowest worker's; sum: from then on.",
    )


def line_ms(given: Given, model: str) -> float:
    """Bytes over bandwidth."""
    return given.models[model] * 8 / (given.rate_gbit * 1e9) * 1e3


def vectors(given: Cluster) -> dict[str, float]:
    """Vectors that cross the busiest link, both directions, one after the other."""
    n = given.workers
    return {"PS": 2.0 * n, "AR": 2 * (n - 1) / n, "iSW": 1.0}


def arithmetic(task: Task[Cluster]) -> Table:
    """What the paper's own numbers say of its aggregation, beside bytes over bandwidth."""
    given, paper = task.parameters, task.paper
    low, high = paper["reduction"]
    rows: list[list[Spread | float | str | None]] = []
    for model in given.models:
        for approach, many in vectors(given).items():
            took = aggregation_ms(paper, model, approach, given.reduction)
            least = many * line_ms(given, model)
            rows.append(
                [
                    model,
                    approach,
                    iteration_ms(paper, model, approach),
                    compute_ms(paper, model, low / 100),
                    compute_ms(paper, model, high / 100),
                    compute_ms(paper, model, given.reduction),
                    took,
                    least,
                    took / least,
                ]
            )
    return Table(
        title="What follows from the paper's Table 4 and §6.1, ms",
        columns=[
            Column(name="model"),
            Column(name="approach"),
            Column(name="iteration", digits=2),
            Column(name=f"compute at {low:g} %", digits=2),
            Column(name=f"compute at {high:g} %", digits=2),
            Column(name="compute used here", digits=2),
            Column(name="aggregation", digits=2),
            Column(name="bytes over bandwidth", digits=3),
            Column(name="ratio", digits=1),
        ],
        rows=rows,
        note=(
            "iteration: hours over iterations. compute: PS and iSW differ by their aggregation "
            "alone, which is shorter by 81.6 to 85.8 % with iSW. bytes over bandwidth: the vectors "
            "that cross the busiest link, without headers, hosts or delays."
        ),
    )


def chart(task: Task[Cluster], runs: Runs) -> Chart:
    """Speed-ups beside the paper's."""
    models = list(runs)
    ours = [
        Series(
            name=f"{APPROACHES[engine]}",
            points=[
                (float(at), Spread.of([speed_up(jobs, engine) for jobs in runs[model]]).mean)
                for at, model in enumerate(models)
            ],
        )
        for engine in ("ring", "iswitch")
    ]
    theirs = [
        Series(
            name=f"{name}, paper",
            of="paper",
            points=[
                (float(at), task.paper["table3"][model][name]) for at, model in enumerate(models)
            ],
        )
        for name in ("AR", "iSW")
    ]
    return Chart(
        title="speed-up over the parameter server",
        x="model",
        y="times",
        kind="bars",
        series=[*ours, *theirs],
        ticks=models,
        from_zero=True,
    )


def bounds(task: Task[Cluster], runs: Runs) -> list[Bound]:
    """What no network could be faster than."""
    return [
        Bound(
            quantity=f"speed-up, {model}",
            value=Spread.of([jobs["ps"].iteration_ns / jobs["ps"].compute_ns for jobs in of]).mean,
            why="without any network an iteration takes its computation",
        )
        for model, of in runs.items()
    ]


def measured(task: Task[Cluster], runs: Runs) -> list[str]:
    """What the numbers say of the difference."""
    given = task.parameters
    small = min(given.models, key=lambda model: given.models[model])
    large = max(given.models, key=lambda model: given.models[model])
    parts = []
    for model in (small, large):
        theirs = aggregation_ms(task.paper, model, "iSW", given.reduction)
        ours = Spread.of([jobs["iswitch"].aggregation_ns / 1e6 for jobs in runs[model]]).mean
        parts.append(f"{model} {theirs:.2f} ms (ours {ours:.3f})")
    return [
        "The paper's aggregation is slower than its links, whatever sums: with iSW it takes "
        f"{' and '.join(parts)}. What takes the rest is at the hosts (the paper's stack is MPI and "
        "Python), and the paper prints nothing of it: neither its size nor how it grows with "
        "bytes or messages. Here hosts take no time, so that short vectors gain less than in the "
        "paper."
    ]
