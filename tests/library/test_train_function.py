"""`olaf.train`: the command as a function, in a script without a terminal and in a notebook."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import olaf

SMALL: dict[str, Any] = {"env": "CartPole-v1", "workers": 2, "display": "quiet"}


def test_a_run_is_a_result(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    environment = dict(os.environ)
    result = olaf.train(
        **SMALL,
        clusters=2,
        until_reward=60,
        out=tmp_path / "run",
        settings={"learner.epochs": 3, "train.every_s": 0.1},
    )
    assert (result.outcome, result.ok) == ("reached", True)
    assert result.reward is not None
    assert result.reward >= 60
    assert result.curve[-1].reward >= 60
    assert result.curve[-1].steps == result.steps > 1000
    assert sum(result.fates.values()) == result.updates > 0
    assert result.folder == tmp_path / "run"
    assert result.report.read_text().startswith("<!doctype html>")
    assert result.model is not None
    assert result.model.exists()
    assert result.record["settings"]["learner"]["epochs"] == 3
    assert str(result.report) in str(result)
    assert "record" not in repr(result)
    assert capfd.readouterr() == ("", "")
    assert dict(os.environ) == environment


def test_a_run_goes_on(tmp_path: Path) -> None:
    first = olaf.train(**SMALL, updates=10, until_reward="off", out=tmp_path / "run")
    assert (first.outcome, first.updates) == ("updates", 10)
    again = olaf.train(resume=tmp_path / "run", updates=25, display="quiet")
    assert again.updates == 25
    with pytest.raises(ValueError, match="config and out do not go with resume"):
        olaf.train(resume=tmp_path / "run", out=tmp_path / "other", display="quiet")


def test_a_missed_reward_is_a_result_that_is_not_ok(tmp_path: Path) -> None:
    result = olaf.train(**SMALL, until_reward=10_000, updates=4, out=tmp_path / "run")
    assert (result.outcome, result.ok) == ("updates", False)
    assert "without reaching mean reward 10000" in str(result)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"workres": 3}, "no option workres; did you mean workers?"),
        ({"workers": 0}, r"olaf\.train\(workers=0\): `train\.workers` = 0: .*greater"),
        ({"time_limit_s": -1}, r"olaf\.train\(time_limit_s=-1\): `train\.time_limit_s`"),
        ({"settings": {"learner.epoch": 3}}, r"settings\['learner\.epoch'\]: .*learner\.epochs"),
        ({"settings": {"learner": {"epochs": 3}}}, "write a key with its section"),
        ({"env": "CartPool-v1"}, r"unknown environment 'CartPool-v1': did you mean CartPole-v1"),
        ({"display": "loud"}, "display = 'loud': must be one of auto, live, lines, quiet"),
        ({"config": "/nowhere.toml"}, r"/nowhere\.toml"),
    ],
)
def test_what_cannot_be_is_named_before_anything_starts(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        olaf.train(**given)


LONG = """
    import sys, olaf
    try:
        olaf.train("CartPole-v1", workers=2, until_reward="off", updates="off", out=sys.argv[1])
    except KeyboardInterrupt:
        print("interrupted")
    """


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_interrupt_ends_the_run_in_order_and_keeps_what_it_leaves(tmp_path: Path) -> None:
    file, out = tmp_path / "script.py", tmp_path / "run"
    file.write_text(textwrap.dedent(LONG))
    run = subprocess.Popen(
        [sys.executable, "-u", str(file), str(out)], stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    for line in run.stdout:  # lines, as there is no terminal
        if "updates " in line:
            break
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=200)
    assert said.rstrip().endswith("interrupted")
    assert run.returncode == 0
    assert (out / "report.html").exists()
    assert (out / "model.npz").exists()


OWN = """
import functools, json, sys
import gymnasium as gym, numpy as np
import olaf

class Dot(gym.Env):
    observation_space = gym.spaces.Box(-9, 9, (1,))
    action_space = gym.spaces.Discrete(2)
    def __init__(self, size=2):
        self.size = size
    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros(1, np.float32), {}
    def step(self, action):
        self.steps += 1
        return np.zeros(1, np.float32), float(self.size), self.steps == 4, False, {}

gym.register("here/Dot-v7", Dot, kwargs={"size": 5})
how = dict(updates=4, until_reward="off", display="quiet", settings={
    "learner.steps_per_update": 40, "learner.environments": 2, "train.every_s": 0.1})

if __name__ == "__main__":
    given = [(Dot, {"size": 3}), (lambda: Dot(size=4), None), ("here/Dot-v7", None)]
    which = int(sys.argv[1])
    env, options = given[which]
    where = {"local": True} if which else {"workers": 2}
    result = olaf.train(env, env_options=options, **where, **how)
    print(json.dumps([result.reward, str(result.folder), result.record["result"]["environment"]]))
"""


@pytest.mark.parametrize(
    ("which", "reward", "name"), [(0, 12, "Dot"), (1, 16, "environment"), (2, 20, "here/Dot-v7")]
)
def test_environments_of_a_script_are_trained_on_resumed_and_evaluated(
    tmp_path: Path, which: int, reward: float, name: str
) -> None:
    (tmp_path / "script.py").write_text(OWN)

    def python(*argv: str) -> str:
        ran = subprocess.run(
            [sys.executable, *argv],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    mean, folder, shown = json.loads(python("script.py", str(which)))
    assert (mean, shown) == (reward, name)
    moved = (tmp_path / folder).rename(tmp_path / "moved")
    told = ("-m", "olaf")
    found = json.loads(python(*told, "evaluate", str(moved), "--episodes=2", "--json"))
    assert found["mean"] == reward
    if which > 0:
        return
    again = python(*told, "train", "--resume", str(moved), "--updates=12", "--json")
    assert json.loads(again.splitlines()[-1])["reward"]["mean"] == reward


def test_an_environment_that_is_made_already_is_refused() -> None:
    import gymnasium as gym

    with gym.make("CartPole-v1") as env, pytest.raises(ValueError, match="give what makes it"):
        olaf.train(env, display="quiet")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="env does not go with resume"):
        olaf.train(lambda: None, resume="runs/latest", display="quiet")
