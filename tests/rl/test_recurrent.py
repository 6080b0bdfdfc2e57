"""The network with a memory: what it solves; its sequences are the steps that were played."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from olaf.checkpoint import load
from olaf.errors.outcome import RunError
from olaf.files.modelfile import write_model
from olaf.rl.learner import LearnerConfig, LearnerError, named_parts
from olaf.rl.making import make_learner
from olaf.runs import exporting
from olaf.runs.evaluation import play

SMALL = LearnerConfig(
    environment=f"{__name__}:Recall",
    learner="torch",
    recurrent="lstm",
    memory=24,
    hidden=(24,),
    environments=8,
    steps_per_update=1024,
    minibatch=256,
    epochs=8,
    learning_rate=1e-2,
    discount=0.9,
)
pytestmark = pytest.mark.torch


class Recall(gym.Env[Any, Any]):
    """Shows one of four cues in the first step only; the last step's action must name it."""

    observation_space = spaces.Box(0, 1, (5,), np.float32)
    action_space = spaces.Discrete(4)
    steps = 6

    def _show(self) -> Any:
        seen = np.zeros(5, np.float32)
        seen[self._cue if self._step == 0 else 4] = 1
        return seen

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._cue, self._step = int(self.np_random.integers(4)), 0
        return self._show(), {}

    def step(self, action: Any) -> Any:
        self._step += 1
        is_last = self._step == self.steps
        reward = float(is_last and action == self._cue)
        return self._show(), reward, is_last, False, {}


class Cut(Recall):
    """The same, but each episode is cut, at lengths that differ."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        seen = super().reset(seed=seed)
        self.steps = int(self.np_random.integers(1, 9))
        return seen

    def step(self, action: Any) -> Any:
        seen, reward, over, _, info = super().step(action)
        return seen, reward, False, over, info


def reward_after(turns: int, **changes: Any) -> float:
    """Mean reward of greedy episodes after some turns."""
    learner: Any = make_learner(SMALL.replaced(**changes))
    for _ in range(turns):
        learner.iterate()
    played = list(play(learner, SMALL.environment, episodes=40, seed=5))
    return float(np.mean([episode.reward for episode in played]))


def test_a_cue_is_recalled_that_only_the_first_step_shows() -> None:
    assert reward_after(14) > 0.95


def test_without_a_memory_no_policy_does_better_than_chance() -> None:
    assert reward_after(14, recurrent="off", memory=64) < 0.5  # chance is 0.25


@pytest.mark.parametrize("name", ["Recall", "Cut"])
@pytest.mark.parametrize("episodes", [0, 9])
def test_sequences_are_the_steps_as_they_were_played(name: str, episodes: int) -> None:
    config = SMALL.replaced(environment=f"{__name__}:{name}", episodes_per_update=episodes)
    learner: Any = make_learner(config)
    for _ in range(3):  # memories go on across turns
        learner.collect()
        rollout = learner._turn.rollout
        # The same weights as those that collected: ratios are 1, and values those of a plain loop.
        values, following = plain_values(learner, rollout)
        batch = learner._batch(learner._turn)
        turns, count = rollout.rewards.shape
        rows = [row for piece in learner._pieces for row in piece.rows(count)]
        assert sorted(rows) == list(range(turns * count))
        np.testing.assert_allclose(batch.importance, 1, atol=1e-4)
        found, after = learner._replayed(
            rollout.observations.reshape(-1, learner.spaces.observation), rollout
        )
        np.testing.assert_allclose(found[:, -1].reshape(turns, count), values, atol=1e-5)
        alive = ~rollout.terminated
        np.testing.assert_allclose(after[alive], following[alive], atol=1e-5)
        learner.learn()
        assert learner.iterate().losses["kl"] < 0.1


def plain_values(learner: Any, rollout: Any) -> tuple[Any, Any]:
    """The values of each step, and of the state after it, one step at a time."""
    turns, count = rollout.rewards.shape
    memory = learner._memories[0].copy()
    values = np.zeros((turns + 1, count))
    following = np.zeros((turns, count))
    final = {(at, copy): seen for at, copy, seen in rollout.final}
    for turn in range(turns + 1):
        values[turn] = learner.policy(rollout.observations[turn], memory)[:, -1]
        if turn:
            following[turn - 1] = np.where(
                [(turn - 1, copy) in final for copy in range(count)],
                following[turn - 1],
                values[turn],
            )
        if turn < turns:
            for copy in range(count):
                if (turn, copy) in final:
                    seen, own = final[turn, copy][None], memory[copy : copy + 1].copy()
                    following[turn, copy] = learner.policy(seen, own)[0, -1]
            memory[rollout.terminated[turn] | rollout.truncated[turn]] = 0
    return values[:-1], following


def test_a_later_step_s_gradient_reaches_the_cue() -> None:
    learner: Any = make_learner(SMALL)
    learner.collect()
    learner._learn(learner._batch(learner._turn).some(np.array([0])), 1)
    gradients = dict(
        zip(learner.named_parts(), (tensor.grad for tensor in learner._tensors), strict=False)
    )
    assert all(float(gradient.abs().sum()) > 0 for gradient in gradients.values())
    assert learner.module.lstm.training  # without this, cuDNN refuses to go backwards


def test_a_policy_with_a_memory_is_exported_as_arrays_only(tmp_path: Path) -> None:
    learner: Any = make_learner(SMALL)
    write_model(tmp_path / "saved.npz", 7, named_parts(learner))
    saved = load(tmp_path / "saved.npz")
    for kind in ("onnx", "torchscript"):
        with pytest.raises(RunError, match=r"learner.recurrent = 'lstm'.*--to npz"):
            exporting.export(learner, saved, kind, tmp_path / "policy", {})
    exporting.export(learner, saved, "npz", tmp_path / "policy.npz", {})
    assert "lstm.weight_hh_l0" in load(tmp_path / "policy.npz").arrays


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learner": "numpy"}, r"recurrent = 'lstm' has no effect with learner = 'numpy'"),
        ({"module": "my:net"}, "a network of your own is called without a memory"),
        ({"recurrent": "off"}, r"memory = 24 .*set recurrent to lstm"),
        ({"memory": 0}, "memory = 0"),
        ({"recurrent": "gru"}, "one of off, lstm"),
    ],
)
def test_a_memory_that_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(LearnerError, match=message):
        SMALL.replaced(**change)
