"""Weights and updates that are not finite are neither sent nor saved nor played."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from olaf import checkpoint
from olaf.errors.outcome import RunError
from olaf.files.modelfile import NotFiniteError, read_model, write_model
from olaf.rl import LearnerConfig, LearnerError, make_learner

KINDS = ["numpy", pytest.param("torch", marks=pytest.mark.torch)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gradient_kind", ["accumulated", "gradient"])
def test_an_update_that_is_not_finite_is_an_error_that_names_the_array(
    kind: str, gradient_kind: Any
) -> None:
    config = LearnerConfig(
        environment="CartPole-v1",
        learner=kind,
        gradient_kind=gradient_kind,
        steps_per_update=128,
    )
    learner: Any = make_learner(config)
    learner.collect()
    learner.named_parts()["heads.bias"][-1] = np.nan
    with pytest.raises(LearnerError, match=r"update of '.*' is not finite.*learning_rate"):
        learner.learn()


def test_a_large_update_is_none() -> None:
    learner: Any = make_learner(LearnerConfig(environment="CartPole-v1", steps_per_update=128))
    learner.collect()
    learn = learner._learn

    def large(batch: Any, passes: int) -> Any:
        (update,), losses = learn(batch, passes)
        return [np.full_like(update, 1e30)], losses

    learner._learn = large
    assert learner.learn().update[0].max() == np.float32(1e30)


def test_a_model_that_is_not_finite_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "model.npz"
    good = {"heads.bias": np.ones(3, np.float32)}
    write_model(file, 1, good)
    bad = {**good, "log_std": np.array([0, np.nan, np.inf], np.float32)}
    with pytest.raises(NotFiniteError, match=r"'log_std' has 2 of 3 values .* \(nan\)"):
        write_model(file, 2, bad)
    assert checkpoint.load(file).version == 1
    assert list(tmp_path.iterdir()) == [file]


def test_a_model_that_is_not_finite_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "model.npz"
    np.savez(file, version=3, parameters=np.array([1, np.inf], np.float32))
    with pytest.raises(RunError, match=r"not a finite model.*'parameters'.*\(inf\)"):
        read_model(file)
