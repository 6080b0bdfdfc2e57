"""`tb/conftest.py`: what forces a test to run, in a small project with tests that burn time."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RTL = Path(__file__).resolve().parents[2]
BURN = """
import time
from pathlib import Path

def burn(name: str) -> None:
    with Path("ran").open("a") as file:
        print(name, file=file)
    while time.process_time() < 0.3:
        pass
    assert not Path("broken").exists()
"""
TEST = "from burn import burn\n{more}\ndef test_{name}() -> None:\n    burn({name!r})\n"
INI = "[pytest]\ntestpaths = tb\npythonpath = tb/support tools\naddopts = -p no:cacheprovider\n"


class Project:
    """Two tests: `adder`, and `engine`, which asks the compiled engine through `traffic`."""

    def __init__(self, root: Path) -> None:
        self.rtl = root / "rtl"
        conftest = (RTL / "tb" / "conftest.py").read_text()
        for line, other in (("CHEAP = 1.0", "CHEAP = 0.0"), ("BUDGET = 20.0", "BUDGET = -1.0")):
            assert conftest.count(f"\n{line}\n") == 1
            conftest = conftest.replace(line, other)
        # None is drawn: the tests of `record` look at that.
        text = (RTL / "tools" / "record.py").read_text()
        assert text.count("if drawn and spent > budget:") == 1
        self.put("tools/record.py", text.replace("if drawn and spent", "if spent"))
        self.put("tb/conftest.py", conftest)
        self.put("tb/support/burn.py", BURN)
        self.put("tb/support/traffic.py", "# from olaf._olaf import Engine")
        self.put("tb/adder/test_adder.py", TEST.format(name="adder", more=""))
        self.put("tb/engine/test_engine.py", TEST.format(name="engine", more="import traffic"))
        self.put("pytest.ini", INI)
        for name in ("rtl/adder.v", "boards/a.v", "syn/a.v", "formal/a.sby", "constraints.txt"):
            self.put(name, "")
        self.put("../Cargo.lock", "")
        for folder in ("vectors/p4", "vectors/wire/native"):
            self.put(f"../{folder}/a.json", "")
        for crate in ("wire", "engine", "host", "py"):
            self.put(f"../crates/olaf-{crate}/src/lib.rs", "")
        self.tool("g++", "1")
        for name in ("iverilog", "verilator"):
            self.tool(name, "1")

    def put(self, name: str, text: str) -> None:
        path = self.rtl / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def tool(self, name: str, version: str) -> None:
        self.put(f"../bin/{name}", f"#!/bin/sh\necho {version}\n")
        (self.rtl.parent / "bin" / name).chmod(0o755)

    def run(self, *options: str) -> list[str]:
        """The tests that ran."""
        self.put("ran", "")
        path = f"{self.rtl.parent / 'bin'}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("PYTEST_XDIST_WORKER", None)
        command = [sys.executable, "-m", "pytest", *options]
        done = subprocess.run(
            command, cwd=self.rtl, env=environment, check=False, capture_output=True, text=True
        )
        self.said = done.stdout + done.stderr
        return sorted((self.rtl / "ran").read_text().split())

    def recorded(self) -> list[str]:
        with (self.rtl / "tb" / "passed.csv").open(newline="") as file:
            return sorted(row["job"].partition("::")[2] for row in csv.DictReader(file))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    assert made.run() == ["adder", "engine"], made.said
    assert made.recorded() == ["test_adder", "test_engine"]
    return made


@pytest.mark.parametrize("workers", [(), ("-n", "2", "--dist", "loadgroup")])
def test_unchanged_tests_are_left_out_and_named_unless_all_are_asked_for(
    project: Project, workers: tuple[str, ...]
) -> None:
    assert project.run(*workers) == []
    assert "2 tests are left out" in project.said
    assert "test_adder.py::test_adder" in project.said
    assert project.run(*workers, "--all") == ["adder", "engine"]
    assert project.run(*workers, "tb/adder") == ["adder"], "a test that is named is meant"


@pytest.mark.parametrize(
    ("file", "runs"),
    [
        ("rtl/adder.v", ["adder", "engine"]),
        ("tb/support/burn.py", ["adder", "engine"]),
        ("constraints.txt", ["adder", "engine"]),
        ("../vectors/p4/a.json", ["adder", "engine"]),
        ("../crates/olaf-engine/src/lib.rs", ["engine"]),
        ("../Cargo.lock", ["engine"]),
        ("formal/proved.csv", []),
        ("README.md", []),
    ],
)
def test_a_change_of_what_a_test_reads_makes_it_run(
    project: Project, file: str, runs: list[str]
) -> None:
    path = project.rtl / file
    project.put(file, (path.read_text() if path.exists() else "") + "\n# changed\n")
    assert project.run() == runs, project.said
    assert project.run() == []


def test_another_simulator_makes_all_run(project: Project) -> None:
    project.tool("iverilog", "2")
    assert project.run() == ["adder", "engine"]


def test_a_test_that_fails_is_forgotten(project: Project) -> None:
    project.put("broken", "")
    assert project.run("tb/adder") == ["adder"]
    assert project.recorded() == ["test_engine"]
    (project.rtl / "broken").unlink()
    assert project.run() == ["adder"]
    shutil.rmtree(project.rtl / "tb" / "engine")
    assert project.run("--all") == ["adder"]
    assert project.recorded() == ["test_adder"], "a file that is gone leaves the table"
