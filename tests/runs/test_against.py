"""`olaf train --against local`: the run and its one-process baseline, side by side."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_runs import Olaf

from olaf.runs.against import side_by_side
from olaf.runs.journal import read_journal

TRAIN = (
    "train",
    "--env=CartPole-v1",
    "--workers=2",
    "--until-reward=60",
    "--set=train.reward_window=20",
    "--set=learner.environments=2",
    "--set=learner.steps_per_update=200",
    "--set=worker.push_every=turn",
    "--set=train.every_s=0.05",
)


@pytest.mark.slow
def test_the_baseline_is_run_after_the_run_and_stands_beside_it(olaf: Olaf) -> None:
    done = olaf(*TRAIN, "--against=local", "--json")
    result = json.loads(done.stdout)
    folder = olaf.folder / "runs" / "latest"
    assert json.loads((folder / "run.json").read_text())["result"] == result
    alone = json.loads((folder / "against-local" / "run.json").read_text())["result"]
    against = result["against"]
    assert (against["outcome"], against["folder"]) == ("reached", "against-local")
    assert (alone["local"], alone["seed"], alone["workers"]) == (True, result["seed"], 1)
    # Each number is that of the two runs, and the ratio is theirs.
    assert against["run"]["env_steps"] == result["env_steps"]
    assert against["local"]["env_steps"] == alone["env_steps"]
    assert against["run"]["env_steps_per_worker"] == result["env_steps"] / 2
    expected = result["reached_s"] / alone["reached_s"]
    assert against["ratios"]["to_the_mark_s"] == pytest.approx(expected)
    # Four processes that import Python and learn take more than one that learns.
    assert against["run"]["cpu_s"] > against["local"]["cpu_s"] > 0
    assert "Against one process without a network" in done.stderr
    page = (folder / "report.html").read_text()
    assert "seconds to the mark" in page
    # The link shows the run, not its baseline.
    assert not (folder / "against-local").is_symlink()
    assert folder.resolve().name.endswith("CartPole-v1")


@pytest.mark.slow
def test_a_resumed_run_takes_its_baseline_along(olaf: Olaf) -> None:
    limited = (*TRAIN, "--until-reward=off", "--against=local")
    first = olaf.json(*limited, "--updates=6")
    assert first["against"]["local"]["env_steps"] == 6 * 200
    second = olaf.json("train", "--resume=runs/latest", "--updates=60")
    assert second["against"]["local"]["env_steps"] == 60 * 200
    # Processor seconds are those of the last session, and no ratio is made of them.
    assert second["against"]["run"]["cpu_s"] is None
    assert second["against"]["ratios"]["cpu_s"] is None


@pytest.mark.slow
def test_ctrl_c_ends_the_run_and_spares_the_baseline(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "olaf", *TRAIN, "--until-reward=off", "--updates=off",
         "--against=local", "--json"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    _wait_for(tmp_path / "runs" / "latest", lambda run: read_journal(run).updates > 0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 130, err
    assert json.loads(out)["against"]["skipped"] == "the run was interrupted"
    assert not (tmp_path / "runs" / "latest" / "against-local").exists()


@pytest.mark.slow
def test_ctrl_c_in_the_baseline_keeps_the_run_and_says_so(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "olaf", *TRAIN, "--until-reward=off", "--updates=off",
         "--time-limit=1s", "--against=local", "--json"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    folder = tmp_path / "runs" / "latest" / "against-local"
    _wait_for(folder, lambda run: read_journal(run).updates > 0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 130, err
    result = json.loads(out)
    assert result["outcome"] == "time"
    assert result["against"]["outcome"] == "interrupted"
    assert "It was interrupted" in err


def _wait_for(run: Path, holds: Callable[[Path], bool]) -> None:
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        if (run / "history.jsonl").exists() and holds(run):
            return
        time.sleep(0.05)
    raise AssertionError(f"{run}: nothing learnt within 100 s")


def test_a_mark_that_was_not_reached_gives_no_ratio() -> None:
    def result(reached_s: float | None, reward: float) -> dict[str, Any]:
        return {
            "reached_s": reached_s, "env_steps": 10, "workers": 2, "machines": 1, "cpu_s": 2.0,
            "reward": {"mean": reward}, "session": {"number": 1}, "outcome": "x", "reason": "y",
        }  # fmt: skip

    ratios = side_by_side(result(5.0, 10.0), result(None, -10.0))["ratios"]
    assert ratios["to_the_mark_s"] is None
    assert ratios["reward"] is None  # a ratio of rewards below 0 means nothing
    assert ratios["cpu_s"] == 1.0


def test_the_baseline_has_no_baseline(olaf: Olaf) -> None:
    said = olaf("train", "--local", "--against=local", code=2).stderr
    assert "the run is the baseline" in said
