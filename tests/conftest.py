"""Tests that need an extra: skipped without it, loudly; some commands require them to run."""

import importlib.util
import os
import signal
import tempfile
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as a worker's process has it; read by torch
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell starts what runs in its background with SIGINT ignored, and so would every process that a
# test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
INTEGRATIONS = TESTS / "integrations"
FOLDERS = ("browser", "wireshark")
"""Markers of tests that lie in a folder of that name, where the Makefile looks for them."""
MODULES = {"torch": ("torch", "torchrl"), "ray": ("ray",)}
"""What a test with the marker of that name needs."""
OF_INTEGRATIONS = {
    "torch": ("torch", "stable_baselines3", "lightning"),
    "ray": ("ray", "tree", "torch"),
}


@pytest.fixture(scope="session", autouse=True)
def temporary_files(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What tests and their processes leave among the temporary files, pytest clears away."""
    # Ray's sockets lie among them too, and the path of a socket is short.
    os.environ.setdefault("RAY_TMPDIR", tempfile.gettempdir())
    folder = tmp_path_factory.getbasetemp() / "t"
    folder.mkdir(exist_ok=True)
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None  # so that this process reads the variable again
    # Runs of tests carry no mark of the user who tests: `olaf.runs.trust`.
    os.environ["XDG_STATE_HOME"] = str(folder / "state")


NOT_INSTALLED = "not installed"
"""In the reason of a test that is skipped because a package is missing."""


def required(marker: str) -> str:
    """`make test-torch` and `make test-ray` set this variable: then nothing may be missing."""
    return f"OLAF_REQUIRE_{marker.upper()}"


LEFT_OUT = "left out: "
"""How the reason of a skipped test begins if the last lines of a run have to tell it."""


def missing(item: pytest.Item, marker: str) -> list[str]:
    modules = (OF_INTEGRATIONS if INTEGRATIONS in item.path.parents else MODULES)[marker]
    return [name for name in modules if importlib.util.find_spec(name) is None]


@pytest.hookimpl(tryfirst=True)  # before `-m` leaves tests out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for marker in FOLDERS:
            if item.get_closest_marker(marker) and TESTS / marker not in item.path.parents:
                raise pytest.UsageError(f"{item.nodeid}: make looks for {marker} in tests/{marker}")
        for marker in MODULES:
            if item.get_closest_marker(marker) and (names := missing(item, marker)):
                reason = f"{' and '.join(names)} {NOT_INSTALLED}"
                if os.environ.get(required(marker)):
                    raise pytest.UsageError(f"{required(marker)} is set, but {reason}")
                item.add_marker(pytest.mark.skip(reason=reason))
    if hasattr(config, "workerinput"):
        # Side by side, long tests come first: otherwise one process has them left at the end.
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Never keeps quiet about what was skipped."""
    if hasattr(config, "workerinput"):
        return  # the process that started this one says it
    skipped = terminalreporter.stats.get("skipped", [])
    for marker in (*MODULES, "browser"):
        # A test may also be skipped because there is no GPU.
        without = [report for report in skipped if NOT_INSTALLED in str(report.longrepr)]
        if count := sum(marker in report.keywords for report in without):
            terminalreporter.write_line(
                f"{marker.upper()} IS NOT INSTALLED: {count} of its tests did NOT run. "
                f"`make test-{marker}` installs it and runs them"
            )
    reasons = {str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped}
    for reason in sorted(reason for reason in reasons if reason.startswith(LEFT_OUT)):
        terminalreporter.write_line(reason)
        if file := os.environ.get("OLAF_LEFT_OUT"):  # the last lines of `make check`
            with open(file, "a", encoding="utf-8") as lines:
                print(reason, file=lines)
