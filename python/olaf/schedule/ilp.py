"""The choice of trees solved exactly, as far as time allows (MINA §III-C, the ILP), with HiGHS.

A problem is what ``olaf_sched::trees::Problem`` writes: of each job at most one candidate, on no
resource more units than it has, the values of the chosen as large as can be together.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass, field

import highspy
import numpy as np
from pydantic import BaseModel, ConfigDict

TIME_LIMIT_S = 1.0
"""For one problem: after it, the best that was found counts, and the gap says how good it is."""


class Chooser(BaseModel):
    """A job that would gain by a tree."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    job: int
    units: int
    """That it asks of each resource of its tree."""
    values: list[int]
    """Of each candidate, if it is chosen."""
    current: int | None
    """The candidate that it has now."""
    roots: list[int]
    uses: list[list[int]]
    """Of each candidate: its resources."""


class Problem(BaseModel):
    """All jobs that would gain by a tree, and what they could have."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    capacity: int
    """Units that each resource has."""
    jobs: list[Chooser]

    def worth(self, chosen: dict[int, int]) -> int:
        """What a choice is worth. chosen: candidates by job. Raises ValueError for none."""
        jobs = {job.job: job for job in self.jobs}
        held: Counter[int] = Counter()
        for job, candidate in chosen.items():
            for resource in jobs[job].uses[candidate]:
                held[resource] += jobs[job].units
        over = [resource for resource, units in held.items() if units > self.capacity]
        if over:
            raise ValueError(f"resource {over[0]}: {held[over[0]]} units of {self.capacity}")
        return sum(jobs[job].values[candidate] for job, candidate in chosen.items())

    def current(self) -> dict[int, int]:
        """What the jobs have now."""
        return {job.job: job.current for job in self.jobs if job.current is not None}


@dataclass(frozen=True)
class Solved:
    """A choice, and how good it is."""

    chosen: dict[int, int]
    """Candidates by job."""
    objective: int
    """What it is worth."""
    bound: float
    """No choice is worth more."""
    proven: bool
    """No choice is worth more than this one, but for rounding."""
    seconds: float

    @property
    def gap(self) -> float:
        """The part of the bound that may be missing: 0 if proven."""
        return 0.0 if self.proven or self.bound <= 0 else 1 - self.objective / self.bound


def solve(problem: Problem, *, time_limit_s: float = TIME_LIMIT_S) -> Solved:
    """Choose; start from what the jobs have now, and return nothing worse.

    Within the time limit it is the optimum, up to a part in 10^9 and the same each time; when the
    limit cuts it short, what is found depends on the machine. Raises ValueError for a problem
    whose current choice is none.
    """
    begin = time.perf_counter()
    current = problem.current()
    worth = problem.worth(current)
    names = [(job.job, at) for job in problem.jobs for at in range(len(job.values))]
    if not names:
        return Solved({}, 0, 0.0, True, time.perf_counter() - begin)
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in {
        "output_flag": False,
        "threads": 1,
        "random_seed": 0,
        "time_limit": time_limit_s,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 1e-9,
    }.items():
        solver.setOptionValue(option, value)
    # Values near one, so that the solver's tolerances mean what they say.
    scale = float(max(value for job in problem.jobs for value in job.values)) or 1.0
    solver.passModel(_model(problem, scale))
    start = highspy.HighsSolution()
    start.col_value = [float(current.get(job) == at) for job, at in names]
    solver.setSolution(start)
    solver.run()
    found = solver.getSolution().col_value
    info = solver.getInfo()
    chosen = {name[0]: name[1] for name, value in zip(names, found, strict=True) if value > 0.5}
    try:
        objective = problem.worth(chosen)
    except ValueError:
        # Cut short before it had anything, or beyond its own tolerances.
        objective = -1
    if objective < worth:
        chosen, objective = current, worth
    proven = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    bound = float(info.mip_dual_bound) * scale
    if not np.isfinite(bound):
        bound = float(sum(max(job.values) for job in problem.jobs if job.values))
    return Solved(
        chosen, objective, max(bound, float(objective)), proven, time.perf_counter() - begin
    )


def _model(problem: Problem, scale: float) -> highspy.HighsLp:
    """A row for each job, and for each resource that could be wanted beyond its units."""
    wanted: Counter[int] = Counter()
    for job in problem.jobs:
        for resource in {resource for uses in job.uses for resource in uses}:
            wanted[resource] += job.units
    scarce = sorted(resource for resource, units in wanted.items() if units > problem.capacity)
    row = {resource: len(problem.jobs) + at for at, resource in enumerate(scarce)}
    starts, rows, entries, costs = [0], list[int](), list[float](), list[float]()
    for number, job in enumerate(problem.jobs):
        for value, uses in zip(job.values, job.uses, strict=True):
            here = [row[resource] for resource in uses if resource in row]
            rows += [number, *here]
            entries += [1.0, *[float(job.units)] * len(here)]
            starts.append(len(rows))
            costs.append(value / scale)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(costs), len(problem.jobs) + len(scarce)
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = np.array(costs)
    model.col_lower_, model.col_upper_ = np.zeros(len(costs)), np.ones(len(costs))
    model.row_lower_ = np.full(model.num_row_, -highspy.kHighsInf)
    units = float(problem.capacity)
    model.row_upper_ = np.array([1.0] * len(problem.jobs) + [units] * len(scarce))
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.array(starts)
    model.a_matrix_.index_ = np.array(rows)
    model.a_matrix_.value_ = np.array(entries)
    model.integrality_ = [highspy.HighsVarType.kInteger] * len(costs)
    return model


@dataclass
class Solver:
    """Answers the core's questions, and keeps account: a callback for ``MinaSimulation``."""

    time_limit_s: float = TIME_LIMIT_S
    asked: int = 0
    """Problems in which a job that gains had no tree of its own."""
    better: int = 0
    """Of those: where another choice than the heuristic's was worth more."""
    unproven: int = 0
    """Of those: cut short by the time limit."""
    seconds: float = 0.0
    heuristic: int = 0
    """What the heuristic's choices were worth together."""
    objective: int = 0
    """What the solver's were."""
    bound: float = 0.0
    """What none exceeds."""
    worst_gap: float = field(default=0.0)
    """Of the solver's choices: the largest part of a bound that may be missing."""

    def __call__(self, text: str) -> str | None:
        """A choice that is worth more than the current one, as JSON; None if none was found."""
        problem = Problem.model_validate_json(text)
        current = problem.worth(problem.current())
        solved = solve(problem, time_limit_s=self.time_limit_s)
        self.asked += 1
        self.better += solved.objective > current
        self.unproven += not solved.proven
        self.seconds += solved.seconds
        self.heuristic += current
        self.objective += solved.objective
        self.bound += solved.bound
        self.worst_gap = max(self.worst_gap, solved.gap)
        if solved.objective <= current:
            return None
        chosen = [{"job": job, "candidate": at} for job, at in sorted(solved.chosen.items())]
        return json.dumps({"chosen": chosen})

    @property
    def gap(self) -> float:
        """The part of all bounds together that the solver's choices may miss."""
        return 0.0 if self.bound <= 0 else max(0.0, 1 - self.objective / self.bound)

    @property
    def heuristic_gap(self) -> float:
        """The part of all bounds together that the heuristic's choices may miss."""
        return 0.0 if self.bound <= 0 else max(0.0, 1 - self.heuristic / self.bound)

    def account(self) -> dict[str, float]:
        """All of it, for a record."""
        return {**asdict(self), "gap": self.gap, "heuristic_gap": self.heuristic_gap}

    def words(self) -> str:
        """All of it, for people."""
        return (
            f"HiGHS: asked {self.asked} times, found more {self.better} times, cut short "
            f"{self.unproven} times, {self.seconds:.1f} s. At most {self.gap:.4%} from the "
            f"optimum, {self.worst_gap:.2%} in the worst choice; the heuristic alone "
            f"{self.heuristic_gap:.4%}."
        )
