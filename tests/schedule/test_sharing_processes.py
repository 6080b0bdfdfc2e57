"""The sharing protocol as processes: real sockets, a host and controllers that are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ports import free_port
from waiting import until

from olaf._olaf import new_key
from olaf.cli.main import run
from olaf.errors.outcome import Exit
from olaf.errors.usage import ConfigurationError
from olaf.schedule.shared import account
from olaf.schedule.sharing import next_epoch, read_cluster

DEADLINE_S = 60


class Lab:
    """A cluster file, and the processes of it."""

    def __init__(self, folder: Path, hosts: list[int], steps: int, **settings: int | str) -> None:
        self.folder, self.jobs = folder, hosts
        self.file = folder / "cluster.toml"
        self.processes: dict[str, subprocess.Popen[str]] = {}
        free = iter([free_port() for _ in range(1 + sum(hosts))])
        # A step of 30 ms; its last three all-reduces take 4 ms each, or 2.
        step = [{"start": 0.01 + 0.004 * at, "size": 4_000_000} for at in range(5)]
        (folder / "step.json").write_text(json.dumps({"duration": 0.03, "allreduces": step}))
        text = f'controller = "127.0.0.1:{next(free)}"\n'
        text += "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
        text += "[capacity]\n0 = 1\n[network]\nbytes_per_second = 1000000000\nlatency_ns = 10000\n"
        for job, count in enumerate(hosts, start=1):
            addresses = [f"127.0.0.1:{next(free)}" for _ in range(count)]
            text += f"[[jobs]]\njob = {job}\nhosts = {json.dumps(addresses)}\nresources = [0]\n"
            text += f'pattern = "step.json"\nsteps = {steps}\n'
        self.file.write_text(text)

    def start(self, name: str, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "olaf", "schedule", *words, "--cluster", str(self.file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.processes[name] = process
        return process

    def plays(self, job: int, compute_s: float, *operations: tuple[float, int]) -> None:
        """Another step for this job: operations by start in seconds and bytes."""
        step = [{"start": start, "size": size} for start, size in operations]
        name = f"step-{job}.json"
        (self.folder / name).write_text(json.dumps({"duration": compute_s, "allreduces": step}))
        before, jobs = self.file.read_text().split(f"[[jobs]]\njob = {job}\n")
        self.file.write_text(
            f"{before}[[jobs]]\njob = {job}\n" + jobs.replace("step.json", name, 1)
        )

    def controller(self, name: str, *more: str) -> None:
        # The fence: a switch's door in this test is a file that names the refused hosts.
        fence = f"{sys.executable} -c 'import sys; open(sys.argv[1], \"a\").write(sys.argv[2])'"
        log = self.folder / f"{name}.jsonl"
        self.start(
            name, "share", "--fence", f"{fence} {self.folder / 'refused'}", "--log", str(log), *more
        )

    def listening(self, name: str) -> None:
        """Wait until a controller listens: a host of a short job may come and go before."""
        until(lambda: self.lines(f"{name}.jsonl", event="listening"), f"{name} listens")

    def host(self, job: int, rank: int, *more: str) -> None:
        name = f"host-{job}-{rank}"
        log = self.folder / f"{name}.jsonl"
        which = ("--job", str(job), "--rank", str(rank), "--log", str(log))
        self.start(name, "host", *which, *more)

    def seen_at(self, name: str) -> str:
        """Where a process that was started with --metrics serves: its first line says it."""
        stdout = self.processes[name].stdout
        assert stdout is not None
        line = stdout.readline()
        place: str = json.loads(line)["metrics"]
        return place

    def all_hosts(self) -> None:
        for job, count in enumerate(self.jobs, start=1):
            for rank in range(count):
                self.host(job, rank)

    def kill(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait(DEADLINE_S)

    def ended(self, name: str) -> tuple[int, str]:
        said, _ = self.processes[name].communicate(timeout=DEADLINE_S)
        return self.processes[name].returncode, said

    def logs(self) -> list[Path]:
        return sorted(self.folder.glob("*.jsonl"))

    def lines(self, pattern: str, **having: Any) -> int:
        count = 0
        for file in self.folder.glob(pattern):
            for line in file.read_text().splitlines():
                try:
                    read = json.loads(line)
                except json.JSONDecodeError:
                    continue
                count += all(read.get(key) == value for key, value in having.items())
        return count


@pytest.fixture
def labs(tmp_path: Path) -> Iterator[Callable[..., Lab]]:
    made: list[Lab] = []

    def lab(hosts: list[int], steps: int, **settings: int | str) -> Lab:
        made.append(Lab(tmp_path, hosts, steps, **settings))
        return made[-1]

    yield lab
    for one in made:
        for process in one.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait(DEADLINE_S)


@pytest.fixture
def sealed(tmp_path: Path) -> dict[str, str]:
    """Settings of a cluster whose parties have a key."""
    new_key(tmp_path / "job.key")
    return {"key_file": "job.key"}


@pytest.mark.parametrize("has_key", [False, True])
def test_jobs_share_and_leave(
    labs: Callable[..., Lab],
    sealed: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    *,
    has_key: bool,
) -> None:
    # Two seconds: a busy machine begins to share late in a job, and a handshake comes before.
    steps = 60
    lab = labs([2, 2, 1], steps, **(sealed if has_key else {}))
    lab.controller("controller")
    lab.listening("controller")
    lab.all_hosts()
    for job, rank in [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0)]:
        code, said = lab.ended(f"host-{job}-{rank}")
        assert code == 0, said
        assert (json.loads(said)["mixed"], json.loads(said)["dismissed"]) == (0, True)
    code, said = lab.ended("controller")
    assert code == 0, said
    assert run(["schedule", "shared", "--cluster", str(lab.file), *map(str, lab.logs())]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["launches"] == 5 * steps * 5
    assert report["in_network"] > 0
    assert {job for job in (1, 2) if lab.lines("host-*", job=job, in_network=True)} == {1, 2}
    assert not report["wrong"]
    assert report["fenced"] == []


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["plan", "none"])
def test_sharing_gains_what_the_simulator_says_or_half_of_it(
    labs: Callable[..., Lab], capsys: pytest.CaptureFixture[str], policy: str
) -> None:
    lab = labs([2, 2], 5 if policy == "plan" else 2)
    # Steps of 2.4 s, of which the switches save a tenth: other work on the machine delays a step by
    # some tens of milliseconds, and a round too.
    lab.plays(1, 2.0, (1.2, 240_000_000), (1.92, 480_000_000))
    lab.plays(2, 2.0, (0.8, 240_000_000), (1.80, 640_000_000))
    lab.all_hosts()
    lab.controller("controller", "--policy", policy, "--ahead", "60ms")
    for name in ("host-1-0", "host-1-1", "host-2-0", "host-2-1", "controller"):
        code, said = lab.ended(name)
        assert code == 0, said
    words = ["--cluster", str(lab.file), "--policy", policy]
    assert run(["schedule", "shared", *words, *map(str, lab.logs())]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["wrong"] == []
    assert report["late_us"]["controller_p50"] > 0
    assert run(["schedule", "predict", *words]) == 0
    assert json.loads(capsys.readouterr().out)["score"] == report["simulated"]
    if policy == "none":
        assert (report["grants"], report["simulated"]) == (0, 0.0)
        assert report["score"] < 0.1
    else:
        assert report["simulated"] > 0.85
        assert report["score"] > report["simulated"] / 2, report


def test_a_party_without_the_key_takes_no_part(
    labs: Callable[..., Lab], sealed: dict[str, str], tmp_path: Path
) -> None:
    lab = labs([1], 20, **sealed)
    lab.controller("controller")
    new_key(tmp_path / "other.key")
    text = lab.file.read_text().replace("job.key", "other.key")
    lab.file = tmp_path / "other.toml"
    lab.file.write_text(text)
    lab.host(1, 0)
    code, said = lab.ended("host-1-0")
    # Its steps go without the switches.
    assert code == 0, said
    assert lab.lines("host-*", at="launch", in_network=False) == 100
    assert lab.lines("host-*", in_network=True) == 0
    assert lab.lines("controller.jsonl", event="granted") == 0


def test_parties_that_can_be_reached_need_a_key(
    labs: Callable[..., Lab], sealed: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    lab = labs([1], 20)
    lab.file.write_text(lab.file.read_text().replace("127.0.0.1", "0.0.0.0"))
    share = ["schedule", "share", "--cluster", str(lab.file)]
    log = ["--log", str(lab.folder / "host.jsonl")]
    host = ["schedule", "host", "--cluster", str(lab.file), "--job", "1", "--rank", "0", *log]
    for words, role in ((share, "controller"), (host, "host")):
        assert run(words) == Exit.USAGE
        said = capsys.readouterr().err
        assert f"the {role} has no key that is secret" in said
        assert "insecure = true" in said
        assert "--insecure" not in said, "there is no such option"


@pytest.mark.parametrize("has_key", [False, True])
def test_a_killed_host_and_a_killed_controller_harm_nobody_else(
    labs: Callable[..., Lab], sealed: dict[str, str], *, has_key: bool
) -> None:
    # As many steps as it takes: a process starts in seconds where others compute.
    keys = sealed if has_key else {}
    lab = labs([2, 2], 100_000, patience_ms=2000, silent_ms=400, **keys)
    lab.controller("first")
    lab.all_hosts()
    until(lambda: lab.lines("host-*-0.jsonl", in_network=True) > 10, "grants used")
    lab.kill("first")
    used = lab.lines("host-*", at="launch")
    until(lambda: lab.lines("host-*", at="launch") > used + 40, "jobs go on without it")
    lab.controller("second")
    until(lambda: lab.lines("second.jsonl", event="granted") > 5, "grants of the second")
    lab.kill("host-1-1")
    until(lambda: lab.lines("second.jsonl", event="fenced", job=1) == 1, "its job is torn down")
    assert (lab.folder / "refused").read_text() == "1"
    given = lab.lines("second.jsonl", event="granted", job=2)
    until(lambda: lab.lines("second.jsonl", event="granted", job=2) > given, "given on")
    code, said = lab.ended("host-1-0")
    assert code == 3
    assert "host 1" in said
    for rank in (0, 1):
        lab.kill(f"host-2-{rank}")
    code, said = lab.ended("second")  # nobody is left to share
    assert code == 0, said
    report = account(read_cluster(lab.file), lab.logs())
    assert not report.wrong
    assert report.controllers == 2
    assert report.fenced == [1, 2]


def read(place: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(place + path, timeout=DEADLINE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def sample(place: str, name: str) -> float:
    code, text = read(place, "/metrics")
    assert code == 200, text
    values = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith(name + " ")]
    return float(values[0]) if values else 0.0


def becomes_ready(place: str) -> None:
    until(lambda: read(place, "/readyz")[0] == 200, f"{place} is ready")


def grows(place: str, name: str) -> None:
    before = sample(place, name)
    until(lambda: sample(place, name) > before, f"{name} grows")


def test_controller_and_hosts_are_read_over_http(
    labs: Callable[..., Lab], capsys: pytest.CaptureFixture[str]
) -> None:
    lab = labs([2], 100_000, patience_ms=2000, silent_ms=400)
    watched = ("--metrics", "127.0.0.1:0")
    # A tree that cannot be torn down.
    lab.controller("controller", "--fence", "false", *watched)
    at = lab.seen_at("controller")
    assert lab.lines("controller.jsonl", event="listening", metrics=at) == 1
    code, told = read(at, "/readyz")
    assert (code, json.loads(told)["ready"]) == (503, False)
    assert "host 0 was not heard yet, 0 of 2" in told

    lab.host(1, 0, *watched)
    first = lab.seen_at("host-1-0")
    until(lambda: "host 1 was not heard yet, 1 of 2" in read(at, "/readyz")[1], "one host")
    code, told = read(first, "/readyz")
    assert code == 503
    assert "host 1 of the job" in told

    lab.host(1, 1, *watched)
    second = lab.seen_at("host-1-1")
    for place, role in ((at, "controller"), (first, "host"), (second, "host")):
        becomes_ready(place)
        assert read(place, "/healthz")[0] == 200
        assert json.loads(read(place, "/status.json")[1])["role"] == f"sharing {role}"
    grants, launches = 'olaf_sharing_rounds_total{result="granted"}', "olaf_sharing_launches_total"
    for place, name in ((at, grants), (first, launches)):
        grows(place, name)
    until(lambda: sample(second, "olaf_sharing_in_network_launches_total") > 0, "a grant is used")

    assert run(["top", "--once", "--every", "300ms", at, first, second]) == Exit.OK
    shown = capsys.readouterr().out
    for text in (
        "sharing controller",
        "sharing host",
        "2 of 2",
        "units in use",
        "other hosts heard",
    ):
        assert text in shown, shown

    lab.kill("host-1-1")
    until(lambda: read(at, "/readyz")[0] == 503, "its death makes the controller not ready")
    assert "job 1 has failed (host 1 does not answer)" in read(at, "/readyz")[1]
    assert sample(at, 'olaf_sharing_job_failed{job_id="1"}') == 1
    code, said = lab.ended("host-1-0")
    assert code == Exit.UNREACHABLE, said


def test_a_party_serves_other_machines_with_a_token_alone(
    labs: Callable[..., Lab], capsys: pytest.CaptureFixture[str]
) -> None:
    lab = labs([1], 1)
    log = ("--log", str(lab.folder / "host.jsonl"))
    for words in (["share"], ["host", "--job", "1", "--rank", "0", *log]):
        open_to_all = ["--cluster", str(lab.file), "--metrics", "0.0.0.0:0"]
        assert run(["schedule", *words, *open_to_all]) == Exit.USAGE
        assert "give metrics_token_file" in capsys.readouterr().err


def test_broken_rules_are_told(labs: Callable[..., Lab]) -> None:
    lab = labs([2, 1], 1)

    def line(at: str, job: int, host: int, ns: int, **more: Any) -> str:
        costs = {"locked_ns": 0, "decide_ns": 0} if at == "launch" else {}
        read = {"at": at, "job": job, "host": host, "index": 0, "ns": ns, **costs, **more}
        return json.dumps(read) + "\n"

    log = lab.folder / "a.jsonl"
    log.write_text(
        line("launch", 1, 0, 10, in_network=True)
        + line("launch", 1, 1, 11, in_network=False)
        + line("launch", 2, 0, 12, in_network=True)
        + line("done", 2, 0, 20)
    )
    wrong = account(read_cluster(lab.file), [log]).wrong
    assert wrong == [
        "job 1 launched operation 0 in two modes: {0: True, 1: False}",
        "resource 0 was used at 12 ns by jobs [1, 2] at once",
    ]
    # What a dead job held is free once its tree is down.
    fenced = json.dumps({"event": "fenced", "job": 1, "ns": 12}) + "\n"
    log.write_text(log.read_text().replace("false", "true") + fenced)
    assert not account(read_cluster(lab.file), [log]).wrong


def test_what_cannot_be_simulated_is_checked_all_the_same(
    labs: Callable[..., Lab], capsys: pytest.CaptureFixture[str]
) -> None:
    lab = labs([2, 2, 2], 1)
    first, *rest = lab.file.read_text().replace("0 = 1\n", "0 = 1\n1 = 1\n").split("[[jobs]]")
    uses = ["[0]", "[0, 1]", "[1]"]  # the second conflicts with both, and they not with each other
    rest = [job.replace("[0]\n", f"{use}\n") for job, use in zip(rest, uses, strict=True)]
    lab.file.write_text("[[jobs]]".join([first, *rest]))
    log = lab.folder / "a.jsonl"
    launch = {"at": "launch", "index": 0, "in_network": True, "locked_ns": 0, "decide_ns": 0}
    launches = [{**launch, "job": job, "host": 0, "ns": job} for job in (2, 3)]
    log.write_text("".join(json.dumps(line) + "\n" for line in launches))
    assert run(["schedule", "shared", "--cluster", str(lab.file), str(log)]) == 1
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert report["simulated"] is None
    assert report["wrong"] == ["resource 1 was used at 3 ns by jobs [2, 3] at once"]
    assert "no simulated score: jobs 1, 2, 3: some do not conflict with each other" in said.err


@pytest.mark.parametrize("ahead", ["0", "99us", "101ms"])
def test_a_time_ahead_that_cannot_work_is_refused(
    labs: Callable[..., Lab], capsys: pytest.CaptureFixture[str], ahead: str
) -> None:
    lab = labs([1], 1)
    assert run(["schedule", "share", "--cluster", str(lab.file), "--ahead", ahead]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "must be at least 100us and at most 100ms: a shorter time than a round trip to the hosts"
        in said
    )


@pytest.mark.parametrize("ahead", ["100us", "100ms"])
def test_a_time_ahead_within_its_bounds_is_taken(
    labs: Callable[..., Lab], capsys: pytest.CaptureFixture[str], ahead: str
) -> None:
    lab = labs([1], 1)
    lab.file.write_text(lab.file.read_text().replace("resources = [0]", "resources = [9]"))
    assert run(["schedule", "share", "--cluster", str(lab.file), "--ahead", ahead]) == 2
    assert "it needs more units than resource 9" in capsys.readouterr().err


def test_every_controller_has_a_later_epoch(tmp_path: Path) -> None:
    file = tmp_path / "epoch"
    assert [next_epoch(file) for _ in range(3)] == [1, 2, 3]
    file.write_text("soon")
    with pytest.raises(ConfigurationError, match="write a number above"):
        next_epoch(file)


def test_what_cannot_be_is_named(
    labs: Callable[..., Lab], capsys: pytest.CaptureFixture[str]
) -> None:
    lab = labs([1], 1)
    text = lab.file.read_text()
    lab.file.write_text(text.replace("resources = [0]", "resources = [9]"))
    assert run(["schedule", "share", "--cluster", str(lab.file)]) == 2
    assert "job 1): it needs more units than resource 9" in capsys.readouterr().err
    lab.file.write_text(text.replace("steps = 1", "steps = 0"))
    assert run(["schedule", "share", "--cluster", str(lab.file)]) == 2
    assert "jobs.0.steps" in capsys.readouterr().err
    lab.file.write_text(text)
    words = ["--job", "7", "--rank", "0", "--log", str(lab.folder / "x.jsonl")]
    assert run(["schedule", "host", "--cluster", str(lab.file), *words]) == 2
    assert "no job 7" in capsys.readouterr().err
