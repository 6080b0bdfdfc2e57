"""HiGHS chooses as well as trying everything does; the simulator asks it and says the gap."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from olaf.cli.main import olaf
from olaf.schedule.ilp import Chooser, Problem, Solver, solve


def _random_problem(seed: int, jobs: int = 6) -> Problem:
    """Jobs with up to three candidates on eight resources; the first has its first candidate."""
    draw = random.Random(seed)
    capacity = draw.choice([1, 1, 2, 5])
    choosers = []
    for job in range(jobs):
        count = draw.randint(1, 3)
        gain = draw.randint(1, 60_000_000_000)
        values = [gain] * count
        current = 0 if job == 0 else None
        if current is not None:
            values[current] += gain // 20
        uses = [sorted(draw.sample(range(8), draw.randint(1, 4))) for _ in range(count)]
        units = draw.randint(1, capacity)
        choosers.append(
            Chooser(
                job=job * 7,
                units=units,
                values=values,
                current=current,
                roots=list(range(count)),
                uses=uses,
            )
        )
    return Problem(capacity=capacity, jobs=choosers)


def _optimum(problem: Problem) -> int:
    best = 0
    for choice in itertools.product(*[[None, *range(len(j.values))] for j in problem.jobs]):
        pairs = zip(problem.jobs, choice, strict=True)
        chosen = {job.job: at for job, at in pairs if at is not None}
        try:
            best = max(best, problem.worth(chosen))
        except ValueError:
            continue
    return best


@pytest.mark.parametrize("seed", range(40))
def test_small_problems_are_solved_to_the_optimum(seed: int) -> None:
    problem = _random_problem(seed)
    solved = solve(problem, time_limit_s=30)
    assert solved.proven
    assert solved.gap == 0
    assert problem.worth(solved.chosen) == solved.objective == _optimum(problem)
    assert solved.bound == pytest.approx(solved.objective, rel=1e-6)


def test_without_time_nothing_is_lost() -> None:
    problem = _random_problem(3, jobs=40)
    solved = solve(problem, time_limit_s=0.0)
    assert solved.objective >= problem.worth(problem.current())
    assert solved.bound >= solved.objective


def test_no_job_no_choice() -> None:
    solved = solve(Problem(capacity=1, jobs=[]))
    assert (solved.chosen, solved.objective, solved.gap, solved.proven) == ({}, 0, 0.0, True)


def test_the_solver_answers_only_where_it_found_more() -> None:
    one = Chooser(job=1, units=1, values=[105], current=0, roots=[0], uses=[[4]])
    two = Chooser(job=2, units=1, values=[100, 100], current=None, roots=[0, 1], uses=[[4], [4]])
    solver = Solver(time_limit_s=30)
    assert solver(Problem(capacity=1, jobs=[one, two]).model_dump_json()) is None
    rich = two.model_copy(update={"values": [200, 200]})
    answer = solver(Problem(capacity=1, jobs=[one, rich]).model_dump_json())
    assert answer is not None
    (chosen,) = json.loads(answer)["chosen"]
    assert chosen["job"] == 2
    assert (solver.asked, solver.better, solver.unproven) == (2, 1, 0)
    assert solver.heuristic_gap == pytest.approx(1 - 210 / 305)
    assert solver.gap == pytest.approx(0, abs=1e-6)


def test_a_simulation_with_exact_trees_says_how_good_they_are(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.txt"
    names = ["mlp", "cnn"]
    jobs.write_text("".join(f"{names[n % 2]} {2 + n % 5} 3\n" for n in range(24)))
    command = ["simulate", "mina", "--jobs", str(jobs), "--topology", "fat-tree:4"]
    command += ["--capacity", "switch:1", "--bandwidth", "100mbit", "--json"]
    scores = {}
    for trees in ("gain", "exact"):
        done = CliRunner().invoke(olaf, [*command, "--trees", trees])
        assert done.exit_code == 0, done.output
        scores[trees] = json.loads(done.stdout)
    account = scores["exact"]["solver"]
    assert scores["gain"]["solver"] is None
    assert account["asked"] > 0
    assert 0 <= account["gap"] <= account["heuristic_gap"] < 0.5
    assert account["objective"] >= account["heuristic"]
