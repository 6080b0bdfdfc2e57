"""Starts are fast because they import little: what is heavy is imported where it is needed."""

import json
import subprocess
import sys

import pytest

from olaf.jobs.forking import LEARNING

HEAVY = ("matplotlib", "PIL", "torch", "pydantic", "rich", "tensorboardX", "pandas", "ray", "wandb")


def loaded(*modules: str) -> set[str]:
    """The packages that Python has after these imports, in a process of its own."""
    names = "; ".join(f"import {name}" for name in modules)
    code = f"import json, sys; {names}; print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_the_command_line_starts_the_fork_server_before_anything_heavy() -> None:
    assert not loaded("olaf.cli.train", "olaf.cli.compare") & {*HEAVY, "numpy", "gymnasium"}


def test_a_worker_imports_its_learner_and_nothing_to_look_at() -> None:
    found = loaded(*LEARNING)
    assert not found & set(HEAVY)
    assert {"numpy", "gymnasium"} <= found


@pytest.mark.parametrize(
    "modules",
    [
        ("olaf.jobs.training", "olaf.runs.session", "olaf.runs.running"),
        ("olaf.report.page", "olaf.report.scalars", "olaf.report.tables"),
    ],
)
def test_plots_are_imported_when_they_are_drawn(modules: tuple[str, ...]) -> None:
    assert not loaded(*modules) & {"matplotlib", "PIL", "torch", "gymnasium", "tensorboardX"}


REHEARSAL = """
import io
from olaf.jobs.rehearsing import run_rehearsal
from olaf.processes.lines import Reporter
before = set(sys.modules)
told = {"learner": {"environment": "CartPole-v1"}, "seed": 0}
run_rehearsal(told, Reporter(as_json=True, out=io.StringIO(), human=str))
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_the_fork_server_has_what_a_learner_needs() -> None:
    """What the server has not imported, each of the workers imports for itself."""
    code = f"import json, sys; {'; '.join(f'import {name}' for name in LEARNING)}\n{REHEARSAL}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert [name for name in found if not name.startswith("gymnasium.envs.")] == []
