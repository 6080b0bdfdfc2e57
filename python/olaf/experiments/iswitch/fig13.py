"""iSwitch §6.1, Figure 13: rewards of DQN over time, with each synchronous approach."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from pydantic import Field

from olaf.experiments import Baseline, Chart, Column, Result, Row, Spread, Table, Task
from olaf.experiments.comparing import line
from olaf.experiments.iswitch import asynchronous, synchronous
from olaf.experiments.iswitch.asynchronous import Course, Training
from olaf.experiments.iswitch.synchronous import APPROACHES, Cluster

PACKETS = 16
"""Parts of a vector that meet in iSwitch's switch in orders of their own."""


class Parameters(Cluster):
    """The main cluster (iSwitch §5.3), and what it learns."""

    mark: float
    """Mean reward of the last 20 episodes at which a training ends, on our small task."""
    most: int = Field(ge=1)
    """Iterations after which a training has failed."""
    compared_at: list[int] = Field(min_length=1)
    """Iterations after which the weights of the approaches are compared."""


Runs = dict[str, dict[str, list[Course]]]
"""By model and approach, one course per seed."""


def run(task: Task[Parameters]) -> Result:
    """Train with each approach, from the same weights and with the same gradients at first."""
    given = task.parameters
    runs: Runs = {model: {approach: [] for approach in APPROACHES} for model in given.models}
    for seed in task.each_seed():
        for model in given.models:
            jobs = synchronous.measure(given, task.paper, model, [given.workers], seed=seed)
            for approach, name in APPROACHES.items():
                task.say(f"seed {seed}: {model}, {name}")
                training = Training(model, given.workers, seed, given.mark, given.most)
                course = asynchronous.synchronous(
                    training,
                    jobs[approach].iteration_ns / 1e9,
                    orders_of(approach, given.workers, seed),
                    keep=given.compared_at,
                )
                runs[model][approach].append(course)
    return Result(
        rows=[row for model in runs for row in rows(task, runs, model)],
        charts=[chart(runs, model) for model in runs],
        tables=[ends(runs), weights(given, runs)],
    )


def orders_of(approach: str, workers: int, seed: int) -> Callable[[int], list[list[int]]]:
    """In which order an approach adds the workers' values, in each part of the vector."""
    ranks = list(range(workers))

    def drawn(iteration: int, parts: int) -> list[list[int]]:
        random = np.random.default_rng([seed, iteration])
        return [[int(rank) for rank in random.permutation(workers)] for _ in range(parts)]

    return {
        # Whole vectors, as they come.
        "ps": lambda iteration: drawn(iteration, 1),
        # Part p begins at worker p + 1, and goes round.
        "ring": lambda _: [[*ranks[at + 1 :], *ranks[: at + 1]] for at in ranks],
        # Packets, as they come.
        "iswitch": lambda iteration: drawn(iteration, PACKETS),
    }[approach]


def rows(task: Task[Parameters], runs: Runs, model: str) -> list[Row]:
    """Time and iterations to the mark, over the parameter server's."""
    made = []
    for approach in ("ring", "iswitch"):
        pairs = list(zip(runs[model]["ps"], runs[model][approach], strict=True))
        hours, name = task.paper["table4"][model], APPROACHES[approach]
        made += [
            Row(
                quantity="time to the same reward, over the parameter server's",
                where=f"{name}, {model}",
                paper=hours[name] / hours["PS"],
                ours=Spread.of([b.seconds / a.seconds for a, b in pairs]),
                baseline=Baseline(name="PS", paper=1, ours=1),
            ),
            Row(
                quantity="iterations to the same reward, over the parameter server's",
                where=f"{name}, {model}",
                paper=1,
                ours=Spread.of([b.iterations / a.iterations for a, b in pairs]),
                headline=False,
            ),
        ]
    return made


def ends(runs: Runs) -> Table:
    """Where each training ended."""
    return Table(
        title="Until the mark",
        columns=[
            Column(name="model"),
            Column(name="approach"),
            Column(name="reached the mark"),
            Column(name="iterations", digits=0),
            Column(name="time of an iteration, ms", digits=2),
            Column(name="virtual seconds", digits=1),
        ],
        rows=[
            [
                model,
                name,
                f"{sum(course.reached for course in courses)} of {len(courses)}",
                Spread.of([float(course.iterations) for course in courses]),
                Spread.of([1e3 * course.iteration_s for course in courses]),
                Spread.of([course.seconds for course in courses]),
            ]
            for model in runs
            for approach, name in APPROACHES.items()
            for courses in [runs[model][approach]]
        ],
    )


def weights(given: Parameters, runs: Runs) -> Table:
    """How far the order of the sums moves the weights apart."""
    return Table(
        title="Largest difference of a weight from the parameter server's, over the largest weight",
        columns=[
            Column(name="model"),
            Column(name="approach"),
            Column(name="iterations", digits=0),
            Column(name="difference"),
        ],
        rows=[
            [model, APPROACHES[approach], at, Spread.of(apart)]
            for model in runs
            for approach in ("ring", "iswitch")
            for at in given.compared_at
            if (apart := _apart(runs[model]["ps"], runs[model][approach], at))
        ],
        note="Float32 sums in another order differ in their last bit, and training amplifies it.",
    )


def chart(runs: Runs, model: str) -> Chart:
    """A curve for each approach, over the seeds."""
    series = []
    for approach, name in APPROACHES.items():
        curve = asynchronous.rewards(runs[model][approach])
        series.append(line(name, [at for at, _ in curve], [spread for _, spread in curve]))
    return Chart(
        title=f"{model} on a small task, synchronous",
        x="virtual time, s",
        y="mean reward of the last 20 episodes",
        series=series,
    )


def _apart(ps: list[Course], other: list[Course], at: int) -> list[float]:
    """Of the seeds in which both approaches came so far."""
    return [
        float(np.abs(a.kept[at] - b.kept[at]).max() / np.abs(a.kept[at]).max())
        for a, b in zip(ps, other, strict=True)
        if at in a.kept and at in b.kept
    ]
