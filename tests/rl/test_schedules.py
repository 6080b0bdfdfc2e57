"""Schedules of the learning rate: their shape, Adam's use of them, the steps that they count."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from commands import olaf

from olaf.errors.usage import ConfigurationError
from olaf.jobs.reading import read_settings
from olaf.jobs.training import worker_job
from olaf.rl.learner import LearnerConfig, LearnerError
from olaf.rl.making import make_learner
from olaf.rl.schedules import rate
from olaf.rl.virtual_job import JobConfig, LocalJob

KINDS = ["numpy", pytest.param("torch", marks=pytest.mark.torch)]
LINEAR = LearnerConfig(
    environment="CartPole-v1",
    steps_per_update=128,
    schedule="linear",
    schedule_steps=1000,
    learning_rate=0.01,
)


def test_the_rate_falls_to_a_hundredth_and_stays_there() -> None:
    cosine = LINEAR.replaced(schedule="cosine")
    constant = LINEAR.replaced(schedule="constant", schedule_steps=None)
    for config in (LINEAR, cosine):
        assert rate(config, 0) == pytest.approx(0.01)
        assert rate(config, 500) == pytest.approx(0.01 * 0.505)
        assert rate(config, 1000) == rate(config, 7000) == pytest.approx(0.0001)
    assert rate(LINEAR, 250) == pytest.approx(0.01 * (0.01 + 0.99 * 0.75))
    quarter = (1 + np.cos(np.pi / 4)) / 2
    assert rate(cosine, 250) == pytest.approx(0.01 * (0.01 + 0.99 * quarter))
    assert rate(constant, 7000) == 0.01


def test_a_schedule_without_an_end_is_an_error_where_it_learns() -> None:
    learner = make_learner(LINEAR.replaced(schedule_steps=None))
    learner.collect()
    with pytest.raises(LearnerError, match=r"schedule = 'linear' needs an end.*--steps"):
        learner.learn()


@pytest.mark.parametrize("kind", KINDS)
def test_adam_s_step_has_the_rate_of_the_run_s_steps(kind: str) -> None:
    changes = []
    for steps in (0, 1000):
        config = LINEAR.replaced(learner=kind, minibatch=128, epochs=1)
        learner = make_learner(config)
        learner.steps_of_run = lambda steps=steps: steps  # type: ignore[misc]
        turn = learner.iterate()
        assert turn.losses["learning_rate"] == rate(config, steps)
        changes.append(np.concatenate([part.ravel() for part in turn.update]))
    np.testing.assert_allclose(changes[1], changes[0] / 100, atol=1e-7)


def test_a_learner_without_others_counts_its_own_steps() -> None:
    learner = make_learner(LINEAR)
    told = [learner.iterate().losses["learning_rate"] for _ in range(9)]
    assert told == [rate(LINEAR, 128 * turn) for turn in range(1, 10)]


def test_workers_in_virtual_time_count_the_steps_of_all() -> None:
    job = LocalJob(JobConfig(learner=LINEAR.replaced(schedule_steps=10_000), workers=3))
    steps = job.run(30).steps
    for loop in job._loops:
        assert loop._learner.steps_of_run() >= steps > 3 * 128


def test_the_run_s_budget_is_the_default_end() -> None:
    settings = read_settings(overrides=["learner.schedule=cosine", "train.steps=4000"])
    told = worker_job(settings, switch="", worker=0, cluster=0, seed=0).learner
    assert told["schedule_steps"] == 4000
    settings = read_settings(overrides=["learner.schedule=cosine", "learner.schedule_steps=7"])
    assert worker_job(settings, switch="", worker=0, cluster=0, seed=0).learner == {
        **told,
        "schedule_steps": 7,
    }
    with pytest.raises(ConfigurationError, match=r"learner.schedule.*needs an end.*--steps N"):
        read_settings(overrides=["learner.schedule=cosine"])


@pytest.mark.parametrize("how", [pytest.param("--workers=2", marks=pytest.mark.slow), "--local"])
def test_the_workers_of_a_run_and_of_its_resumption_share_one_schedule(
    tmp_path: Path, how: str
) -> None:
    def told(*argv: str) -> list[float]:
        done = olaf("train", "--until-reward=off", "--json", *argv)
        assert done.returncode == 0, done.stderr
        lines = (tmp_path / "run/history.jsonl").read_text().splitlines()
        losses = [json.loads(line).get("losses", {}) for line in lines]
        return [each["learning_rate"] for each in losses if each]

    schedule = "--set=learner.schedule=linear", "--set=train.every_s=0.1"
    first = told("--env=CartPole-v1", how, "--steps=12000", f"--out={tmp_path / 'run'}", *schedule)
    assert first[0] > 0.0011
    # A line has the newest report of any worker. Each worker goes down its own way, and one of two
    # may be a pass behind the other.
    behind = 2e-4 if how == "--workers=2" else 0.0
    assert all(after <= before + behind for before, after in itertools.pairwise(first)), first
    assert first[-1] < 0.0006
    again = told(f"--resume={tmp_path / 'run'}", "--steps=24000")[len(first) :]
    # Half of the longer schedule is over when the second session begins.
    assert max(again) < 0.0012
    assert min(again) < 0.0006
