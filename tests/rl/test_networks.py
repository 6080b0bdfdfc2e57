"""The default network of the torch learner for images."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from olaf.checkpoint import load
from olaf.files.modelfile import write_model
from olaf.rl.environments import UnusableEnvironmentError
from olaf.rl.learner import LearnerConfig, named_parts
from olaf.rl.making import make_learner
from olaf.runs import exporting

SMALL = LearnerConfig(
    environment=f"{__name__}:Spot",
    learner="torch",
    steps_per_update=256,
    minibatch=64,
    epochs=6,
    learning_rate=3e-3,
    discount=0.5,
)
SHAPES = [(84, 84, 4), (4, 84, 84), (36, 40, 3), (10, 10, 4), (8, 8), (5, 7, 3), (1, 2, 1)]


class Spot(gym.Env[Any, Any]):
    """A bright spot in one quarter of the image; the action names the quarter."""

    observation_space: Any = spaces.Box(0, 255, (8, 8, 1), np.uint8)
    action_space = spaces.Discrete(4)

    def _show(self) -> Any:
        self._quarter = int(self.np_random.integers(4))
        image = self.np_random.integers(60, size=(8, 8, 1), dtype=np.uint8)
        row, column = self.np_random.integers(4, size=2)
        image[row + 4 * (self._quarter // 2), column + 4 * (self._quarter % 2)] = 255
        return image

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._left = 10
        return self._show(), {}

    def step(self, action: Any) -> Any:
        reward = float(action == self._quarter)
        self._left -= 1
        return self._show(), reward, self._left == 0, False, {}


class Shaped(Spot):
    """Images of a shape that a test sets."""

    def _show(self) -> Any:
        self._quarter = 0
        return self.np_random.integers(256, size=self.observation_space.shape, dtype=np.uint8)


def test_the_numpy_learner_names_the_learner_with_convolutions() -> None:
    with pytest.raises(UnusableEnvironmentError, match=r"\(8, 8, 1\).*--learner torch"):
        make_learner(SMALL.replaced(learner="numpy"))


@pytest.mark.torch
def test_an_image_is_learnt_without_a_module_of_ones_own() -> None:
    learner: Any = make_learner(SMALL)
    before = learner.iterate().reward
    for _ in range(7):
        after = learner.iterate().reward
    assert before < 4  # of 10; chance is 2.5
    assert after > 8.5


@pytest.mark.torch
@pytest.mark.parametrize("shape", SHAPES)
def test_images_of_every_size_and_axis_order_fit(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shaped, "observation_space", spaces.Box(0, 255, shape, np.uint8))
    config = SMALL.replaced(environment=f"{__name__}:Shaped", steps_per_update=16, epochs=1)
    learner: Any = make_learner(config)
    turn = learner.iterate()
    assert turn.steps == 16
    assert any(np.abs(part).sum() > 0 for part in turn.update)
    arrays = named_parts(learner)
    channels = shape[0] if shape[0] == 4 else shape[2] if len(shape) == 3 else 1
    first = arrays["trunk.1.weight"].shape
    assert first[1] == channels
    if min(sorted(shape)[-2:]) >= 36:
        assert first == (32, channels, 8, 8)  # as in Mnih et al. 2015
        assert arrays["trunk.3.weight"].shape == (64, 32, 4, 4)


@pytest.mark.torch
def test_all_workers_begin_with_the_same_weights_of_the_seed() -> None:
    one, other, second = (
        make_learner(SMALL.replaced(seed=seed), worker) for seed, worker in ((1, 0), (1, 1), (2, 0))
    )
    same = zip(one.parts(), other.parts(), strict=True)
    assert all((a == b).all() for a, b in same)
    assert any((a != b).any() for a, b in zip(one.parts(), second.parts(), strict=True))


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["torchscript", "onnx"])
def test_the_network_is_exported(kind: str, tmp_path: Path) -> None:
    learner: Any = make_learner(SMALL)
    learner.iterate()
    write_model(tmp_path / "saved.npz", 7, named_parts(learner))
    saved = load(tmp_path / "saved.npz")
    done = exporting.export(learner, saved, kind, tmp_path / f"policy.{kind}", {})
    assert done.difference < 1e-4
