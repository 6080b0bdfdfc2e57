"""Kill -9 of the server, and of everything: what was learnt goes on. Real processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_doubles import Watcher
from commands import message_of
from ports import free_port
from waiting import until

from olaf import checkpoint
from olaf.jobs.progress import Progress
from olaf.jobs.reading import read_settings
from olaf.jobs.result import conclude
from olaf.jobs.training import Training
from olaf.processes.lines import Control


@pytest.mark.slow
def test_a_killed_server_is_started_by_hand_and_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "lander.npz"
    port = free_port()
    command = [sys.executable, "-m", "olaf", "server", f"--listen=127.0.0.1:{port}", "--json"]
    command += [f"--checkpoint={file}", "--checkpoint-every=50ms", "--every=0.1"]
    small = ["--env=CartPole-v1", "--set=learner.environments=2"]
    small += ["--set=learner.steps_per_update=100", "--updates=20", "--json"]
    worker = [sys.executable, "-m", "olaf", "worker", f"--switch=127.0.0.1:{port}", *small]

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        message_of(server, "listening")
        done = subprocess.run(worker, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr
        version = until(
            lambda: file.exists() and checkpoint.load(file).version, what="a checkpoint"
        )
        assert version > 1
        server.send_signal(signal.SIGKILL)
    kept = checkpoint.load(file)
    assert "trunk0.weight" in kept.arrays
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        restored = message_of(server, "restored")
        assert (restored["version"], restored["file"]) == (kept.version, str(file))
        done = subprocess.run(worker, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr
        joined = next(
            message
            for message in map(json.loads, done.stdout.splitlines())
            if message["event"] == "joined"
        )
        assert joined["version"] == kept.version
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=20)
    after = checkpoint.load(file)
    assert after.version > kept.version
    assert after.metadata["is_last"]
    received = after.metadata["counts"]["received"]
    assert received > kept.metadata["counts"]["received"]


@pytest.mark.slow
@pytest.mark.parametrize("victims", [["server"], ["worker 0", "worker 1", "server"]])
def test_training_goes_on_where_it_was_after_a_kill(tmp_path: Path, victims: list[str]) -> None:
    settings = read_settings(
        overrides=[
            f"train.out='{tmp_path}'",
            "train.workers=2",
            "train.clusters=2",
            "train.every_s=0.1",
            "train.updates=off",
            "train.until_reward=off",
            "train.time_limit_s=80",
            "server.checkpoint_every='50ms'",
            "learner.environment='CartPole-v1'",
            "learner.environments=2",
            "learner.steps_per_update=200",
        ]
    )
    control = Control()
    file = tmp_path / "checkpoint.npz"
    kept: list[checkpoint.Checkpoint] = []
    versions: list[int] = []

    def act(progress: Progress, phase: str) -> None:
        if not kept:
            if progress.updates >= 20 and file.exists():
                found = checkpoint.load(file)
                if found.version >= 10:
                    for name in victims:
                        training.kill(name)
                    kept.append(checkpoint.load(file))
            return
        again = progress.reports.get(("server", 2))
        jobs = again.stats["jobs"] if again else []
        if jobs and jobs[0]["ready"]:
            versions.append(jobs[0]["version"])
            if jobs[0]["received"] > jobs[0]["restored"]["received"] + 10:
                control.stop("test")

    watcher = Watcher(act)
    training = Training(settings, watcher, control)
    outcome = training.run()
    assert outcome.kind == "interrupted", (outcome.reason, watcher.lines)
    assert any("continues from" in line for line in watcher.lines), watcher.lines
    # Not back to the first version, and never behind what was on the disk.
    assert min(versions) >= kept[0].version
    if victims != ["server"]:
        assert any("continues from the checkpoint" in line for line in watcher.lines), watcher.lines
    fates = conclude(outcome)["fates"]
    assert fates["matches"], fates
    last = checkpoint.load(file)
    assert last.metadata["is_last"]
    assert last.metadata["counts"]["received"] > kept[0].metadata["counts"]["received"]
