"""``olaf simulate mina``: what it prints, what it draws, what it refuses."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from olaf.cli.main import run as olaf
from olaf.schedule.simulation import Cluster, trees_policy

SMALL = ["--topology", "leaf-spine:2,4,1"]


def step(duration: float, *allreduces: tuple[float, int]) -> str:
    listed = [{"start": start, "size": size} for start, size in allreduces]
    return json.dumps({"duration": duration, "allreduces": listed})


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """`talks` computes 1 ms, then sums 12.5 MB: 1.05 ms, or 0.55 ms in the network."""
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "talks.json").write_text(step(0.001, (0.001, 12_500_000)))
    (folder / "thinks.json").write_text(step(0.01, (0.001, 12_500)))
    return folder


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    file = tmp_path / "jobs.txt"
    file.write_text("# pattern hosts steps\ntalks 2 100\n\nthinks 2 10  # no gain\ntalks 1 5\n")
    return file


def told(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    assert olaf(["simulate", "mina", *map(str, arguments), "--json"]) == 0
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    return record


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert olaf(["simulate", "mina", *map(str, arguments)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err


def test_scores_are_between_the_hosts_and_the_switches(
    traces: Path, jobs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[str | Path] = ["--jobs", jobs, "--traces", traces, *SMALL]
    none = told(capsys, *given, "--sharing", "none")["summary"]
    assert (none["score"], none["operations_in_network"]) == (0.0, 0)
    assert none["makespan_s"] == pytest.approx(100 * 0.00205)
    every = told(capsys, *given)["summary"]
    assert (every["score"], every["score_by_hosts"], every["worst_decile"]) == (1.0, 1.0, 1.0)
    assert every["makespan_s"] == pytest.approx(100 * 0.00155)
    assert every["trees"] == {"own": 2, "shared": 0, "without": 0, "one_host": 1}
    scores = {size["hosts"]: size["score"] for size in every["sizes"]}
    assert scores == {1: None, 2: 1.0}


def test_the_same_command_says_the_same(
    traces: Path, jobs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[str | Path] = [
        "--jobs",
        jobs,
        "--traces",
        traces,
        "--placement",
        "random",
        "--trees",
        "random",
    ]
    first = told(capsys, *given, "--seed", "3")
    again = told(capsys, *given, "--seed", "3")
    assert first["summary"] == again["summary"]
    assert first["setting"]["placement"] == {"policy": "random", "seed": 3}


@pytest.mark.parametrize("placement", ["first-fit", "random", "fragments"])
@pytest.mark.parametrize("trees", ["none", "first", "first-gain", "random", "mina", "gain"])
def test_every_policy_runs_every_job_to_its_end(
    placement: str, trees: str, traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = tmp_path / "many.txt"
    many.write_text("".join(f"talks {1 + n % 5} {1 + n % 7}\n" for n in range(40)))
    for sharing in ("none", "greedy", "mina", "plan"):
        policies = ["--placement", placement, "--trees", trees, "--sharing", sharing]
        summary = told(
            capsys, "--jobs", many, "--traces", traces, *SMALL, "--capacity", "switch:1", *policies
        )["summary"]
        assert summary["jobs"] == 40
        assert summary["operations"] == sum(1 + n % 7 for n in range(40))
        assert 0 <= summary["score"] <= 1


@pytest.mark.parametrize(
    ("join", "trees"),
    [
        ("none", {"own": 2, "shared": 0, "without": 1, "one_host": 0}),
        ("one", {"own": 2, "shared": 0, "without": 1, "one_host": 0}),
        ("several", {"own": 0, "shared": 3, "without": 0, "one_host": 0}),
    ],
)
def test_a_job_takes_turns_with_one_group_or_several_or_goes_without(
    join: str,
    trees: dict[str, int],
    traces: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # A job under each of two switches, each with room for one job; the one between needs both.
    file = tmp_path / "jobs.txt"
    file.write_text("talks 3 100\ntalks 2 10\ntalks 3 100\n")
    placed = [*SMALL, "--capacity", "switch:1", "--placement", "first-fit"]
    given = ["--jobs", str(file), "--traces", str(traces), *placed, "--join", join]
    record = told(capsys, *given, "--sharing", "greedy")
    assert record["setting"]["trees"]["join"] == join
    assert record["summary"]["trees"] == trees


def test_the_help_names_the_default_of_the_core(capsys: pytest.CaptureFixture[str]) -> None:
    assert olaf(["simulate", "mina", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"Default: {trees_policy('gain')['join']} for gain and exact" in shown
    assert trees_policy("gain")["join"] == trees_policy("exact")["join"]
    assert f"Default: {Cluster().sharing}." in shown


def test_a_pair_of_policies_that_starve_each_other_is_warned_of(
    traces: Path, jobs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["simulate", "mina", "--jobs", str(jobs), "--traces", str(traces), *SMALL]
    assert olaf([*given, "--sharing", "mina", "--join", "several"]) == 0
    assert "warning: --sharing mina" in capsys.readouterr().err
    assert olaf([*given, "--sharing", "mina", "--join", "one"]) == 0
    assert "warning" not in capsys.readouterr().err


def test_what_is_at_stake_is_told_whatever_the_policy(
    traces: Path, jobs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 100 steps of 2.05 ms that could take 1.55 ms; 10 of 10 ms and 5 of 1.05 ms that gain nothing.
    stake = 100 * 0.5 / (100 * 2.05 + 10 * 10 + 5 * 1.05)
    for sharing in ("none", "plan"):
        given = ["--jobs", jobs, "--traces", traces, *SMALL, "--sharing", sharing]
        assert told(capsys, *given)["summary"]["headroom"] == pytest.approx(stake)


def test_people_are_told_the_score_and_sizes(
    traces: Path, jobs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert olaf(["simulate", "mina", "--jobs", str(jobs), "--traces", str(traces), *SMALL]) == 0
    shown = capsys.readouterr().out
    for words in ("score", "1.0000", "no gain", "2 with a tree of their own", "migrations"):
        assert words in shown


def test_patterns_that_come_with_olaf_need_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "jobs.txt"
    file.write_text("resnet18 4 2\nmlp 2 1\n")
    assert told(capsys, "--jobs", file)["summary"]["jobs"] == 2


@pytest.mark.parametrize("ending", ["html", "json"])
def test_a_timeline_is_drawn(
    ending: str, traces: Path, jobs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = tmp_path / f"cluster.{ending}"
    window = ["--timeline-window", "0s..5ms"]
    told(capsys, "--jobs", jobs, "--traces", traces, *SMALL, "--timeline", drawn, *window)
    text = drawn.read_text()
    assert "talks" in text
    if ending == "json":
        assert json.loads(text)["traceEvents"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("talks 2 1\ntalks 9 1\n", ["jobs.txt:2: 9 hosts asked for; the cluster has 8"]),
        ("talks 2 1\n# fine\nmumbles 2 1\n", ["jobs.txt", "no pattern `mumbles`", "talks, thinks"]),
        ("talks 2\n", ["jobs.txt:1: 2 words: a job is `pattern hosts steps`"]),
        ("talks 0 1\ntalks two 1\n", ["jobs.txt:1: hosts '0'", "jobs.txt:2: hosts 'two'"]),
        ("talks 2 -1\n", ["jobs.txt:1: steps '-1': must be a whole number from 1"]),
        ("\n# nobody\n", ["jobs.txt: no jobs"]),
        ("talks 2 9999999999999999999\n", ["jobs.txt:1: ", "146 years"]),
    ],
)
def test_a_wrong_list_is_refused_with_its_line(
    lines: str, words: list[str], traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "jobs.txt"
    file.write_text(lines)
    said = refused(capsys, "--jobs", file, "--traces", traces, *SMALL)
    assert all(word in said for word in words), said


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--topology", "torus:4"], "torus:4"),
        (["--topology", "fat-tree:3"], "even"),
        (["--capacity", "port:0"], "port:0"),
        (["--speedup", "0.5"], "--speedup"),
        (["--latency", "-5us"], "--latency"),
        (["--migration-time", "fast"], "--migration-time"),
        (["--bandwidth", "lots"], "--bandwidth"),
        (["--compute-speed", "nan"], "--compute-speed"),
        (["--alpha", "9"], "alpha"),
        (["--timeline", "out.gif"], "--timeline"),
        (["--timeline", "out.html", "--timeline-window", "5s..4s"], "--timeline-window"),
        (["--timeline-window", "1s..2s"], "--timeline"),
        (["--traces", "nowhere"], "nowhere"),
        (["--join", "all"], "--join"),
        (["--trees", "first", "--join", "one"], "join: trees `first` has no such parameter"),
        (["--trees", "mina", "--join", "several"], "one sharing group at most"),
    ],
)
def test_a_wrong_value_is_refused_by_name(
    arguments: list[str], word: str, traces: Path, jobs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert word in refused(capsys, "--jobs", jobs, "--traces", traces, *arguments)


def test_a_file_that_is_not_there_is_named(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "--jobs", tmp_path / "none.txt", "--traces", traces)
    assert "none.txt: No such file" in said


def test_a_cycle_in_a_topology_is_refused(
    traces: Path, jobs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ring.toml"
    file.write_text(
        'hosts = [{ name = "a", up = ["x"] }]\n'
        'switches = [{ name = "x", up = ["y"] }, { name = "y", up = ["x"] }]\n'
    )
    said = refused(capsys, "--jobs", jobs, "--traces", traces, "--topology", file)
    assert "cycle" in said


def test_ctrl_c_ends_a_long_run(traces: Path, tmp_path: Path) -> None:
    many = tmp_path / "many.txt"
    many.write_text("talks 2 1000000\n" * 64)
    command = [sys.executable, "-m", "olaf", "simulate", "mina", "--jobs", str(many)]
    command += ["--traces", str(traces), "--topology", "leaf-spine:1,128,1"]
    command += ["--capacity", "switch:1", "--trees", "mina", "--sharing", "mina"]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        assert running.stderr is not None
        progress = running.stderr.readline()  # said once it has run for two seconds
        assert "of 64 jobs ended" in progress
        begin = time.monotonic()
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=30) == 130
        assert time.monotonic() - begin < 30
    finally:
        running.kill()
        running.communicate()
