"""`olaf train --evaluate-every`: real processes, and what a user finds afterwards."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from small_runs import Olaf, apart

from olaf.files.modelfile import read_model
from olaf.report.page import run_page
from olaf.runs.evaluator import evaluation_seed
from olaf.runs.journal import read_journal


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Olaf:
    """A folder with ``runs/latest``: two workers, evaluated while they trained."""
    made = Olaf(tmp_path_factory.mktemp("evaluated"))
    apart(
        made.folder,
        *("train", "--env=CartPole-v1", "--workers=2", "--until-reward=off", "--updates=60"),
        *("--evaluate-every=20", "--set=train.evaluate_episodes=4", "--seed=3"),
        *("--set=learner.environments=2", "--set=learner.steps_per_update=400", "--json"),
    )
    return made


def record_of(olaf: Olaf) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((olaf.folder / "runs/latest/run.json").read_text())
    return record


def test_the_record_has_each_evaluation_and_the_best_of_them(evaluated: Olaf) -> None:
    record = record_of(evaluated)
    evaluations, found = record["evaluations"], record["result"]["evaluation"]
    assert found["count"] == len(evaluations) >= 2
    assert [one["version"] for one in evaluations] == sorted(one["version"] for one in evaluations)
    # The last one is of the model that the run ends with.
    assert evaluations[-1]["version"] == record["result"]["model"]["version"]
    assert evaluations[-1]["updates"] == record["result"]["updates"] == 60
    assert found["best"]["greedy"]["mean"] == max(one["greedy"]["mean"] for one in evaluations)
    assert {one[key]["episodes"] for one in evaluations for key in ("greedy", "sampled")} == {4}
    assert len(read_journal(evaluated.folder / "runs/latest").evaluations) == len(evaluations)


def test_best_npz_is_the_model_that_scored_that(evaluated: Olaf) -> None:
    found = record_of(evaluated)["result"]["evaluation"]
    seed = evaluation_seed(3)
    play = ("evaluate", "runs/latest", "--best", "--episodes=4", f"--seed={seed}")
    again = evaluated.json(*play)
    assert again["model"].endswith("best.npz")
    assert again["version"] == found["best"]["version"]
    assert again["mean"] == pytest.approx(found["best"]["greedy"]["mean"])
    arrays = read_model(evaluated.folder / "runs/latest/best.npz").arrays
    assert arrays["trunk0.weight"].shape == (4, 40)
    evaluated("export", "runs/latest", "--best", "--to=npz", "--out=best-policy.npz")
    assert (evaluated.folder / "best-policy.npz").exists()


def test_evaluations_have_seeds_of_their_own(evaluated: Olaf) -> None:
    assert len({evaluation_seed(seed) for seed in range(100)}) == 100
    # Neither the run's seed nor those of numbers near it.
    assert all(evaluation_seed(seed) > 10_000 for seed in range(100))


def test_the_report_draws_and_lists_them(evaluated: Olaf) -> None:
    record = record_of(evaluated)
    page = run_page(record)
    assert "Evaluations, and one standard deviation" in page
    assert page.count("the best, kept as best.npz") == 1
    without = run_page({**record, "evaluations": []})
    assert page.count("<svg") == without.count("<svg") + 1
    assert "Evaluations" not in re.sub(r"<pre>.*?</pre>", "", without, flags=re.DOTALL)


def test_a_run_without_evaluations_says_how_to_have_a_best_model(
    trained: Olaf, tmp_path: Path
) -> None:
    said = trained("evaluate", "runs/latest", "--best", code=2).stderr
    assert "has no best.npz: olaf train --evaluate-every N keeps one" in said
    said = trained("evaluate", "runs/latest/model.npz", "--best", code=2).stderr
    assert "--best: runs/latest/model.npz is a file; name the folder of its run" in said


CHATTY = """
import gymnasium as gym
import numpy as np


class Dot(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        print('{"event": "evaluated", "version": 1}')
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.zeros(2, np.float32), float(action), self.steps >= 9, False, {}
"""


@pytest.mark.parametrize("how", [["--local"], ["--transport=tcp", "--workers=2"]])
def test_every_kind_of_run_is_evaluated_whatever_its_environment_prints(
    tmp_path: Path, how: list[str]
) -> None:
    (tmp_path / "chatty.py").write_text(CHATTY)
    done = apart(
        tmp_path,
        *("train", "--env=chatty:Dot", "--until-reward=off", "--updates=30", *how),
        *("--evaluate-every=10", "--set=learner.steps_per_update=50", "--json"),
    )
    result = json.loads(done.stdout)
    assert result["updates"] == 30
    record = json.loads((tmp_path / "runs/latest/run.json").read_text())
    last = record["evaluations"][-1]
    assert last["version"] == result["model"]["version"]
    assert last["greedy"]["steps_mean"] == 9
    assert (
        read_model(tmp_path / "runs/latest/best.npz").version
        == (result["evaluation"]["best"]["version"])
    )
    assert not (tmp_path / "runs/latest/.evaluation").exists()


def test_a_server_that_cannot_write_its_model_costs_the_evaluations_alone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/.evaluation").write_text("a file where the folder would be")
    done = apart(
        tmp_path,
        *("train", "--env=CartPole-v1", "--workers=2", "--until-reward=off", "--updates=60"),
        *("--evaluate-every=10", "--set=learner.steps_per_update=50", "--out=run", "--json"),
    )
    result = json.loads(done.stdout)
    assert (result["updates"], result["restarts"]) == (60, {})
    record = json.loads((tmp_path / "run/run.json").read_text())
    said = [event["text"] for event in record["events"]]
    assert any("the model was not evaluated: " in text and "File exists" in text for text in said)
    assert sum("not evaluated" in text for text in said) <= 3
