"""OLAF §8.3, Table 2: ten clusters of ten workers over SW1, SW2 and SW3, all alike."""

from __future__ import annotations

import json
import time

from pydantic import Field

from olaf.experiments import Goal, Result, Row, Spread, Task, ns3
from olaf.experiments.multihop import (
    FAIR,
    FIFO,
    FRESHEST,
    OLAF,
    Network,
    measure_all,
    paper_variants,
    scenario_of,
)
from olaf.experiments.multihop_pages import (
    all_tables,
    fifo_ages,
    locked_clocks,
    olaf_ages,
    paper_rows,
    per_worker_twice,
    two_simulators,
)

VARIANTS = [FIFO, OLAF, *paper_variants(), FAIR, FRESHEST]
GOAL_MS = 50.0
REPEATED = 5


class Parameters(Network):
    """The network, and how much of it is timed."""

    timed_s: float = Field(gt=0)
    """Simulated seconds of the run whose wall time is taken."""


def run(task: Task[Parameters]) -> Result:
    """Measure every variant in both views, and the wall time of one run."""
    network = task.parameters
    measured = measure_all(task.each_seed(), network, VARIANTS)
    fifo = dict(measured["ns-3"])[FIFO]
    cases = two_simulators(network)
    ns3_rows, ns3_tables, notes = ns3.beside(cases, task.seeds, task.say)
    return Result(
        rows=[
            *paper_rows(task.paper, measured, {"fifo": FIFO, "olaf": OLAF}),
            wall_time(task),
            *ns3_rows,
        ],
        tables=[*all_tables(measured, network.duration_s), *ns3_tables],
        notes=notes,
        differences=[
            locked_clocks(task.seeds, network, fifo),
            fifo_ages(network, task.paper, fifo),
            olaf_ages(task.paper, dict(measured["ns-3"])[OLAF]),
            per_worker_twice(task.paper, fifo, dict(measured["ns-3"])[OLAF]),
        ],
    )


def wall_time(task: Task[Parameters]) -> Row:
    """The time of the core for a run of OLAF, including JSON in and out.

    The best of some runs of each seed: what else the machine does only ever adds.
    """
    from olaf._olaf import simulate

    timed = task.parameters.model_copy(update={"duration_s": task.parameters.timed_s})
    scenario = scenario_of(timed, OLAF, "ns-3")
    took: list[float] = []
    for seed in task.seeds:
        told = json.dumps({**scenario, "seed": seed})
        runs: list[float] = []
        for _ in range(REPEATED):
            begin = time.perf_counter()
            simulate(told)
            runs.append((time.perf_counter() - begin) * 1e3)
        took.append(min(runs))
    return Row(
        quantity=f"wall time of {timed.duration_s:g} simulated seconds",
        where=f"OLAF, one core, best of {REPEATED}",
        unit="ms",
        ours=Spread.of(took),
        goal=Goal(at_most=GOAL_MS),
    )
