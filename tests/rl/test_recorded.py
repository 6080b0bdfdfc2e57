"""Recorded turns: drawn by seed and worker, scaled by steps and epochs."""

import json
from dataclasses import replace

import numpy as np
import pytest

from olaf.rl.learner import LearnerConfig
from olaf.rl.recorded import (
    SHIPPED,
    Recorded,
    RecordedTurns,
    as_text,
    record,
    reread,
    shipped,
    written,
)

RECORD = {
    "cpu": "a processor",
    "recorded_at": "2026-01-01",
    "learner": {"epochs": 4},
}
TIMED: dict[str, list[float]] = {
    "steps": [100, 200],
    "collect_s": [1.0, 4.0],
    "learn_s": [0.8, 0.8],
}


def drawn(recorded: Recorded, seed: int, worker: int, steps: int = 100) -> list[tuple[float, ...]]:
    turns = recorded.turns(seed, worker)
    return [turns.next(steps) for _ in range(20)]


def test_a_turn_is_scaled_by_its_steps_and_the_epochs() -> None:
    recorded = reread(LearnerConfig(epochs=2), RECORD, TIMED)
    assert recorded.seconds(0, 100) == pytest.approx((1.0, 0.4))
    assert recorded.seconds(1, 400) == pytest.approx((8.0, 0.8))
    assert recorded.mean_s(100) == pytest.approx((1.4 + 2.2) / 2)
    assert recorded.source == {"cpu": "a processor", "recorded_at": "2026-01-01", "turns": 2}


def test_turns_are_drawn_by_seed_and_worker() -> None:
    recorded = reread(LearnerConfig(), RECORD, TIMED)
    assert set(drawn(recorded, 0, 0)) == {recorded.seconds(0, 100), recorded.seconds(1, 100)}
    assert drawn(recorded, 0, 0) == drawn(recorded, 0, 0)
    assert drawn(recorded, 0, 0) != drawn(recorded, 0, 1)
    assert drawn(recorded, 0, 0) != drawn(recorded, 1, 0)


@pytest.mark.parametrize("environment", SHIPPED)
def test_the_package_has_turns_of_the_default_learner(environment: str) -> None:
    recorded = shipped(LearnerConfig(environment=environment))
    assert recorded is not None
    assert len(recorded.turns_s) >= 50
    # A turn of 500 steps takes milliseconds, not seconds, and learning is a part of it.
    assert 0.003 < recorded.mean_s(500) < 0.2
    assert all(collect > 0 and learn > 0 for collect, learn in recorded.turns_s)
    assert {"cpu", "recorded_at", "clock"} <= set(recorded.source)


def test_it_has_none_of_learners_whose_steps_cost_otherwise() -> None:
    assert shipped(LearnerConfig(environment="MountainCar-v0")) is None
    assert shipped(LearnerConfig(hidden=(64, 64))) is None
    assert shipped(LearnerConfig(minibatch=32)) is None
    assert shipped(LearnerConfig(epochs=8, steps_per_update=250, learning_rate=1e-3)) is not None


def test_own_turns_are_timed_and_come_back_from_their_file() -> None:
    config = LearnerConfig(environment="CartPole-v1", steps_per_update=64, epochs=1)
    said: list[str] = []
    made = record([config], 2, said.append)
    assert said == ["CartPole-v1: 2 of 2 turns timed"]
    assert json.loads(as_text(made)) == json.loads(json.dumps(made))
    recorded = reread(config, made, made["environments"]["CartPole-v1"])
    assert isinstance(recorded.turns(0, 0), RecordedTurns)
    again = written(config, recorded)
    back = reread(config, again, again["environments"]["CartPole-v1"])
    np.testing.assert_allclose(back.turns_s, recorded.turns_s)
    assert replace(back, turns_s=recorded.turns_s) == recorded
