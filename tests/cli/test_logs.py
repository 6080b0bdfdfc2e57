"""The log of a role: sentences or JSON lines, from a level on, and no flood of one kind."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import olaf

from olaf import _olaf
from olaf.cli.display import Lines
from olaf.jobs import words
from olaf.jobs.progress import Happening, Progress
from olaf.jobs.settings import Settings
from olaf.processes.lines import Reporter


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


def documented_events() -> set[str]:
    """The events of the table in docs/reference/statistics.md."""
    page = Path(__file__).parents[2] / "docs/reference/statistics.md"
    table = page.read_text(encoding="utf-8").partition("\n## Events\n")[2].partition("\n## ")[0]
    firsts = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    return {name for first in firsts for name in re.findall(r"`(\w+)`", first)}


def test_every_event_is_a_sentence_in_the_log() -> None:
    known = documented_events()
    assert {"worker_joined", "model_forged", "sum_straggler"} <= known
    told = {event: words.sentence({"event": event, "seconds": 1.0, "x": 2}) for event in known}
    bare = {event for event, text in told.items() if "x=2" in text}
    assert bare == set()


def test_a_lying_switch_is_told_of_at_every_level() -> None:
    levels = {
        "model_forged": "error",
        "signature_forged": "error",
        "model_unsigned": "warning",
        "models_unchecked": "warning",
    }
    assert {event: _olaf.LogFilter.level(event) for event in levels} == levels


def test_a_workers_progress_comes_at_the_interval_that_was_asked_for() -> None:
    for every_s, lines in ((0.0, 4), (1e9, 1)):
        out = io.StringIO()
        told = Reporter(
            as_json=True,
            out=out,
            human=lambda m: m["event"],
            filtered=_olaf.LogFilter("info"),
            every_s=every_s,
        )
        for event in ("update", "turn", "turn", "update"):
            told.say(event)
        assert len(out.getvalue().splitlines()) == lines


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


def run_lines(*, as_json: bool, level: str) -> list[str]:
    """What a run's display prints of good news, trouble and a phase."""
    out = io.StringIO()
    lines = Lines(out, as_json=as_json, level=level)
    lines.happened(Happening(1.5, "switch", "switch: worker 3 joined"))
    lines.happened(Happening(2.5, "worker 1", "worker 1: was killed", trouble=True))
    lines.stands(Progress(Settings()), "training")
    return out.getvalue().splitlines()


def test_a_run_prints_json_lines_from_a_level_on() -> None:
    told = [json.loads(line) for line in run_lines(as_json=True, level="info")]
    assert [line["event"] for line in told] == ["happening", "happening", "phase"]
    assert [line["level"] for line in told] == ["info", "warning", "info"]
    assert (told[1]["at_s"], told[1]["text"]) == (2.5, "worker 1: was killed")
    assert all(line["time_unix_s"] > 1.7e9 for line in told)
    (only,) = run_lines(as_json=False, level="warning")
    assert only == "    2.5 s  worker 1: was killed"
    assert run_lines(as_json=True, level="error") == []


def test_train_prints_its_log_as_json_lines(tmp_path: Path) -> None:
    done = olaf(
        "train",
        *("--local", "--env=CartPole-v1", "--set=learner.environments=2"),
        *("--set=learner.steps_per_update=64", "--updates=3", "--until-reward=off"),
        *(f"--out={tmp_path / 'run'}", "--log-format=json", "--json"),
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert {"phase"} <= {line["event"] for line in lines}


def serve_lines(folder: Path, *options: str) -> list[str]:
    """What the allocation controller prints to stderr until it listens."""
    argv = [sys.executable, "-m", "olaf", "schedule", "serve", f"--store={folder / 's.db'}"]
    argv += ["--topology=fat-tree:4", "--listen=127.0.0.1:0", *options]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline()]
        process.send_signal(signal.SIGTERM)
        lines += process.stderr.readlines()
    assert process.returncode == 0, lines
    return lines


def test_the_allocation_controller_writes_json_lines(tmp_path: Path) -> None:
    first = json.loads(serve_lines(tmp_path, "--log-format=json")[0])
    assert (first["event"], first["level"]) == ("listening", "info")
    assert first["time_unix_s"] > 1.7e9


def test_the_version_names_those_of_the_messages() -> None:
    told = olaf("--version").stdout
    assert told.startswith(f"olaf {_olaf.__version__} (wire versions: ")
    for protocol, version in _olaf.wire_versions():
        assert f"{protocol} {version}" in told
