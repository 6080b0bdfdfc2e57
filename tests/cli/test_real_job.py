"""The commands against the real core: processes, sockets, deaths. Small jobs, no stand-ins."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_doubles import Watcher
from commands import olaf
from ports import taken_port
from waiting import until

from olaf import checkpoint
from olaf.errors.outcome import Exit
from olaf.jobs.progress import Progress
from olaf.jobs.reading import read_settings
from olaf.jobs.result import conclude
from olaf.jobs.training import Training
from olaf.processes.lines import Control

SMALL = [
    "--env=CartPole-v1",
    "--workers=3",
    "--clusters=2",
    "--set=learner.environments=2",
    "--set=learner.steps_per_update=200",
    "--set=train.every_s=0.1",
]


class Role:
    """A role as a person would start it, read line by line."""

    def __init__(self, *argv: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "olaf", *argv, "--json", "--every", "0.1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def says(self, event: str) -> dict[str, Any]:
        """The next message of this kind."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message["event"] == event:
                return message
        assert self.process.stderr is not None
        pytest.fail(f"no {event!r}; {self.process.stderr.read()}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=20)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def roles() -> Iterator[list[Role]]:
    started: list[Role] = []
    yield started
    for role in started:
        role.close()


def test_train_ends_with_a_result_and_everything_it_leaves(tmp_path: Path) -> None:
    done = olaf(
        "train", *SMALL, "--updates=60", "--until-reward=off", f"--out={tmp_path}", "--json"
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["updates"] >= 60
    assert result["fates"]["matches"], result["fates"]
    assert result["fates"]["pushed"] == result["updates"]
    assert result["loss"] == 0
    assert result["staleness"]["mean"] is not None
    assert 0 < result["age_of_model"]["mean_s"] < 10
    assert json.loads((tmp_path / "run.json").read_text())["result"] == result
    assert "the sums match" in done.stderr
    model = checkpoint.load(tmp_path / "model.npz")
    assert model.parameters.size == result["model"]["parameters"]
    assert model.version == result["model"]["version"]
    assert model.arrays["trunk0.weight"].shape == (4, 40)
    assert list(model.arrays)[-1] == "heads.bias"
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert list(tmp_path.glob("events.out.tfevents.*"))


def test_train_through_a_narrow_link_keeps_its_accounts(tmp_path: Path) -> None:
    done = olaf(
        "train",
        *SMALL,
        "--updates=150",
        "--until-reward=off",
        "--uplink=1mbit",
        "--slots=1",
        f"--out={tmp_path}",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["fates"]["matches"], result["fates"]
    assert result["loss"] > 0


@pytest.mark.slow
def test_train_through_leaves_merges_on_and_keeps_its_accounts(tmp_path: Path) -> None:
    done = olaf(
        "train",
        *SMALL,
        "--leaves=2",
        "--updates=150",
        "--until-reward=off",
        "--uplink=400kbit",
        "--set=leaf.uplink='2mbit'",
        f"--out={tmp_path}",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["fates"]["matches"], result["fates"]
    assert result["leaves"] == 2
    switches = {switch["name"]: switch for switch in result["switches"]}
    handed = sum(switches[f"leaf {n}"][how] for n in (0, 1) for how in ("sent_alone", "merged"))
    assert switches["switch"]["received"] == handed
    assert "Switches" in done.stderr
    assert "leaf 1" in done.stderr


def test_train_reaches_the_reward_it_is_asked_for(tmp_path: Path) -> None:
    done = olaf("train", *SMALL, "--until-reward=40", f"--out={tmp_path}", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["outcome"] == "reached"
    assert result["reward"]["mean"] >= 40


@pytest.mark.slow
def test_compare_runs_both_disciplines_on_the_same_seeds(tmp_path: Path) -> None:
    done = olaf(
        "compare",
        *SMALL,
        "--seeds=3",
        "--updates=30",
        "--until-reward=off",
        "--uplink=2mbit",
        "--slots=1",
        "--baselines=off",
        f"--out={tmp_path}",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    comparison = json.loads(done.stdout)
    assert set(comparison["summary"]) == {"fifo", "olaf"}
    assert [run["folder"] for run in comparison["runs"]] == ["fifo-seed3", "olaf-seed3"]
    for run in comparison["runs"]:
        assert run["result"]["fates"]["matches"]
    assert (tmp_path / "compare.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "leaves"),
    [("worker 1", 0), ("switch", 0), ("server", 0), ("switch", 2), ("leaf 0", 2)],
)
def test_a_killed_party_comes_back_and_training_goes_on(
    tmp_path: Path, name: str, leaves: int
) -> None:
    settings = read_settings(
        overrides=[
            f"train.out='{tmp_path}'",
            "train.workers=3",
            "train.clusters=2",
            f"train.leaves={leaves}",
            "train.every_s=0.1",
            "train.updates=off",
            "train.until_reward=off",
            "train.time_limit_s=60",
            "learner.environment='CartPole-v1'",
            "learner.environments=2",
            "learner.steps_per_update=200",
        ]
    )
    control = Control()
    killed_at: list[int] = []

    def act(progress: Progress, phase: str) -> None:
        if not killed_at:
            if progress.updates >= 30 and progress.version:
                killed_at.append(progress.updates)
                training.kill(name)
            return
        again = (name, 2)
        if name.startswith("worker"):
            back = again in progress.updates_of
        else:
            stats = progress.reports[again].stats if again in progress.reports else None
            received = stats.get("received") if stats else 0
            if stats and name == "server":
                received = sum(job["received"] for job in stats["jobs"])
            back = bool(received)
        if back and progress.updates > killed_at[0] + 30:
            control.stop("test")

    watcher = Watcher(act)
    training = Training(settings, watcher, control)
    outcome = training.run()
    assert outcome.kind == "interrupted", (outcome.reason, watcher.lines)
    assert outcome.restarts == {name: 1}, watcher.lines
    assert any(line.startswith(f"{name} died: killed by SIGKILL") for line in watcher.lines)
    fates = conclude(outcome)["fates"]
    assert fates["matches"], fates


def test_an_unknown_environment_is_a_usage_error_with_a_suggestion(tmp_path: Path) -> None:
    done = olaf("train", "--env=CartPol-v1", f"--out={tmp_path}")
    assert done.returncode == Exit.USAGE
    assert "CartPole-v1" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("role", ["switch", "server"])
def test_a_port_in_use_is_said_with_what_to_do(role: str) -> None:
    with taken_port() as port:
        done = olaf(role, "--listen", f"127.0.0.1:{port}")
    assert done.returncode == Exit.PORT_IN_USE
    assert str(port) in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unreachable_switch_is_named_at_the_deadline() -> None:
    with taken_port() as port:
        address = f"127.0.0.1:{port}"
        done = olaf(
            "worker", "--switch", address, "--env=CartPole-v1", "--set=worker.join_timeout_s=0.5"
        )
    assert done.returncode == Exit.UNREACHABLE, done.stderr
    assert address in done.stderr


def test_the_roles_one_by_one(roles: list[Role], tmp_path: Path) -> None:
    model = tmp_path / "model.npz"
    server = Role("server", "--listen=127.0.0.1:0", f"--model={model}")
    roles.append(server)
    upstream = server.says("listening")["address"]
    switch = Role("switch", "--listen=127.0.0.1:0", f"--upstream={upstream}")
    roles.append(switch)
    address = switch.says("listening")["address"]
    worker = Role(
        "worker",
        f"--switch={address}",
        "--env=CartPole-v1",
        "--id=5",
        "--updates=10",
        "--set=learner.steps_per_update=100",
    )
    roles.append(worker)
    assert worker.says("ready")["worker"] == 5
    assert worker.says("update")["updates"] == 4  # a turn of four passes
    last = worker.says("stopped")
    assert worker.process.wait(timeout=20) == 0
    assert last["flushed"]
    assert last["stats"]["contributions"] == 10

    def drained() -> dict[str, Any] | None:
        stats: dict[str, Any] = switch.says("stats")["stats"]
        return stats if stats["received"] >= 10 and stats["fates"]["waiting"] == 0 else None

    # On a busy machine an update can wait in the queue until the worker's next one replaces it.
    # Then fewer than ten leave the switch. The server must receive exactly what left.
    passed = until(drained, what="the queue to empty")
    assert passed is not None
    assert passed["fates"]["sent_alone"] + passed["fates"]["replaced"] == passed["received"]
    assert passed["departures"] == passed["fates"]["sent_alone"]

    def delivered() -> bool:
        jobs = server.says("stats")["stats"]["jobs"]
        return bool(jobs) and jobs[0]["received"] == passed["departures"]

    until(delivered, what="the server to receive every departure")
    assert switch.stop(signal.SIGINT) == 0
    assert server.stop() == 0
    assert np.load(model)["version"] >= 1


def test_replay_summarizes_a_trace_and_prints_it_as_json(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    rows = [f"{t * 1000},{t % 2},{t % 3},{t},0.0,1000" for t in range(50)]
    trace.write_text("t_ns,cluster,worker,seq,reward,bytes\n" + "\n".join(rows) + "\n")
    done = olaf("replay", str(trace), "--rate=1gbit", "--slots=4", "--json")
    assert done.returncode == 0, done.stderr
    replayed = json.loads(done.stdout)
    assert len(replayed["fates"]) == 50
    done = olaf("replay", str(trace), "--rate=1gbit", "--slots=4", "--engine=fifo")
    assert done.returncode == 0, done.stderr
    assert "mean AoM" in done.stdout


@pytest.mark.parametrize(
    ("text", "argument", "complaint"),
    [
        ("t_ns,cluster\n1,2\n", "--rate=1gbit", "trace.csv"),
        ("t_ns,cluster,worker,seq,reward,bytes\n", "--rate=fast", "fast"),
        ("t_ns,cluster,worker,seq,reward,bytes\n", "--gate=high", "neither a number nor off"),
    ],
)
def test_a_trace_or_rate_that_cannot_be_used_is_named(
    tmp_path: Path, text: str, argument: str, complaint: str
) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(text)
    done = olaf("replay", str(trace), "--rate=1gbit", argument)
    assert done.returncode == Exit.USAGE
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("role", ["switch", "server", "worker"])
def test_the_sample_configurations_are_valid(role: str) -> None:
    sample = Path(__file__).parents[2] / "deploy" / f"{role}.toml"
    done = olaf(role, f"--config={sample}", "--print-config")
    assert done.returncode == 0, done.stderr
    assert f"[{role}]" in done.stdout


def test_the_version_is_printed() -> None:
    done = olaf("--version")
    assert done.stdout.startswith("olaf 0.")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["periodic", "round"])
def test_train_where_the_server_collects(tmp_path: Path, mode: str) -> None:
    of_three = ["--set=server.aggregate_updates=3"] if mode == "periodic" else []
    done = olaf(
        "train", *SMALL, f"--aggregate={mode}", *of_three, "--updates=45",
        "--until-reward=off", f"--out={tmp_path}", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["fates"]["matches"], result["fates"]
    assert result["aggregate"]["mode"] == mode
    assert result["updates"] == 45
    # Three contributions make a version. Two collections may be smaller: the one that the time
    # limit ends while workers still start, and the last. Rounds are smaller at the start.
    collections = result["aggregate"]["collections"]
    most = result["updates"] // 3 + 2 if mode == "periodic" else result["updates"]
    assert 9 <= collections <= most
    assert result["model"]["version"] == collections + 1


@pytest.mark.slow
def test_a_worker_that_dies_in_a_round_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    settings = read_settings(
        None, {},
        [
            "learner.environment=CartPole-v1", "learner.environments=2",
            "learner.steps_per_update=100", "train.workers=3", "train.updates=off",
            "train.until_reward=off", "train.time_limit_s=60", "train.every_s=0.1",
            "train.restart_delay_s=5", "server.aggregate=round", "server.aggregate_ms=300",
            # On a busy machine a turn of the others may take longer than the usual two seconds,
            # after which nobody misses the dead one, rightly.
            "server.silent_after_ms=30000",
            f"train.out={tmp_path}",
        ],
    )  # fmt: skip
    control = Control()
    killed_at: list[int] = []
    named_at: list[int] = []

    # It is killed when it has pushed, not when the others have: on a busy machine they may be at
    # it while it starts, and a worker that never came is not missed. For the same reason the
    # observed events end the run, not a number of updates.
    def act(progress: Progress, phase: str) -> None:
        if not killed_at:
            if ("worker 1", 1) in progress.updates_of and progress.updates >= 20:
                killed_at.append(progress.updates)
                training.kill("worker 1")
        elif not named_at:
            if any("round ended without worker 1" in line for line in watcher.lines):
                named_at.append(progress.updates)
        elif progress.updates > named_at[0] + 10:
            control.stop("test")

    watcher = Watcher(act)
    training = Training(settings, watcher, control)
    outcome = training.run()
    assert outcome.kind == "interrupted", (outcome.reason, watcher.lines)
    assert any("worker 1 died: killed by SIGKILL" in line for line in watcher.lines)
    result = conclude(outcome)
    assert result["fates"]["matches"], result["fates"]
    assert result["aggregate"]["rounds_short"] >= 1
