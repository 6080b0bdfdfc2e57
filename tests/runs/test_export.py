"""`olaf export`: each kind of file gives what the learner gives, on observations of our own."""

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import onnx
import onnxruntime
import pytest
from gymnasium import spaces
from small_runs import Olaf, observations

from olaf import checkpoint
from olaf.errors.outcome import RunError
from olaf.files.modelfile import write_model
from olaf.rl.learner import LearnerConfig, named_parts
from olaf.rl.ppo_numpy import NumpyLearner
from olaf.runs import exporting


class Bounds(gym.Env[Any, Any]):
    """Actions with every kind of bounds, whole ones, or several choices."""

    observation_space = spaces.Box(-1, 1, (3,), np.float32)

    def __init__(self, whole: bool = False, choices: Any = None, **_: Any) -> None:
        low, high = np.array([0, -np.inf, -2, -np.inf]), np.array([np.inf, 0, 1, np.inf])
        self.action_space: spaces.Space[Any] = spaces.Box(
            low.astype(np.float32), high.astype(np.float32)
        )
        if whole:
            self.action_space = spaces.Box(-3, 9, (2, 2), np.int64)
        if choices is not None:
            self.action_space = choices

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(3, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(3, np.float32), 0.0, False, False, {}


gym.register("OlafBounds-v0", Bounds)
gym.register("OlafWhole-v0", Bounds, kwargs={"whole": True})
CHOICES: dict[str, Any] = {
    "OlafLevers-v0": spaces.MultiDiscrete(
        np.array([[2, 3], [4, 1]]), start=np.array([[0, 1], [0, -2]])
    ),
    "OlafBits-v0": spaces.MultiBinary(3),
}
for made, choices in CHOICES.items():
    gym.register(made, Bounds, kwargs={"choices": choices})
NAMES = ["CartPole-v1", "Pendulum-v1", "OlafBounds-v0", "OlafWhole-v0", *CHOICES]


def learner_of(name: str = "CartPole-v1") -> NumpyLearner:
    learner = NumpyLearner(LearnerConfig(environment=name, hidden=(8, 8), environments=1, seed=3))
    rng = np.random.default_rng(4)  # first weights of the heads are almost nothing: larger ones
    learner.weights += rng.standard_normal(learner.weights.shape).astype(np.float32) * 0.3
    return learner


def saved_of(learner: NumpyLearner, folder: Path) -> checkpoint.Checkpoint:
    write_model(folder / "saved.npz", 7, named_parts(learner))
    return checkpoint.load(folder / "saved.npz")


@pytest.mark.parametrize("name", NAMES)
def test_an_onnx_file_gives_what_the_learner_gives(tmp_path: Path, name: str) -> None:
    learner = learner_of(name)
    file = tmp_path / "policy.onnx"
    done = exporting.export(
        learner, saved_of(learner, tmp_path), "onnx", file, {"environment": name}
    )
    assert done.difference < 1e-4
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    seen = observations(33, learner.spaces.observation)
    action, policy, value = session.run(["action", "policy", "value"], {"observation": seen})
    own = learner.policy(seen)
    np.testing.assert_allclose(policy, own[:, :-1], atol=1e-5)
    np.testing.assert_allclose(value[:, 0], own[:, -1], atol=1e-5)
    np.testing.assert_allclose(action, np.array(learner.greedy(seen)), atol=1e-5)
    about = {entry.key: entry.value for entry in onnx.load(str(file)).metadata_props}
    assert about["environment"] == name
    assert json.loads(about["observation_shape"]) == [learner.spaces.observation]


def test_arrays_have_names_and_shapes_and_need_no_olaf(tmp_path: Path) -> None:
    learner = learner_of()
    file = tmp_path / "policy.npz"
    exporting.export(learner, saved_of(learner, tmp_path), "npz", file, {"environment": "here"})
    with np.load(file) as arrays:
        hidden = seen = observations(5, 4)
        for layer in range(2):
            weight, bias = arrays[f"trunk{layer}.weight"], arrays[f"trunk{layer}.bias"]
            hidden = np.tanh(hidden @ weight + bias)
        outputs = hidden @ arrays["heads.weight"] + arrays["heads.bias"]
    np.testing.assert_allclose(outputs, learner.policy(seen), atol=1e-5)
    assert checkpoint.load(file).metadata["environment"] == "here"
    assert checkpoint.load(file).version == 7


@pytest.mark.torch
@pytest.mark.parametrize("name", NAMES)
def test_a_torchscript_file_gives_what_the_learner_gives(tmp_path: Path, name: str) -> None:
    import torch

    learner = learner_of(name)
    file = tmp_path / "policy.pt"
    exporting.export(
        learner, saved_of(learner, tmp_path), "torchscript", file, {"environment": name}
    )
    extra = {"olaf.json": ""}
    jit: Any = torch.jit
    policy = jit.load(str(file), _extra_files=extra)
    seen = observations(33, learner.spaces.observation)
    action, means, value = policy(torch.from_numpy(seen))
    own = learner.policy(seen)
    np.testing.assert_allclose(means.detach().numpy(), own[:, :-1], atol=1e-5)
    np.testing.assert_allclose(value.detach().numpy()[:, 0], own[:, -1], atol=1e-5)
    np.testing.assert_allclose(action.detach().numpy(), np.array(learner.greedy(seen)), atol=1e-5)
    assert json.loads(extra["olaf.json"])["environment"] == name


NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, observations, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(observations, 16), nn.ReLU())
        self.policy = nn.Linear(16, actions)
        self.value = nn.Linear(16, 1)

    def forward(self, seen):
        hidden = self.body(seen)
        return self.policy(hidden), self.value(hidden)

def make(observations, actions, continuous):
    return Net(observations, actions)
"""


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["onnx", "torchscript", "npz"])
def test_a_network_of_ones_own_is_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    from olaf.rl.ppo_torch import TorchLearner

    (tmp_path / "net_for_export.py").write_text(NET)
    monkeypatch.chdir(tmp_path)
    learner = TorchLearner(
        LearnerConfig(
            environment="CartPole-v1", learner="torch", module="net_for_export:make", environments=1
        )
    )
    assert list(named_parts(learner)) == [
        "body.0.weight",
        "body.0.bias",
        *(f"{head}.{part}" for head in ("policy", "value") for part in ("weight", "bias")),
    ]
    file = tmp_path / f"policy{exporting.KINDS[kind]}"
    done = exporting.export(learner, saved_of(learner, tmp_path), kind, file, {})
    assert done.difference < 1e-5
    if kind == "onnx":
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        seen = observations(9, 4)
        policy, value = session.run(["policy", "value"], {"observation": seen})
        own = learner.policy(seen)
        np.testing.assert_allclose(policy, own[:, :-1], atol=1e-5)
        np.testing.assert_allclose(value[:, 0], own[:, -1], atol=1e-5)


NORMALISED = LearnerConfig(
    environment="CartPole-v1",
    hidden=(8, 8),
    environments=1,
    normalise="on",
    scales=(0.0, 64.0, 1000.0, 0.25, 0.0, 1.0, -8.0, 2.0),
)


@pytest.mark.parametrize(
    "kind", ["npz", "onnx", pytest.param("torchscript", marks=pytest.mark.torch)]
)
def test_a_policy_that_normalises_its_observations_does_so_everywhere(
    tmp_path: Path, kind: str
) -> None:
    learner = NumpyLearner(NORMALISED)
    learner.weights[:] = np.random.default_rng(4).standard_normal(learner.weights.shape)
    scaled = observations(33, 4) * [64, 0.25, 1, 2] + [10, 1000, 0, -8]
    seen = scaled.astype(np.float32)
    moments = learner._carried.observations
    assert moments is not None
    moments.array += moments.of(seen[:20], turns=3)
    file = tmp_path / f"policy{exporting.KINDS[kind]}"
    done = exporting.export(learner, saved_of(learner, tmp_path), kind, file, {})
    assert done.difference < 1e-4
    own = learner.policy(seen)
    if kind == "npz":
        with np.load(file) as arrays:
            told = checkpoint.load(file).metadata["normalisation"]
            hidden = np.clip((seen - told["shift"]) * told["factor"], -told["limit"], told["limit"])
            for layer in range(2):
                weight, bias = arrays[f"trunk{layer}.weight"], arrays[f"trunk{layer}.bias"]
                hidden = np.tanh(hidden @ weight + bias)
            policy = (hidden @ arrays["heads.weight"] + arrays["heads.bias"])[:, :-1]
    elif kind == "onnx":
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        (policy,) = session.run(["policy"], {"observation": seen})
    else:
        import torch

        jit: Any = torch.jit
        policy = jit.load(str(file))(torch.from_numpy(seen))[1].detach().numpy()
    np.testing.assert_allclose(policy, own[:, :-1], atol=1e-3)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["onnx", "torchscript"])
def test_a_network_of_ones_own_gets_normalised_observations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    from olaf.rl.ppo_torch import TorchLearner

    (tmp_path / "net_normalised.py").write_text(NET)
    monkeypatch.chdir(tmp_path)
    own = {"learner": "torch", "module": "net_normalised:make", "hidden": (40, 40)}
    learner = TorchLearner(NORMALISED.replaced(**own))
    far = np.array([[1000, 1000, 0, 0]], np.float32)
    seen = torch_outputs(learner, np.clip((far - [0, 1000, 0, -8]) / [64, 0.25, 1, 2], -10, 10))
    np.testing.assert_allclose(learner.policy(far), seen, atol=1e-5)
    file = tmp_path / f"policy{exporting.KINDS[kind]}"
    assert exporting.export(learner, saved_of(learner, tmp_path), kind, file, {}).difference < 1e-4


def torch_outputs(learner: Any, seen: Any) -> Any:
    """What the network itself makes of these inputs."""
    return learner._outputs(seen.astype(np.float32))


def test_a_file_that_differs_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = learner_of()
    write = exporting._onnx_of_layout

    def wrong(given: Any, half: Path, about: dict[str, Any]) -> None:
        weights = given.weights.copy()
        given.weights[-3:] += 0.5
        write(given, half, about)
        given.weights[:] = weights

    monkeypatch.setattr(exporting, "_onnx_of_layout", wrong)
    saved = saved_of(learner, tmp_path)
    with pytest.raises(RunError, match="differs from the learner's own by"):
        exporting.export(learner, saved, "onnx", tmp_path / "policy.onnx", {})
    assert [path.name for path in tmp_path.iterdir()] == ["saved.npz"]


def test_the_command_writes_beside_the_model_and_says_the_difference(trained: Olaf) -> None:
    done = trained.json("export", "runs/latest", "--to=onnx")
    assert Path(done["file"]).name == "policy.onnx"
    assert (trained.folder / done["file"]).stat().st_size == done["bytes"]
    said = trained("export", "runs/latest", "--to=npz", "--out=deep/mine.npz").stdout
    assert "largest difference from the learner 0" in said
    assert (trained.folder / "deep" / "mine.npz").exists()
    # What was exported is a model again.
    played = trained.json("evaluate", "deep/mine.npz", "--env=CartPole-v1", "--episodes=2")
    assert played["rewards"] == trained.json("evaluate", "runs/latest", "--episodes=2")["rewards"]


def test_the_model_itself_is_not_overwritten(trained: Olaf) -> None:
    before = (trained.folder / "runs" / "latest" / "model.npz").read_bytes()
    said = trained("export", "runs/latest", "--to=npz", "--out=runs/latest/model.npz", code=2)
    assert "the model itself" in said.stderr
    assert (trained.folder / "runs" / "latest" / "model.npz").read_bytes() == before


def test_a_missing_extra_is_named(trained: Olaf, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    said = trained("export", "runs/latest", "--to=onnx", "--out=no.onnx", code=2).stderr
    assert "--to onnx needs onnxruntime" in said
    assert "scripts/env onnx" in said
    assert not (trained.folder / "no.onnx").exists()
