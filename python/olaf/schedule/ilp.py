"""Solves the choice of trees exactly, as far as time allows (MINA §III-C, the ILP), with HiGHS.

``olaf_sched::trees::Problem`` writes a problem. A choice gives each job at most one candidate and
uses no resource beyond its units; the sum of the chosen values is maximised.
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
"""Time limit in seconds for one problem; at the limit the best choice found counts."""


class Chooser(BaseModel):
    """A job that would gain by a tree."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    job: int
    units: int
    """Units that it needs of each resource of its tree."""
    values: list[int]
    """Value of each candidate, if it is chosen."""
    current: int | None
    """Index of its present candidate, or None."""
    roots: list[int]
    uses: list[list[int]]
    """The resources of each candidate."""


class Problem(BaseModel):
    """All jobs that would gain by a tree, and their candidates."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    capacity: int
    """Units of each resource."""
    jobs: list[Chooser]

    def worth(self, chosen: dict[int, int]) -> int:
        """The value of the ``chosen`` candidates by job. Raises ValueError if they are invalid."""
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
        """The present choice."""
        return {job.job: job.current for job in self.jobs if job.current is not None}


@dataclass(frozen=True)
class Solved:
    """A choice, and a bound on its distance from the best."""

    chosen: dict[int, int]
    """Candidates by job."""
    objective: int
    """Value of the choice."""
    bound: float
    """Upper bound on the value of any choice."""
    proven: bool
    """True if no choice is worth more, except for rounding."""
    seconds: float

    @property
    def gap(self) -> float:
        """Relative distance from the bound: 0 if proven."""
        return 0.0 if self.proven or self.bound <= 0 else 1 - self.objective / self.bound


def solve(problem: Problem, *, time_limit_s: float = TIME_LIMIT_S) -> Solved:
    """Choose, starting from the present choice; return no worse one.

    Within the time limit it is the optimum, up to a part in 10^9, and the same each time. At the
    limit, the result depends on the machine. Raises ValueError for a problem whose present choice
    is invalid.
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
    # Values near one, so that the solver's tolerances apply as intended.
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
        # Stopped before it had a choice, or beyond its own tolerances.
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
    """A row for each job, and for each resource that may be wanted beyond its units."""
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
    """Answers the core's problems, and keeps statistics: a callback for ``MinaSimulation``."""

    time_limit_s: float = TIME_LIMIT_S
    asked: int = 0
    """Number of problems in which a job that gains had no tree of its own."""
    better: int = 0
    """Number of those with a choice better than the heuristic's."""
    unproven: int = 0
    """Number of those that the time limit stopped."""
    seconds: float = 0.0
    heuristic: int = 0
    """Sum of the values of the heuristic's choices."""
    objective: int = 0
    """Sum of the values of the solver's choices."""
    bound: float = 0.0
    """Sum of the upper bounds."""
    worst_gap: float = field(default=0.0)
    """Largest relative distance of a choice from its bound."""

    def __call__(self, text: str) -> str | None:
        """A choice that is better than the present one, as JSON; None if none was found."""
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
        """Relative distance of the solver's choices from the bounds, over all problems."""
        return 0.0 if self.bound <= 0 else max(0.0, 1 - self.objective / self.bound)

    @property
    def heuristic_gap(self) -> float:
        """Relative distance of the heuristic's choices from the bounds, over all problems."""
        return 0.0 if self.bound <= 0 else max(0.0, 1 - self.heuristic / self.bound)

    def account(self) -> dict[str, float]:
        """The statistics as a dict, for a record."""
        return {**asdict(self), "gap": self.gap, "heuristic_gap": self.heuristic_gap}

    def words(self) -> str:
        """The statistics as a sentence."""
        return (
            f"HiGHS: {self.asked} problems, {self.better} better choices, {self.unproven} stopped "
            f"at the time limit, {self.seconds:.1f} s. At most {self.gap:.4%} from the "
            f"optimum, {self.worst_gap:.2%} in the worst choice; the heuristic alone "
            f"{self.heuristic_gap:.4%}."
        )
