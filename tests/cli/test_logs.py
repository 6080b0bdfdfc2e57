"""The log of a role: sentences or JSON lines, from a level on, and no flood of one kind."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from typing import Any

import pytest
from commands import olaf

from olaf import _olaf
from olaf.lines import Reporter


def reporter(level: str, *, as_json: bool) -> tuple[Reporter, io.StringIO]:
    out = io.StringIO()
    told = Reporter(
        as_json=as_json, out=out, human=lambda m: m["event"], filtered=_olaf.LogFilter(level)
    )
    return told, out


def test_a_flood_of_one_kind_is_cut_and_counted() -> None:
    told, out = reporter("info", as_json=True)
    for worker in range(500):
        told.say("worker_refused", worker=worker)
    told.say("server_silent", address="a:1")
    told.say("stopped", why="SIGTERM")
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    events = [line["event"] for line in lines]
    assert 20 <= events.count("worker_refused") < 30
    assert "server_silent" in events, "another kind is printed all the same"
    left_out = sum(line["lines"] for line in lines if line["event"] == "suppressed")
    assert events.count("worker_refused") + left_out == 500
    assert events[-1] == "stopped"


@pytest.mark.parametrize(
    ("level", "printed"),
    [
        ("info", ["listening", "worker_joined", "worker_silent", "checkpoint_failed"]),
        ("warning", ["listening", "worker_silent", "checkpoint_failed"]),
        ("error", ["listening", "checkpoint_failed"]),
    ],
)
def test_a_level_hides_what_matters_less(level: str, printed: list[str]) -> None:
    told, out = reporter(level, as_json=False)
    for event in ("listening", "worker_joined", "worker_silent", "checkpoint_failed"):
        told.say(event)
    assert out.getvalue().split() == printed


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="debug, info, warning, error"):
        _olaf.LogFilter("loud")


def lines_of(*options: str) -> list[dict[str, Any]]:
    """What a switch prints as JSON lines until it is stopped at its first line of statistics."""
    argv = [sys.executable, "-m", "olaf", "switch", "--listen", "127.0.0.1:0", "--every", "100ms"]
    lines: list[dict[str, Any]] = []
    with subprocess.Popen([*argv, *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(json.loads(line))
            wanted = "listening" if "error" in options else "stats"
            if lines[-1]["event"] == wanted:
                process.send_signal(signal.SIGTERM)
    assert process.returncode == 0
    return lines


def test_a_role_writes_json_lines_with_their_time_and_level() -> None:
    first, *others = lines_of("--log-format", "json")
    assert first["event"] == "listening"
    assert first["level"] == "info"
    assert first["time_unix_s"] > 1.7e9
    assert {"stats", "stopped"} <= {line["event"] for line in others}


def test_a_role_prints_errors_alone() -> None:
    events = [line["event"] for line in lines_of("--log-format", "json", "--log-level", "error")]
    assert events == ["listening", "stopped"]


def test_the_version_names_those_of_the_messages() -> None:
    told = olaf("--version").stdout
    assert told.startswith(f"olaf {_olaf.__version__} (wire versions: ")
    for protocol, version in _olaf.wire_versions():
        assert f"{protocol} {version}" in told
