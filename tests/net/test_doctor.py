"""`olaf doctor`: what it says of a path is what was set, and each finding says what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path as File
from typing import Any

import pytest
from commands import olaf as run_olaf
from namespaces import Namespaces, namespaces
from ports import free_port
from relay import Path, Relay

from conftest import Network, zeros
from olaf import _olaf
from olaf.doctor import path
from olaf.doctor.finding import Section
from olaf.doctor.path import Question

ROLE = File(__file__).with_name("role.py")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


class Said:
    """What one call of `olaf doctor --json` said."""

    def __init__(self, call: subprocess.CompletedProcess[str]) -> None:
        self.code = call.returncode
        self.text = call.stderr
        told = json.loads(call.stdout) if call.stdout else {"sections": []}
        self.sections: list[dict[str, Any]] = told["sections"]

    def of(self, name: str) -> dict[str, Any]:
        return next(one for one in self.sections if one["name"].startswith(name))

    def finding(self, name: str, about: str) -> dict[str, Any]:
        findings: list[dict[str, Any]] = self.of(name)["findings"]
        return next(one for one in findings if one["about"] == about)


def doctor(*argv: str) -> Said:
    return Said(run_olaf("doctor", "--json", *argv))


def test_a_good_path_is_good_and_nobody_joins(network: Network) -> None:
    server = network.server()
    switch = network.switch(server.address)
    said = doctor("--switch", switch.address, "--server", server.address)
    assert said.code == 0, said.sections
    for name in ("switch", "server"):
        measured = said.of(name)["measured"]
        assert measured["asked"] == measured["answered"] == 100
        assert 0 < measured["round_trip_min_ns"] <= measured["round_trip_median_ns"] < 1e9
        assert measured["wire_version"] == measured["own_wire_version"]
        assert measured["through_switch"] == (name == "switch")
        assert measured["clock_offset_ns"] == 0
        assert f"process {os.getpid()}" in said.finding(name, "answers")["found"]
    assert json.loads(server.stats())["jobs"] == []


def test_a_running_job_is_found_and_a_model_of_another_size_is_named(network: Network) -> None:
    server = network.server()
    switch = network.switch(server.address)
    network.client(switch.address).join(zeros(), 10.0)
    size = len(zeros()[0])
    said = doctor("--switch", switch.address)
    assert said.code == 0
    assert said.of("switch")["measured"]["job_parameters"] == size
    said = doctor(
        "--switch", switch.address, "--model-bytes", "400", "--workers", "2", "--link", "1gbit"
    )
    finding = said.finding("switch", "job")
    assert (said.code, finding["level"]) == (1, "fix")
    assert f"{size:,} parameters; yours has 100" in finding["found"]


def test_delay_loss_and_size_are_those_of_the_path(network: Network, stack: ExitStack) -> None:
    server = network.server()
    switch = network.switch(server.address)
    relay = Relay(switch.address, Path(delay_s=0.05, loss=0.05, longest=1472))
    stack.callback(relay.stop)
    said = doctor("--switch", relay.address, "--questions", "400")
    measured = said.of("switch")["measured"]
    _agrees(measured, delay_s=0.05, loss=0.05)
    assert measured["mtu_bytes"] == 1500
    assert said.finding("switch", "loss")["level"] == "fix"
    assert said.finding("switch", "path MTU")["level"] == "note"
    assert said.code == 1


def _agrees(measured: dict[str, Any], *, delay_s: float, loss: float) -> None:
    """The round trip within 20 ms above what was set; the loss within four standard deviations."""
    assert 2 * delay_s <= measured["round_trip_median_ns"] / 1e9 < 2 * delay_s + 0.02
    expected, asked = 1 - (1 - loss) ** 2, measured["asked"]
    deviation = (expected * (1 - expected) / asked) ** 0.5
    assert abs(measured["loss"] - expected) < 4 * deviation + 1e-9, measured["loss"]


def _role(stack: ExitStack, where: Namespaces, kind: str, **config: Any) -> str:
    command = [sys.executable, str(ROLE), kind, json.dumps(config)]
    process = where.run(len(where.names) - 1, *command)
    stack.callback(process.wait)
    stack.callback(process.kill)
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize(
    ("mtus", "mtu", "delay_ms", "loss"),
    [([1500], 1500, 50, 0.0), ([1500, 1400], 1400, 5, 0.05), ([9000], 9000, 0, 0.0)],
)
def test_between_machines_it_reports_what_tc_was_told(
    stack: ExitStack, mtus: list[int], mtu: int, delay_ms: int, loss: float
) -> None:
    where = namespaces(stack, mtus)
    if delay_ms or loss:
        how = ("delay", f"{delay_ms}ms", "loss", f"{loss:.0%}", "limit", "100000")
        where.shape(0, "l", *how)
        where.shape(len(where.names) - 1, "r", *how)
    at = f"{where.server_host}:0"
    server = _role(stack, where, "server", listen=at, insecure=True)
    switch = _role(stack, where, "switch", listen=at, upstream=server, insecure=True)
    argv = [sys.executable, "-m", "olaf", "doctor", "--json", "--switch", switch]
    with where.run(0, *argv, "--questions", "300") as process:
        said, _ = process.communicate(timeout=60)
    told = json.loads(said)
    measured = next(one for one in told["sections"] if one["name"].startswith("switch"))["measured"]
    assert measured["mtu_bytes"] == mtu
    _agrees(measured, delay_s=delay_ms / 1000, loss=loss)
    assert told["good"] == (loss == 0), told


def test_nobody_there_is_named_and_what_to_do() -> None:
    said = doctor("--switch", f"127.0.0.1:{free_port()}")
    finding = said.finding("switch", "answers")
    assert said.code == 1
    assert "nothing listens on that port" in finding["found"]
    assert "olaf switch" in finding["to_do"]


def test_a_switch_whose_server_is_silent_is_told_from_one_that_is_not_there(
    network: Network,
) -> None:
    switch = network.switch(f"127.0.0.1:{free_port()}", silent_after_ms=400)
    finding = doctor("--switch", switch.address).finding("switch", "answers")
    assert "the switch is there" in finding["found"]
    assert "--upstream" in finding["to_do"]


def test_a_server_is_no_switch(network: Network) -> None:
    said = doctor("--switch", network.server().address)
    assert said.code == 1
    assert "no switch" in said.finding("switch", "answers")["to_do"]
    said = doctor("--server", network.switch(network.server().address).address)
    assert said.code == 1
    assert "this is a switch" in said.finding("server", "answers")["to_do"]


def test_the_seal_of_a_key_counts_in_the_packets_of_a_job() -> None:
    """A path that is too narrow by less than a seal."""
    told = {"job_segment_lanes": 333, "job_parameters": 1000, "ipv6": False}
    without, packets = Section("switch"), 8 + 20 + 112 + 4 * 333
    path._size(without, told | {"mtu_bytes": packets, "system_mtu_bytes": packets}, Question())
    assert without.is_good
    behind = Section("switch")
    key = Question(key_file="job.key")
    path._size(behind, told | {"mtu_bytes": packets, "system_mtu_bytes": packets}, key)
    assert f"the job's packets have {packets + 24}" in behind.findings[0].found


def test_keys_that_match_pass_and_others_are_named(network: Network, tmp_path: File) -> None:
    key, other, theirs = (str(tmp_path / name) for name in ("job.key", "other.key", "switch.key"))
    _olaf.new_key(key)
    _olaf.new_key(other)
    _olaf.switch_key(key, theirs)
    server = network.server(key_files=[key])
    switch = network.switch(server.address, key_files=[theirs])
    said = doctor("--switch", switch.address, "--key-file", key)
    assert said.code == 0, said.sections
    assert said.of("switch")["measured"]["answered"] == 100
    said = doctor("--switch", switch.address, "--key-file", other)
    assert said.code == 1
    finding = said.finding("switch", "answers")
    assert "it has no such key" in finding["found"], "something did come back"
    assert finding["to_do"] == "give both the key of the same job"
    said = doctor("--switch", switch.address)
    assert "started with a key" in said.finding("switch", "answers")["to_do"]
    File(key).chmod(0o644)
    said = doctor("--switch", switch.address, "--key-file", key)
    assert said.code == 1
    finding = said.finding("this machine", "key")
    assert "chmod 600" in finding["found"]
    assert "keys new" not in finding["to_do"], "a new key is not the job's"
    said = doctor("--key-file", theirs)
    assert said.finding("this machine", "key")["level"] == "note"
    assert "cannot check who made its models" in said.finding("this machine", "key")["found"]


def test_a_port_of_an_engine_that_sums_is_thought_of(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path, "PATIENCE_MS", 300)
    switch = network.switch("127.0.0.1:9", engines=["reduce"])
    (finding,) = path.path("switch", switch.address, Question(questions=2)).findings
    assert (finding.about, finding.level) == ("answers", "fix")
    assert "name the port of the engine queue" in str(finding.to_do)


def test_one_worker_that_computes_for_no_time_gains_nothing() -> None:
    call = run_olaf("doctor", "--model-bytes", "400kB", "--workers", "1", "--link", "1gbit")
    assert call.returncode == 0, call.stderr
    assert "round trip 0 ns (not measured: name --switch)" in call.stdout
    assert "1 worker, a model of 400.0 kB" in call.stdout
    assert "gains nothing: one worker has nobody to sum with" in call.stdout


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["--workers", "4"], "--model-bytes"),
        (["--model-bytes", "many", "--workers", "4"], "many"),
        (["--switch", "nowhere"], "nowhere"),
        (["--questions", "0"], "--questions"),
        (["--model-bytes", "9kB", "--workers", "4", "--link", "5"], "a rate needs its unit"),
    ],
)
def test_what_cannot_be_asked_is_a_matter_of_usage(argv: list[str], word: str) -> None:
    call = run_olaf("doctor", *argv)
    assert call.returncode == 2
    assert word in call.stderr
