"""The same seed gives the same model: first weights, the common start, synchronous runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import olaf

from olaf import checkpoint
from olaf.jobs.beginning import Beginning
from olaf.jobs.supervisor import Ended, Occurrence, Said


def joined(name: str) -> Occurrence:
    return Said(name, 1, {"event": "joined", "version": 1})


def test_workers_begin_when_all_have_joined_and_a_later_one_at_once() -> None:
    told: list[tuple[str, str]] = []
    beginning = Beginning(["worker 0", "worker 1"], lambda name, line: told.append((name, line)))
    beginning.take(joined("worker 1"))
    assert not told
    beginning.take(joined("worker 0"))
    assert told == [("worker 1", "begin"), ("worker 0", "begin")]
    beginning.take(joined("worker 1"))  # it died, and is back
    assert told[2:] == [("worker 1", "begin")]


def test_nobody_waits_for_a_worker_that_will_not_come() -> None:
    told: list[str] = []
    beginning = Beginning(["worker 0", "worker 1"], lambda name, line: told.append(name))
    beginning.take(joined("worker 0"))
    beginning.take(Ended("worker 1", 1, 1, expected=False, back_in_s=0.2))
    assert not told
    beginning.take(Ended("worker 1", 2, 1, expected=False, back_in_s=None))
    assert told == ["worker 0"]


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("learner", ["numpy", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_synchronous_run_of_two_workers_gives_the_same_model_twice(
    tmp_path: Path, learner: str
) -> None:
    models = []
    for which in ("first", "second"):
        done = olaf(
            "train",
            "--env=CartPole-v1",
            "--aggregate=round",
            "--workers=2",
            "--updates=20",
            "--until-reward=off",
            "--seed=3",
            "--set=server.aggregate_ms=20000",  # no round ends without a worker on a busy machine
            f"--learner={learner}",
            f"--out={tmp_path / which}",
            "--json",
            timeout_s=190,  # torch is slow to start
        )
        assert done.returncode == 0, done.stderr
        models.append(checkpoint.load(tmp_path / which / "model.npz"))
    one, other = models
    assert one.version == other.version
    assert np.array_equal(one.parameters, other.parameters)
