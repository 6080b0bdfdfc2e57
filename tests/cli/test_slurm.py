"""Batch jobs: stand-ins for Slurm's programs really run the script, and CartPole really learns."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from olaf.cli.main import run
from olaf.errors.outcome import Exit, RunError
from olaf.errors.usage import ConfigurationError
from olaf.jobs.place_settings import SlurmSettings
from olaf.jobs.places import open_place
from olaf.jobs.places.slurm_batch import write_batch
from olaf.jobs.places.slurm_place import address_of, deal, role_names, step_command
from olaf.jobs.reading import read_settings
from olaf.jobs.supervisor import Ended
from olaf.jobs.train_settings import TrainSettings

FAKES = Path(__file__).with_name("fake_slurm")

GOLDEN = """\
#!/bin/bash
#SBATCH --job-name=olaf-CartPole-v1
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=2
#SBATCH --time=2-12:00:00
#SBATCH --signal=B:TERM@120
#SBATCH --output='FOLDER/a run/slurm-%j.out'
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --mem-per-cpu=2G
#SBATCH --gres=gpu:3
#SBATCH --partition=gpu,large
#SBATCH --account=proj-7
#SBATCH --constraint=ib
# Written by `olaf train --on slurm`. Submit it again with: sbatch 'FOLDER/a run/job.sbatch'
set -euo pipefail
cd FOLDER
module load python
# A job that was put back into the queue goes on where it was.
how=(--config 'FOLDER/a run/job.toml')
if [ -e 'FOLDER/a run/history.jsonl' ]; then how=(--resume 'FOLDER/a run' --trust); fi
PYTHON -m olaf train "${how[@]}" &
driver=$!
# Slurm tells this script alone that time is nearly up: the run is to end in order.
trap 'kill -TERM "$driver"' TERM INT
# A signal ends the wait, not the driver.
code=0
wait "$driver" || code=$?
while kill -0 "$driver" 2>/dev/null; do
  code=0
  wait "$driver" || code=$?
done
exit "$code"
"""


@pytest.fixture(autouse=True)
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in, with Slurm's programs on the path; what they note is in ``slurm``."""
    notes = tmp_path / "slurm"
    notes.mkdir()
    monkeypatch.setenv("FAKE_SLURM", str(notes))
    monkeypatch.setenv("PATH", f"{FAKES}{os.pathsep}{os.environ['PATH']}")
    for name in [name for name in os.environ if name.startswith("SLURM")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    yield notes
    with contextlib.suppress(OSError):  # what a failed test left running
        os.killpg(int((notes / "job").read_text()), signal.SIGKILL)


def written(folder: Path, *overrides: str) -> str:
    settings = read_settings(
        overrides=[f"train.out='{folder}'", "learner.environment=CartPole-v1", *overrides]
    )
    folder.mkdir()
    return write_batch(settings, folder).script.read_text()


def test_the_script_is_word_for_word_as_it_should_be(tmp_path: Path) -> None:
    text = written(
        tmp_path / "a run",
        "slurm.nodes=3",
        "slurm.time=2-12:00:00",
        "slurm.cpus_per_worker=2",
        "slurm.gpus_per_worker=1",
        "slurm.partition=gpu,large",
        "slurm.account=proj-7",
        "slurm.options=['--constraint=ib']",
        "slurm.setup=['module load python']",
        "train.workers=9",
        "train.leaves=1",
    )
    assert text == GOLDEN.replace("FOLDER", str(tmp_path)).replace("PYTHON", sys.executable)


def test_the_script_is_clean_in_the_eyes_of_shellcheck(tmp_path: Path) -> None:
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed: the script's shell was not checked")
    written(tmp_path / "a run", "slurm.setup=['true']")
    script = str(tmp_path / "a run" / "job.sbatch")
    said = subprocess.run(["shellcheck", script], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("slurm.time='soon'", "MINUTES, H:MM:SS or DAYS-H:MM:SS"),
        ("slurm.partition='a b'", "without blanks and quotes"),
        ("slurm.memory_per_cpu='lots'", "a number and K, M, G or T"),
        ('slurm.setup=["a\\nb"]', "on one line"),
        ("train.on='slurmy'", "write local, ray, ray:ADDRESS, slurm or srun"),
    ],
)
def test_what_would_not_make_a_script_is_refused_by_key(override: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        read_settings(overrides=[override])


def words(*more: str) -> list[str]:
    return [
        *("train", "--on", "slurm", "--env", "CartPole-v1", "--workers", "3", "--out", "out"),
        *("--set", "slurm.nodes=2", "--set", "slurm.address=127.0.0.1", *more),
    ]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_job_runs_as_steps_and_learns(tmp_path: Path, slurm: Path) -> None:
    assert run(words("--until-reward", "200")) == Exit.OK
    record = tmp_path / "out" / "run.json"
    log = tmp_path / "out" / "slurm-17.out"
    until(lambda: log.is_file() and "report  " in log.read_text(), "the end of the job", 200)
    result = json.loads(record.read_text())["result"]
    assert result["outcome"] == "reached"
    assert result["reward"]["mean"] >= 200
    assert result["fates"]["matches"], result["fates"]
    assert (tmp_path / "out" / "model.npz").is_file()
    steps = (slurm / "steps").read_text().splitlines()
    nodes = {
        word.removeprefix("--job-name=olaf-"): step.partition("--nodelist=")[2].split()[0]
        for step in steps
        for word in step.split()
        if word.startswith("--job-name=")
    }
    assert nodes == {
        "server": "node1",
        "switch": "node1",
        "worker-0": "node2",
        "worker-1": "node2",
        "worker-2": "node1",
    }
    assert (tmp_path / "out" / "report.html").is_file()
    assert "the sums match" in log.read_text()


def ended_early(folder: Path, notes: Path, runs: int) -> dict[str, Any]:
    """Let the job train, end it as Slurm does when time is nearly up; its record."""
    log = folder / "slurm-17.out"
    until(lambda: log.is_file() and log.read_text().split().count("training") == runs, "it", 90)
    os.kill(int((notes / "job").read_text()), signal.SIGTERM)  # --signal=B:TERM: the script alone
    until(lambda: log.read_text().count("report  ") == runs, "the end of the job", 90)
    record: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return record


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_job_whose_time_is_nearly_up_ends_in_order_and_goes_on_when_it_is_queued_again(
    tmp_path: Path, slurm: Path
) -> None:
    folder = tmp_path / "out"
    assert run(words("--until-reward", "off", "--updates", "off")) == Exit.OK
    first = ended_early(folder, slurm, 1)["result"]
    assert first["reason"] == "stopped by SIGTERM"
    assert first["fates"]["matches"], first["fates"]
    subprocess.run(["sbatch", "--parsable", str(folder / "job.sbatch")], check=True)
    second = ended_early(folder, slurm, 2)["result"]
    assert "continuing" in (folder / "slurm-17.out").read_text()
    assert second["updates"] > first["updates"] > 0


def test_a_step_that_was_killed_is_named_as_killed() -> None:
    """Srun exits with 128 and the signal."""
    assert Ended("switch", 1, 137, False, 0.2).how == "killed by SIGKILL"
    assert (
        Ended("switch", 1, int(Exit.INTERRUPTED), False, 0.2).how == "exited with 130 (interrupted)"
    )


def test_a_dry_run_writes_and_submits_nothing(
    tmp_path: Path, slurm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words("--dry-run")) == Exit.OK
    assert (tmp_path / "out" / "job.sbatch").is_file()
    assert f"sbatch {tmp_path}/out/job.sbatch" in capsys.readouterr().out
    # It may be waiting for its turn: another one does not take its place.
    assert run(words("--dry-run")) == Exit.USAGE
    assert "holds a batch job already (job.sbatch, job.toml)" in capsys.readouterr().err
    assert run(words("--dry-run", "--json", "--out", "second")) == Exit.OK
    said = json.loads(capsys.readouterr().out)
    script, log = tmp_path / "second" / "job.sbatch", tmp_path / "second" / "slurm-%j.out"
    assert said == {"job": None, "script": str(script), "log": str(log)}
    assert not (slurm / "job").exists()


def test_no_file_of_the_users_is_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("[train]\nworkers = 2\n# my notes\n")
    for _ in range(2):  # our own script may be written anew
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        assert run(words("--config", "mine.toml", "--script", "mine.sbatch")) == Exit.OK
    assert mine.read_text().endswith("# my notes\n")
    script = (tmp_path / "mine.sbatch").read_text()
    assert f"--config {tmp_path}/out/job.toml" in script
    assert (tmp_path / "out" / "job.toml").is_file()
    shutil.rmtree(tmp_path / "out")
    assert run(words("--script", "mine.toml")) == Exit.USAGE
    said = capsys.readouterr().err
    assert "mine.toml: this file is there already" in said
    assert "--script or --out" in said
    assert mine.read_text().endswith("# my notes\n")
    assert not (tmp_path / "out").exists()


def test_without_sbatch_the_script_is_there_and_the_way_on_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert run(words()) == Exit.USAGE
    said = capsys.readouterr().err
    assert "this machine has no sbatch: nothing was submitted" in said
    assert str(tmp_path / "out" / "job.sbatch") in said


def test_what_sbatch_says_is_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("--set", "slurm.partition=nowhere")) == Exit.FAILED
    assert "invalid partition specified: nowhere" in capsys.readouterr().err
    assert run(words("--set", "slurm.partition=nowhere")) == Exit.FAILED  # not: there already


def test_an_unknown_environment_is_said_before_anything_waits_in_a_queue(
    slurm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words(), "--env", "Nowhere-v0"]) == Exit.USAGE
    assert "Nowhere-v0" in capsys.readouterr().err
    assert not (slurm / "job").exists()


def test_the_options_of_batch_jobs_are_for_batch_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--dry-run"]) == Exit.USAGE
    assert "need --on slurm" in capsys.readouterr().err


def test_steps_need_an_allocation() -> None:
    with pytest.raises(RunError, match="inside a Slurm allocation only") as error:
        open_place(read_settings(overrides=["train.on=srun"]))
    assert error.value.code == Exit.USAGE


@pytest.mark.parametrize("nodes", [1, 2, 3, 7])
@pytest.mark.parametrize("leaves", [0, 2])
def test_processes_are_dealt_evenly(nodes: int, leaves: int) -> None:
    train = TrainSettings(workers=11, clusters=4, leaves=leaves)
    names = [f"n{number}" for number in range(nodes)]
    placed = deal(role_names(train), names)
    assert len(placed) == 13 + leaves
    assert placed["server"] == placed["switch"] == "n0"
    load = Counter(placed.values())
    assert max(load.values()) - min(load.values()) <= 1
    assert set(load) == set(names)


def test_a_step_asks_for_what_its_role_needs() -> None:
    slurm = SlurmSettings(cpus_per_worker=4, gpus_per_worker=1, memory_per_cpu=None)
    worker = step_command("worker 3", "n1", slurm)
    assert worker[0] == "srun"
    assert {"--cpus-per-task=4", "--gres=gpu:1", "--nodelist=n1", "--ntasks=1"} <= set(worker)
    switch = step_command("switch", "n0", slurm)
    assert {"--cpus-per-task=1", "--gres=gpu:0", "--nodelist=n0"} <= set(switch)
    assert not any("mem" in word for word in worker + switch)


def test_addresses_are_those_that_other_nodes_can_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    assert address_of("a", ["a"]) == "127.0.0.1"
    assert address_of("a", ["a", "b"], "10.1.2.3") == "10.1.2.3"
    with pytest.raises(RunError, match=r"localhost has the address 127\.0\.0\.1 here"):
        address_of("localhost", ["localhost", "b"])
    with pytest.raises(RunError, match="has no address here"):
        address_of("no-such-node.invalid", ["no-such-node.invalid", "b"])
    monkeypatch.setenv("SLURMD_NODENAME", "a")
    assert address_of("a", ["a", "127.0.0.9"]) == "127.0.0.1"  # the way to it leads over loopback
