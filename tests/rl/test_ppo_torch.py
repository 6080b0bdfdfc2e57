"""The torch learner, and the embedded one's gradients against torch's."""

import importlib
import sys
from typing import Any

import numpy as np
import pytest

from olaf.rl.actor_critic import Layout
from olaf.rl.distributions import log_probability
from olaf.rl.learner import LearnerConfig, LearnerError, named_parts
from olaf.rl.making import make_learner
from olaf.rl.objective import Batch, objective
from olaf.rl.ppo_numpy import NumpyLearner
from olaf.rl.virtual_job import JobConfig, LocalJob
from olaf.rl.worker_loop import LoopConfig

SMALL = LearnerConfig(
    environment="CartPole-v1", steps_per_update=256, minibatch=64, learner="torch"
)


def test_without_torch_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "olaf.rl.ppo_torch", raising=False)
    monkeypatch.delattr("olaf.rl.ppo_torch", raising=False)
    with pytest.raises(LearnerError, match=r"needs torch, .*run `scripts/env torch`"):
        make_learner(SMALL)


def test_the_embedded_learner_never_imports_torch() -> None:
    import subprocess

    code = "import sys, olaf.rl.ppo_numpy, olaf.rl.virtual_job; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.torch
@pytest.mark.parametrize("continuous", [False, True])
def test_the_embedded_gradient_is_torch_s(continuous: bool) -> None:
    """Autograd over the formulas of the papers, written once more with torch's own functions."""
    import torch

    from olaf.rl.networks import ActorCritic

    layout, rng = Layout(5, (7, 6), 3, continuous), np.random.default_rng(8)
    weights = (0.5 * rng.standard_normal(layout.size)).astype(np.float32)
    module = ActorCritic(layout, weights).double()
    seen, advantages, returns = rng.standard_normal((40, 5)), *rng.standard_normal((2, 40))
    policy, value = module(torch.from_numpy(seen))
    if continuous:
        actions: Any = rng.standard_normal((40, 3))
        made: Any = torch.distributions.Normal(policy, module.log_std.exp())
        logp, entropy = made.log_prob(torch.from_numpy(actions)).sum(1), made.entropy().sum(1)
    else:
        actions = rng.integers(3, size=40)
        made = torch.distributions.Categorical(logits=policy)
        logp, entropy = made.log_prob(torch.from_numpy(actions)), made.entropy()
    old = logp.detach() + torch.from_numpy(rng.normal(0, 0.3, 40))
    ratio, gain = (logp - old).exp(), torch.from_numpy(advantages)
    surrogate = torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain)
    error = torch.nn.functional.mse_loss(value, torch.from_numpy(returns))
    loss = -surrogate.mean() + 0.5 * 0.5 * error - 0.03 * entropy.mean()
    loss.backward()

    config = LearnerConfig(entropy=0.03, value=0.5, clip=0.2)
    gradient = np.zeros(layout.size)
    batch = Batch(seen, actions, old.numpy(), advantages, returns, np.ones_like(advantages))
    losses = objective(layout, weights.astype(np.float64), batch, config, gradient)
    assert losses["loss"] == pytest.approx(float(loss.detach()))
    assert module.flat.grad is not None
    np.testing.assert_allclose(gradient, module.flat.grad.numpy(), atol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "LunarLander-v3"])
def test_torchrl_and_the_embedded_learner_walk_the_same_way(name: str) -> None:
    """Same seed, same first weights, same experience: after one update, the same weights."""
    # Small steps with momentum: without it Adam's first step is a sign, which rounding may flip.
    config = SMALL.replaced(environment=name, learning_rate=3e-4, adam_beta1=0.9)
    torch_learner = make_learner(config)
    embedded = make_learner(config.replaced(learner="numpy"))
    assert isinstance(embedded, NumpyLearner)
    # The torch learner draws one number more; from here on both draw the same.
    embedded.weights[...] = torch_learner.parts()[0]
    embedded._rng.bit_generator.state = torch_learner._rng.bit_generator.state  # type: ignore[attr-defined]
    one, two = torch_learner.iterate(), embedded.iterate()
    assert one.episode_rewards == two.episode_rewards
    assert one.losses.keys() == two.losses.keys()
    for key, value in two.losses.items():
        assert one.losses[key] == pytest.approx(value, rel=1e-2, abs=1e-3)
    away = np.abs(two.update[0]).max()
    np.testing.assert_allclose(one.update[0], two.update[0], atol=0.02 * away)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_a_module_of_the_user_s_own_learns_in_a_job(name: str) -> None:
    config = SMALL.replaced(environment=name, module=f"{__name__}:tower", learning_rate=1e-3)
    learner = make_learner(config)
    assert len(learner.parts()) == (9 if name == "Pendulum-v1" else 8)
    assert learner.parameters == sum(part.size for part in learner.parts())
    loop = LoopConfig(push_every="turn")
    outcome = LocalJob(JobConfig(learner=config, loop=loop, workers=2)).run(40)
    assert outcome.applied == 40
    if name == "CartPole-v1":
        assert outcome.reward > outcome.curve[0][2] + 20
    assert np.isfinite(outcome.weights).all()


@pytest.mark.torch
def test_the_weights_have_the_modules_names_or_those_of_the_layout() -> None:
    own = named_parts(make_learner(SMALL.replaced(module=f"{__name__}:tower")))
    assert own["policy.0.weight"].shape == (32, 4)
    default, embedded = (
        make_learner(SMALL.replaced(learner=which)) for which in ("torch", "numpy")
    )
    assert named_parts(default).keys() == named_parts(embedded).keys()


@pytest.mark.torch
def test_workers_of_both_kinds_speak_of_the_same_model() -> None:
    embedded, other = make_learner(SMALL.replaced(learner="numpy")), make_learner(SMALL)
    other.parts()[0][...] = embedded.parts()[0]
    assert isinstance(embedded, NumpyLearner)
    assert isinstance(other, NumpyLearner)
    seen = np.random.default_rng(9).standard_normal((6, 4)).astype(np.float32)
    np.testing.assert_allclose(embedded._outputs(seen), other._outputs(seen), atol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("nothing", "package.module:factory"),
        ("no_such_home:tower", "no_such_home"),
        (f"{__name__}:no_such_tower", "has no 'no_such_tower'"),
        (f"{__name__}:not_a_module", "not a torch.nn.Module"),
        (f"{__name__}:double", "torch.float64"),
        (f"{__name__}:headless", r"must give \(policy, value\)"),
        (f"{__name__}:narrow", r"policy \(2, 1\)"),
        (f"{__name__}:fixed", "log_std"),
        (f"{__name__}:batch_norm", r"changes the buffer '0.running_var'.*LayerNorm"),
        (f"{__name__}:batch_norm_of_now", "depends on the others of its batch.*LayerNorm"),
    ],
)
def test_a_module_that_will_not_do_says_why(module: str, message: str) -> None:
    with pytest.raises(LearnerError, match=message):
        make_learner(SMALL.replaced(environment="Pendulum-v1", module=module))


def tower(observations: int, actions: int, continuous: bool) -> Any:
    """Two separate networks, as users like to have them."""
    nn = importlib.import_module("torch.nn")
    torch = importlib.import_module("torch")

    class Tower(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.policy, self.value = (
                nn.Sequential(nn.Linear(observations, 32), nn.Tanh(), nn.Linear(32, width))
                for width in (actions, 1)
            )
            if continuous:
                self.log_std = nn.Parameter(torch.zeros(actions))

        def forward(self, seen: Any) -> Any:
            return self.policy(seen), self.value(seen)

    return Tower()


def not_a_module(observations: int, actions: int, continuous: bool) -> Any:
    return 5


def double(observations: int, actions: int, continuous: bool) -> Any:
    return tower(observations, actions, continuous).double()


def headless(observations: int, actions: int, continuous: bool) -> Any:
    return importlib.import_module("torch.nn").Linear(observations, actions)


def narrow(observations: int, actions: int, continuous: bool) -> Any:
    made = tower(observations, actions, continuous)
    made.value = importlib.import_module("torch.nn").Linear(observations, 3)
    return made


def fixed(observations: int, actions: int, continuous: bool) -> Any:
    return tower(observations, actions, False)


def with_first(first: Any, observations: int, actions: int) -> Any:
    """A network that begins with this layer."""
    import torch
    from torch import nn

    class Heads(nn.Module):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.policy, self.value = nn.Linear(16, actions), nn.Linear(16, 1)

        def forward(self, hidden: Any) -> Any:
            return self.policy(hidden), self.value(hidden)

    made = nn.Sequential(first, nn.Linear(observations, 16), nn.Dropout(0.5), Heads())
    made.log_std = nn.Parameter(torch.zeros(actions))
    return made


def batch_norm(observations: int, actions: int, continuous: bool) -> Any:
    from torch import nn

    return with_first(nn.BatchNorm1d(observations), observations, actions)


def batch_norm_of_now(observations: int, actions: int, continuous: bool) -> Any:
    from torch import nn

    first = nn.BatchNorm1d(observations, track_running_stats=False)
    return with_first(first, observations, actions)


def dropping(observations: int, actions: int, continuous: bool) -> Any:
    from torch import nn

    return with_first(nn.LayerNorm(observations), observations, actions)


@pytest.mark.torch
def test_a_network_with_dropout_plays_one_policy_everywhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = SMALL.replaced(environment="CartPole-v1", module=f"{__name__}:dropping")
    learner: Any = make_learner(config)
    seen = np.random.default_rng(2).standard_normal((5, 4)).astype(np.float32)
    assert (learner.policy(seen) == learner.policy(seen)).all()
    learner.collect()
    ratio: list[float] = []
    backward = learner._backward

    def first(batch: Any) -> Any:
        now = learner._outputs(batch.observations)
        logs = log_probability(now[:, :-1], batch.actions, None)
        ratio.append(float(np.abs(logs - batch.log_probabilities).max()))
        losses = backward(batch)
        ratio.append(abs(losses["kl"]))
        return losses

    learner._backward = first
    learner.learn()
    # The learning pass begins with the policy that collected.
    assert max(ratio[:2]) < 1e-5
    assert not learner.module.training
    make_learner(config, worker=1)
    assert caplog.text.count("drops nothing") == 1


@pytest.mark.torch
def test_modules_of_all_workers_start_from_the_same_weights() -> None:
    config = SMALL.replaced(environment="CartPole-v1", module=f"{__name__}:tower")
    for one, other in zip(
        make_learner(config).parts(), make_learner(config, worker=3).parts(), strict=True
    ):
        np.testing.assert_array_equal(one, other)
