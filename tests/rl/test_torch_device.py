"""Where the torch learner's network is. A stand-in takes CPU tensors for a GPU's."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from olaf.rl.learner import LearnerConfig, LearnerError
from olaf.rl.making import make_learner

SMALL = LearnerConfig(
    environment="CartPole-v1", steps_per_update=256, minibatch=64, learner="torch"
)


class Everything:
    """Takes every tensor for remote; copies at once."""

    def __init__(self) -> None:
        self.copies = 0

    def is_remote(self, item: object) -> bool:
        return True

    def buffer(self, like: Any) -> Any:
        return importlib.import_module("torch").full(tuple(like.shape), float("nan"))

    def start(self, into: Any, source: Any) -> None:
        self.copies += 1
        into.copy_(source)

    def mark(self, tensors: object) -> Any:
        return self

    def synchronize(self) -> None:
        pass


def test_the_device_is_checked_by_name() -> None:
    with pytest.raises(LearnerError, match="device = 'tpu': one of auto, cpu, cuda"):
        SMALL.replaced(device="tpu")
    with pytest.raises(LearnerError, match="needs learner = 'torch'"):
        SMALL.replaced(device="cuda", learner="numpy")


@pytest.mark.torch
def test_workers_are_dealt_to_the_gpus_and_auto_follows_the_factory() -> None:
    torch = importlib.import_module("torch")
    placed = importlib.import_module("olaf.rl.own_module").placed
    here, gpu = torch.device("cpu"), torch.device("cuda", 1)
    assert [placed("cuda", {here}, "net", worker, 2).index for worker in range(4)] == [0, 1, 0, 1]
    assert placed("auto", {gpu}, "net", 0, 2) == gpu
    assert placed("cpu", {gpu}, "net", 0, 2) == here
    with pytest.raises(LearnerError, match="one network needs one device"):
        placed("auto", {here, gpu}, "net", 0, 2)
    with pytest.raises(LearnerError, match="torch sees no GPU"):
        placed("cuda", {here}, "net", 0, 0)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
@pytest.mark.parametrize("kind", ["accumulated", "gradient"])
def test_a_network_elsewhere_learns_the_same(
    monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    """The same turns with the weights beside the network as with the weights in it."""
    torch_learner = importlib.import_module("olaf.rl.ppo_torch").TorchLearner
    staging = importlib.import_module("olaf.memory.staging").Staging
    config = SMALL.replaced(environment=name, gradient_kind=kind)
    here, transfers = make_learner(config), Everything()
    monkeypatch.setattr(torch_learner, "_beside", lambda self: staging(transfers))
    there: Any = make_learner(config)
    for part, tensor in zip(there.parts(), there._tensors, strict=True):
        assert not np.shares_memory(part, tensor.detach().numpy())
    for turn in range(2):
        one, other = here.iterate(), there.iterate()
        assert one.episode_rewards == other.episode_rewards
        for mine, yours in zip(one.update, other.update, strict=True):
            np.testing.assert_array_equal(mine, yours)
        for mine, yours in zip(here.parts(), there.parts(), strict=True):
            np.testing.assert_array_equal(mine, yours)
            # What the network brings: both begin the next turn with it.
            for part in (mine, yours):
                np.add(part, np.float32(0.01 * (turn + 1)), out=part)
    assert transfers.copies > 0


@pytest.mark.torch
def test_on_a_gpu_the_learner_learns() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        with pytest.raises(LearnerError, match="torch sees no GPU"):
            make_learner(SMALL.replaced(device="cuda"))
        pytest.skip("no GPU here")
    learner: Any = make_learner(SMALL.replaced(device="cuda"))
    before = [part.copy() for part in learner.parts()]
    learner.iterate()
    assert learner._tensors[0].is_cuda
    assert max(np.abs(a - b).max() for a, b in zip(before, learner.parts(), strict=True)) > 0
