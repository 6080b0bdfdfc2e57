"""`olaf train --local`: what a run leaves, and that it goes on where it stopped."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from small_runs import LOCAL, Olaf

from olaf import checkpoint
from olaf.errors.outcome import Exit, RunError
from olaf.jobs.alone import TrainingAlone
from olaf.jobs.progress import Earlier, Happening, Progress
from olaf.jobs.reading import read_settings
from olaf.processes.lines import Control
from olaf.rl.learner import LearnerConfig
from olaf.rl.ppo_numpy import NumpyLearner
from olaf.runs.folder import Hold
from olaf.runs.journal import read_journal
from olaf.runs.session import nothing_kept


class Nobody:
    def happened(self, happening: Happening) -> None: ...

    def stands(self, progress: Progress, phase: str) -> None: ...


def test_it_is_the_same_learner_in_the_same_environment(tmp_path: Path) -> None:
    """Update by update what the learner does by itself: no network, nothing in between."""
    settings = read_settings(
        overrides=[
            f"train.out='{tmp_path}'", "train.local=true", "train.updates=3", "train.seed=5",
            "train.until_reward=off", "learner.environment=CartPole-v1", "learner.hidden=[8]",
            "learner.steps_per_update=100", "worker.push_every=turn",
        ]
    )  # fmt: skip
    outcome = TrainingAlone(settings, Nobody(), Control()).run()
    assert (outcome.kind, outcome.code) == ("updates", Exit.OK)
    fields = settings.learner.model_dump()
    fields["hidden"] = (8,)
    fields["gamma"] = settings.server.learning_rate
    alone = NumpyLearner(LearnerConfig(**fields, seed=5))
    steps = sum(alone.iterate().steps for _ in range(3))
    saved = checkpoint.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(saved.parameters, alone.weights)
    assert saved.version == 4
    assert outcome.progress.steps == steps


THREADS = """
import json
from gymnasium.envs.classic_control import CartPoleEnv
from threadpoolctl import threadpool_info

class Looks(CartPoleEnv):
    def step(self, action):
        with open("threads.json", "w") as file:
            json.dump([pool["num_threads"] for pool in threadpool_info()], file)
        return super().step(action)
"""


def test_it_computes_with_one_thread_as_a_worker_does(olaf: Olaf) -> None:
    (olaf.folder / "looks.py").write_text(THREADS)
    olaf("train", "--local", "--env=looks:Looks", "--updates=1", "--until-reward=off")
    threads = json.loads((olaf.folder / "threads.json").read_text())
    assert threads
    assert set(threads) == {1}


def test_a_run_leaves_what_a_run_through_a_switch_leaves(trained: Olaf) -> None:
    folder = trained.folder / "runs" / "latest"
    names = {path.name for path in folder.iterdir()}
    assert names >= {
        "settings.toml", "history.jsonl", "run.json", "report.html", "model.npz", "checkpoint.npz",
    }  # fmt: skip
    assert list(folder.glob("events.out.tfevents.*"))
    result = json.loads((folder / "run.json").read_text())["result"]
    assert (result["local"], result["workers"], result["updates"]) == (True, 1, 12)
    expected = {"version": 13, "parameters": 1963, "segments": 1, "file": "model.npz"}
    assert result["model"] == expected
    assert "Age-of-Model" not in (folder / "report.html").read_text()


@pytest.mark.slow
def test_a_run_goes_on_with_a_higher_limit(olaf: Olaf) -> None:
    first = olaf.json(*LOCAL, "--updates=5", "--seed=3")
    journal = read_journal(olaf.folder / "runs" / "latest")
    done = olaf("train", "--resume=runs/latest", "--updates=12", "--json")
    second = json.loads(done.stdout)
    assert "changed: train.updates: 5 -> 12" in done.stderr
    assert second["updates"] == 12
    assert second["session"]["number"] == 2
    assert second["session"]["updates"] == 7
    assert second["model"]["version"] == first["model"]["version"] + 7
    assert second["env_steps"] == 12 * 200
    assert second["wall_s"] > first["wall_s"]
    record = json.loads((olaf.folder / "runs" / "latest" / "run.json").read_text())
    updates = [point["updates"] for point in record["history"]]
    assert updates == sorted(updates)
    assert record["history"][: len(journal.samples)] == [
        {**point, "ages_s": {}} for point in record["history"][: len(journal.samples)]
    ]
    assert record["episodes"][: len(journal.episodes)] == [
        [round(e.at_s, 3), e.worker, e.reward, e.steps, e.length] for e in journal.episodes
    ]
    assert len(list((olaf.folder / "runs").glob("*CartPole*"))) == 1
    # A third time, with the settings of the second.
    third = olaf.json("train", "--resume=runs/latest", "--updates=13")
    assert (third["updates"], third["session"]["number"]) == (13, 3)


def test_a_session_does_not_play_the_same_beginning_again(olaf: Olaf) -> None:
    olaf(*LOCAL, "--updates=1")
    olaf("train", "--resume=runs/latest", "--updates=2")
    episodes = read_journal(olaf.folder / "runs" / "latest").episodes
    first = [e.reward for e in episodes if e.steps <= 200]
    second = [e.reward for e in episodes if e.steps > 200]
    assert first
    assert second
    assert first != second[: len(first)]


def test_a_run_that_has_ended_says_what_to_raise(olaf: Olaf) -> None:
    olaf(*LOCAL, "--updates=2")
    said = olaf("train", "--resume=runs/latest", code=2).stderr
    assert "this run has ended: 2 updates pushed" in said
    assert "--updates" in said
    said = olaf("train", "--resume=runs/latest", "--env=Acrobot-v1", code=2).stderr
    assert "learner.environment cannot change" in said
    said = olaf("train", "--resume=runs/latest", "--out=elsewhere", code=2).stderr
    assert "--out does not go with --resume" in said
    said = olaf("train", "--resume=runs/none", code=2).stderr
    assert "no such run" in said


def test_the_last_turn_has_no_more_passes_than_updates_are_left(olaf: Olaf) -> None:
    given = [option for option in LOCAL if "push_every" not in option]
    first = olaf.json(*given, "--updates=6")
    assert (first["updates"], first["env_steps"]) == (6, 400)
    again = olaf.json("train", "--resume=runs/latest", "--updates=11")
    assert (again["updates"], again["session"]["updates"]) == (11, 5)


def test_a_budget_of_steps_counts_those_of_earlier_sessions(olaf: Olaf) -> None:
    first = olaf.json(*LOCAL, "--steps=600")
    assert (first["outcome"], first["env_steps"], first["updates"]) == ("steps", 600, 3)
    said = olaf("train", "--resume=runs/latest", code=2).stderr
    assert "this run has ended: 600 environment steps taken; give a higher --steps" in said
    second = olaf.json("train", "--resume=runs/latest", "--steps=1000")
    assert (second["env_steps"], second["session"]["env_steps"]) == (1000, 400)


def test_a_run_without_a_checkpoint_is_not_begun_anew_in_silence(olaf: Olaf) -> None:
    olaf(*LOCAL, "--updates=2")
    folder = olaf.folder / "runs" / "latest"
    (folder / "checkpoint.npz").unlink()
    done = olaf("train", "--resume=runs/latest", "--updates=3", "--json")
    assert "no checkpoint.npz yet: the run begins with a new model" in done.stderr
    assert json.loads(done.stdout)["model"]["version"] == 2
    # One that had trained for long has lost its checkpoint.
    (folder / "checkpoint.npz").unlink()
    journal = (folder / "history.jsonl").read_text()
    longer = re.sub(r'"trained_s": [0-9.]+', '"trained_s": 500.0', journal)
    (folder / "history.jsonl").write_text(longer)
    said = olaf("train", "--resume=runs/latest", "--updates=5", code=2).stderr
    assert "the run cannot continue what it learnt in 500 s" in said


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("server.checkpoint=off", "server.checkpoint is off and there is no checkpoint"),
        ("server.checkpoint=gone-{job}.npz", "there is no gone-1.npz"),
    ],
)
def test_a_checkpoint_of_the_users_that_is_not_there_is_no_reason_to_begin_anew(
    tmp_path: Path, told: str, said: str
) -> None:
    settings = read_settings(overrides=[told])
    assert said in (nothing_kept(tmp_path, settings, Earlier(trained_s=1.0)) or "")
    with pytest.raises(RunError, match=re.escape(said)) as error:
        nothing_kept(tmp_path, settings, Earlier(trained_s=500.0))
    assert "start a new run" in str(error.value)
    (tmp_path / "checkpoint.npz").touch()
    with pytest.raises(RunError, match="use the run's own with"):
        nothing_kept(tmp_path, settings, Earlier(trained_s=500.0))
    there = tmp_path / "there.npz"
    there.touch()
    settings = read_settings(overrides=[f"server.checkpoint='{there}'"])
    assert nothing_kept(tmp_path, settings, Earlier(trained_s=500.0)) is None


def test_a_save_that_fails_is_said_and_the_run_goes_on(olaf: Olaf) -> None:
    folder = olaf.folder / "mine"
    (folder / "checkpoint.npz.part").mkdir(parents=True)  # nothing can be written there
    told = (*LOCAL, "--updates=4", "--set=server.checkpoint_every=1ms", "--out=mine")
    done = olaf(*told, "--json", code=1)
    said = "checkpoint.npz could not be written: Is a directory"
    assert said in done.stderr
    events = json.loads((folder / "run.json").read_text())["events"]
    assert sum(said in event["text"] for event in events) >= 3
    result = json.loads(done.stdout)
    assert result["updates"] == 4  # none of them ended it
    assert "could not be written" in json.dumps(result)
    assert (folder / "report.html").exists()
    assert checkpoint.load(folder / "model.npz").version == 5


def test_each_session_has_a_record_of_its_own(olaf: Olaf) -> None:
    olaf(*LOCAL, "--updates=3", "--record=pushes.csv")
    first = (olaf.folder / "pushes.csv").read_text()
    assert len(first.splitlines()) == 1 + 3
    olaf("train", "--resume=runs/latest", "--updates=5")
    assert (olaf.folder / "pushes.csv").read_text() == first
    assert len((olaf.folder / "pushes-2.csv").read_text().splitlines()) == 1 + 2


def test_a_record_that_cannot_be_written_is_said_before_anything_is_trained(olaf: Olaf) -> None:
    (olaf.folder / "file").touch()
    said = olaf(*LOCAL, "--updates=off", "--record=file/pushes.csv", code=2).stderr
    assert "--record file/pushes.csv: cannot be written" in said
    assert not list((olaf.folder / "runs").glob("*"))


def test_a_folder_that_holds_a_run_is_refused_and_a_start_that_failed_leaves_none(
    olaf: Olaf,
) -> None:
    olaf(*LOCAL, "--updates=1", "--out=mine")
    before = (olaf.folder / "mine" / "model.npz").read_bytes()
    said = olaf(*LOCAL, "--updates=1", "--out=mine", code=2).stderr
    assert "--resume mine" in said
    assert (olaf.folder / "mine" / "model.npz").read_bytes() == before
    olaf("train", "--local", "--env=Nowhere-v0", code=2)
    assert not (olaf.folder / "runs").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_was_stopped_or_killed_goes_on(olaf: Olaf, number: signal.Signals) -> None:
    argv = [
        sys.executable,
        "-m",
        "olaf",
        *LOCAL,
        "--updates=off",
        "--set=server.checkpoint_every=200ms",
    ]
    with subprocess.Popen(argv, cwd=olaf.folder, stdout=subprocess.DEVNULL) as process:
        runs = olaf.folder / "runs"
        deadline = time.monotonic() + 60

        def learnt() -> bool:
            for file in runs.glob("*CartPole*/checkpoint.npz"):
                return checkpoint.load(file).version > 5
            return False

        while not learnt():
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(60) == (130 if number == signal.SIGTERM else -number)
    with Hold(runs / "latest").take(patience_s=30):  # its learner has written the last model
        before = read_journal(runs / "latest")
    saved = checkpoint.load(runs / "latest" / "checkpoint.npz")
    after = olaf.json("train", "--resume=runs/latest", f"--updates={before.updates + 5}")
    assert after["updates"] == before.updates + 5
    assert after["env_steps"] == before.steps + 5 * 200
    assert after["model"]["version"] == saved.version + 5
