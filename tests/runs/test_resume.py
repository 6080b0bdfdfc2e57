"""A run through a switch that is killed with all its processes, and goes on."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_runs import apart
from waiting import until

from olaf import checkpoint
from olaf.errors.outcome import RunError
from olaf.jobs.forking import can_fork
from olaf.runs.folder import Hold
from olaf.runs.journal import read_journal

RUN = (
    "train",
    "--env=CartPole-v1",
    "--workers=2",
    "--set=learner.environments=2",
    "--set=learner.steps_per_update=200",
    "--set=worker.push_every=turn",
    "--set=train.every_s=0.1",
    "--set=server.checkpoint_every_ms=200",
)


def version_of(folder: Path) -> int:
    try:
        return checkpoint.load(folder / "checkpoint.npz").version
    except FileNotFoundError:
        return 0


def children_of(parent: int) -> list[int]:
    """Processes whose parent this is, from /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found


def family_of(pid: int) -> list[int]:
    """A process and all that it, or a child of it, has started; itself first."""
    return [pid, *(one for child in children_of(pid) for one in family_of(child))]


def killed(folder: Path, *, everybody: bool) -> Path:
    """A run that learns, and is killed: the parent, or each of its processes; its folder."""
    argv = [sys.executable, "-m", "olaf", *RUN, "--updates=off", "--until-reward=off"]
    with subprocess.Popen(argv, cwd=folder, stdout=subprocess.DEVNULL) as process:
        runs = folder / "runs"

        def learning() -> bool:
            assert process.poll() is None
            if not (runs / "latest").exists() or version_of(runs / "latest") < 30:
                return False
            return read_journal(runs / "latest").updates >= 40

        until(learning, "a run that learns")
        family = family_of(process.pid)
        # Server, switch, two workers, and the process that they were forked from.
        assert len(family) == 1 + 4 + can_fork()
        for pid in family if everybody else family[:1]:
            os.kill(pid, signal.SIGKILL)
        process.wait(60)
    return (runs / "latest").resolve()


def goes_on(folder: Path) -> None:
    """Resume the run: its counts, its version, its curve and what it learnt go on."""
    journal = read_journal(folder)
    saved = version_of(folder)
    more = journal.updates + 40
    done = apart(
        folder.parent.parent, "train", "--resume=runs/latest", f"--updates={more}", "--json"
    )
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["updates"] == more
    assert result["session"]["number"] == 2
    assert result["session"]["updates"] == result["updates"] - journal.updates
    # At the end each of the two workers may have played a turn that it was not to push.
    assert result["env_steps"] - result["updates"] * 200 in (0, 200, 400)
    # The version goes on from the checkpoint, and every update of this session moved it.
    assert result["model"]["version"] >= saved + 40
    assert version_of(folder) == result["model"]["version"]
    assert result["fates"]["matches"], result["fates"]
    assert result["fates"]["pushed"] == result["session"]["updates"]
    for name in ("checkpoint.npz", "model.npz"):
        kept = checkpoint.load(folder / name)
        assert kept.version == result["model"]["version"]
        assert kept.arrays["trunk0.weight"].shape == (4, 40)
    record = json.loads((folder / "run.json").read_text())
    for key in ("updates", "steps", "at_s"):
        values = [point[key] for point in record["history"]]
        assert values == sorted(values), key
    assert len(record["history"]) > len(journal.samples)
    versions = [p["version"] for p in record["history"][len(journal.samples) :] if p["version"]]
    assert min(versions) >= saved
    # It does not begin to learn anew: the first episodes are as good as the last were.
    before = [e.reward for e in journal.episodes][-20:]
    after = [row[2] for row in record["episodes"][len(journal.episodes) :]][:20]
    assert sum(after) / len(after) > 0.5 * sum(before) / len(before)
    assert record["sessions"][1]["at_s"] == pytest.approx(journal.at_s)


@pytest.mark.slow
def test_after_a_kill_of_every_process_a_run_goes_on(tmp_path: Path) -> None:
    goes_on(killed(tmp_path, everybody=True))


@pytest.mark.slow
def test_after_a_kill_of_the_parent_alone_nobody_writes_behind_the_resumed_run(
    tmp_path: Path,
) -> None:
    folder = killed(tmp_path, everybody=False)
    # The orphans end by themselves; until then they hold the folder.
    goes_on(folder)
    with Hold(folder).take():
        pass


def test_a_run_that_is_still_going_is_not_resumed(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "olaf", *RUN, "--updates=off", "--until-reward=off"]
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
        try:
            journal = tmp_path / "runs" / "latest" / "history.jsonl"
            # Once there are samples, the run takes signals.
            until(lambda: journal.exists() and read_journal(journal.parent).samples, "a run")
            with pytest.raises(RunError, match="still going"):
                Hold(tmp_path / "runs" / "latest").take()
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 130
