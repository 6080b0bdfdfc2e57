"""`olaf-switch` and `olaf-server`, the roles without Python, serve workers that have it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import olaf
from olaf.jobs.reading import write_toml
from olaf.jobs.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0

# The first one builds the programs, which one process of tests should do.
pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("binaries")]


@pytest.fixture(scope="module")
def programs() -> Path:
    """The folder of the programs, built as `cargo test` builds the crates.

    The Makefile says which crates with which features: those that it has built already.
    """
    chosen = os.environ.get("OLAF_CARGO_TESTS", "-p olaf-bin").split()
    build = ["cargo", "test", "--quiet", "--no-run", "--message-format=json", *chosen]
    done = subprocess.run(build, cwd=ROOT, check=True, capture_output=True, text=True)
    made = [json.loads(line) for line in done.stdout.splitlines()]
    programs = [
        Path(one["executable"])
        for one in made
        if one.get("executable") and one["target"]["kind"] == ["bin"] and not one["profile"]["test"]
    ]
    assert {path.name for path in programs} == {"olaf-switch", "olaf-server"}
    return programs[0].parent


class Running:
    """A program with `--json`, and its lines."""

    def __init__(self, program: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [program, "--json", *options], stdout=subprocess.PIPE, text=True
        )
        self.address = str(self.until("listening")["address"])

    def until(self, event: str) -> dict[str, Any]:
        """The next line of that event."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message["event"] == event:
                return message
        raise AssertionError(f"it ended before it said {event}")

    def stop(self, number: signal.Signals) -> dict[str, Any]:
        """What its last line says, after that signal."""
        self.process.send_signal(number)
        last = self.until("stopped")
        assert self.process.wait(PATIENCE_S) == 0
        return last


@pytest.fixture
def started() -> Iterator[list[Running]]:
    running: list[Running] = []
    yield running
    for one in running:
        one.process.kill()
        one.process.wait()


def test_they_serve_a_worker_of_python(
    programs: Path, started: list[Running], tmp_path: Path
) -> None:
    server = Running(programs / "olaf-server", "--listen", "127.0.0.1:0", "--stats-every", "50ms")
    started.append(server)
    file = tmp_path / "switch.toml"
    file.write_text(f'[switch]\nupstream = "{server.address}"\nsilent_after = "1s"\n')
    options = ("--config", str(file), "--listen", "127.0.0.1:0", "--uplink", "10mbit")
    switch = Running(programs / "olaf-switch", *options)
    started.append(switch)
    weights = np.zeros(5000, dtype=np.float32)
    with olaf.connect(f"udp://{switch.address}", job=1, cluster=0) as connection:
        connection.join(weights)
        before = weights.copy()
        connection.push_delta(before, before + 1, reward=1.0)
        deadline = time.monotonic() + PATIENCE_S
        while not connection.pull(into=weights):
            assert time.monotonic() < deadline, "no model came"
            time.sleep(0.01)
    np.testing.assert_allclose(weights, 1.0, rtol=1e-3)
    assert server.until("model_started")["parameters"] == 5000
    assert server.until("stats")["stats"]["role"] == "server"
    last = switch.stop(signal.SIGTERM)
    assert last["why"] == "SIGTERM"
    assert last["stats"]["received"] >= 1
    last = server.stop(signal.SIGINT)
    assert last["why"] == "SIGINT"
    assert last["stats"]["jobs"][0]["received"] >= 1


def test_a_switch_without_python_sums_arrays(programs: Path, started: list[Running]) -> None:
    upper = Running(
        programs / "olaf-switch", "--engines", "reduce", "--listen", "reduce=127.0.0.1:0"
    )
    started.append(upper)
    above = ("--upstream", f"reduce={upper.address}", "--set", "reduce.jobs=2")
    lower = Running(
        programs / "olaf-switch", "--engines", "reduce", "--listen", "127.0.0.1:0", *above
    )
    started.append(lower)

    def work(address: str, rank: int) -> float:
        with olaf.connect_sum(address, workers=2, rank=rank) as connection:
            return float(connection.all_reduce(np.ones(1000, np.float32))[0])

    with ThreadPoolExecutor(2) as threads:
        assert [*threads.map(work, (upper.address, lower.address), (0, 1))] == [2, 2]
    last = lower.stop(signal.SIGTERM)
    assert last["stats"]["reduce"]["sums_up"] > 0


def test_their_defaults_are_those_of_python(programs: Path) -> None:
    ours = tomllib.loads(write_toml(Settings(), comments=False))
    for role in ("switch", "server"):
        printed = subprocess.run(
            [programs / f"olaf-{role}", "--print-config"],
            check=True,
            capture_output=True,
            text=True,
        )
        theirs = tomllib.loads(printed.stdout)[role]
        expected = dict(ours[role])
        if role == "switch":
            # Only `olaf switch` can ask a verifier.
            assert expected.pop("admission") == "off"
            assert expected.pop("admission_mismatch") == "say"
            assert theirs.pop("admission_timeout") == "off"
            del expected["admission_timeout"]
        else:
            # `olaf config` leaves it to follow from what the workers push.
            expected["staleness_power"] = Settings().server.staleness_power
        assert theirs == expected


def test_the_sample_configurations_are_theirs_too(programs: Path) -> None:
    for name, role in (("switch", "switch"), ("leaf", "switch"), ("server", "server")):
        file = ROOT / "deploy" / f"{name}.toml"
        line = [str(programs / f"olaf-{role}"), "--config", str(file), "--print-config"]
        printed = subprocess.run(line, check=True, capture_output=True, text=True)
        said = tomllib.loads(file.read_text())[role]
        effective = tomllib.loads(printed.stdout)[role]
        assert {key: effective[key] for key in said} == said


def test_a_reader_that_leaves_stops_nothing(programs: Path, started: list[Running]) -> None:
    switch = Running(programs / "olaf-switch", "--listen", "127.0.0.1:0", "--every", "20ms")
    started.append(switch)
    assert switch.process.stdout is not None
    switch.process.stdout.close()
    # Its last line, if no other, meets a closed pipe.
    switch.process.send_signal(signal.SIGTERM)
    assert switch.process.wait(PATIENCE_S) == 0
