"""The run without a network, in real processes."""

import json
import sys

import pytest

from olaf.rl import baseline
from olaf.rl.learner import LearnerConfig


def test_it_counts_every_worker_s_steps() -> None:
    config = LearnerConfig(environment="CartPole-v1", steps_per_update=64, environments=2)
    measured = baseline.measure(config, workers=2, updates=3)
    assert measured.steps == 2 * 3 * 64
    assert measured.steps_per_s == pytest.approx(measured.steps / measured.wall_s)
    assert measured.cpu_s > 0


def test_it_prints_one_line_of_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["baseline", "--env", "CartPole-v1", "--workers", "1", "--updates", "1"]
    )
    baseline.main()
    printed = json.loads(capsys.readouterr().out)
    assert printed["environment"] == "CartPole-v1"
    assert printed["steps"] == LearnerConfig().steps_per_update


def test_an_unknown_environment_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["baseline", "--env", "CartPoel-v1"])
    with pytest.raises(SystemExit):
        baseline.main()
    assert "CartPole-v1" in capsys.readouterr().err
