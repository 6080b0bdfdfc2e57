"""Models of Stable-Baselines3 whose optimizers are wrapped, through a real switch."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sb3 = pytest.importorskip("stable_baselines3")

import gymnasium  # noqa: E402
from sb3_models import (  # noqa: E402
    ALGORITHMS,
    ENVIRONMENTS,
    N_ENVS,
    ON_POLICY,
    STEPS,
    environments,
    made,
    moments,
    same,
    state,
)
from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from stable_baselines3.common.vec_env import VecNormalize  # noqa: E402
from sum_threads import together  # noqa: E402

import olaf  # noqa: E402
from olaf import SumConnection  # noqa: E402
from olaf.integrations.sb3 import distribute  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_two_workers_with_data_of_their_own_hold_the_same_bits(algorithm: str) -> None:
    def work(job: SumConnection) -> Any:
        model = made(algorithm, seed=10 * job.rank)
        distribute(model, through=job)
        before = state(model)
        model.learn(STEPS)
        return before, state(model), model._last_obs

    (first, ended, seen), (second, other, others) = together(work)
    assert same(first, second)
    assert same(ended, other)
    assert not np.array_equal(seen, others)
    moved = {name for name in first if not torch.equal(first[name], ended[name])}
    assert any("target" in name for name in moved) == (algorithm not in ON_POLICY)
    assert ("log_ent_coef" in moved) == (algorithm == "SAC")
    assert {name for name in first if "target" not in name and "optimizer" not in name} <= moved


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_worker_trains_bit_for_bit_as_without_olaf(algorithm: str) -> None:
    def trained(*through: SumConnection | None) -> Any:
        model = made(algorithm, seed=3)
        for connection in through:
            distribute(model, through=connection)
        model.learn(STEPS)
        return state(model)

    bare = trained()
    assert same(bare, trained(None))
    (alone,) = together(trained, workers=1)
    assert same(bare, alone)


@pytest.mark.parametrize("algorithm", ["PPO", "A2C", "DQN"])
def test_a_gradient_is_clipped_after_the_sum(algorithm: str) -> None:
    """The mean of clipped gradients would be shorter."""

    def work(job: SumConnection) -> float:
        model = made(algorithm, max_grad_norm=1e-4)
        distribute(model, through=job)
        model.learn(STEPS)
        found = [p.grad for p in model.policy.parameters() if p.grad is not None]
        return float(torch.nn.utils.get_total_norm(found))

    assert together(work) == pytest.approx([1e-4] * 2, rel=1e-3)


def test_each_gradient_is_summed_once() -> None:
    """The loss of the actor leaves gradients in the critic, which are no gradients of the critic's
    next step."""

    def work(job: SumConnection) -> int:
        env = environments("Pendulum-v1", gamma=0.9)
        starts = STEPS - 4 * N_ENVS
        model = made("TD3", env, learning_starts=starts, gradient_steps=4, policy_delay=2)
        distribute(model, through=job)
        before = len(job.operations())
        model.learn(STEPS)
        assert model._n_updates == 4
        return len(job.operations()) - before

    # Four steps of the critic, two of the actor, whether `learn` is the same everywhere, and once
    # the moments of observations and rewards.
    assert together(work) == [4 + 2 + 1 + 2 * 3] * 2


def test_each_worker_draws_with_a_seed_of_its_own() -> None:
    def work(job: SumConnection) -> Any:
        model = made("PPO", seed=5)
        distribute(model, through=job)
        return model.get_env()._seeds, model.seed

    assert together(work) == [([5, 6], 5), ([7, 8], 5)]


class Parts(gymnasium.Env[Any, Any]):
    """Observations in two parts, which have means of their own."""

    observation_space = gymnasium.spaces.Dict(
        {name: gymnasium.spaces.Box(-9, 9, (size,)) for name, size in (("near", 2), ("far", 3))}
    )
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, mean: float) -> None:
        self.mean, self.steps = mean, 0

    def look(self) -> Any:
        near, far = self.np_random.normal(self.mean, 1.0, 2), self.np_random.normal(-3, 0.1, 3)
        return {"near": near.astype(np.float32), "far": far.astype(np.float32)}

    def reset(self, **given: Any) -> Any:
        super().reset(**given)
        return self.look(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.look(), self.mean, self.steps % 10 == 0, False, {}


def noted(normalise: Any) -> list[Any]:
    """What the environments show from now on, before it is normalised."""
    seen: list[Any] = []
    inner = normalise.venv
    step, reset = inner.step_wait, inner.reset

    def stepped() -> Any:
        found = step()
        seen.append(found[0].copy())
        return found

    def begun() -> Any:
        seen.append(found := reset())
        return found

    inner.step_wait, inner.reset = stepped, begun
    return seen


@pytest.mark.parametrize("algorithm", ["PPO", "SAC"])
@pytest.mark.parametrize("moments_every", [1, 10**6])
def test_moments_of_vec_normalize_are_those_of_all_workers(
    algorithm: str, moments_every: int
) -> None:
    def work(job: SumConnection) -> Any:
        env = environments(ENVIRONMENTS.get(algorithm, "Pendulum-v1"), gamma=0.9)
        seen = noted(env)
        model = made(algorithm, env)
        distribute(model, through=job, moments_every=moments_every)
        model.learn(STEPS)
        return moments(env), np.concatenate(seen), state(model)

    (first, seen, weights), (second, others, other_weights) = together(work)
    assert first == second
    assert same(weights, other_weights)
    every = np.concatenate([seen, others])
    assert not np.allclose(seen.mean(0), every.mean(0), atol=1e-3)
    np.testing.assert_allclose(first[0][0], every.mean(0), atol=1e-4)
    np.testing.assert_allclose(first[0][1], every.var(0), rtol=1e-3)
    assert first[0][2] == pytest.approx(len(every) / 2, rel=1e-3)


def test_moments_of_observations_in_parts_are_averaged() -> None:
    def work(job: SumConnection) -> Any:
        env = VecNormalize(make_vec_env(lambda: Parts(4.0 * job.rank), N_ENVS))
        model = made("PPO", env, policy="MultiInputPolicy")
        distribute(model, through=job)
        model.learn(STEPS)
        return moments(env), list(env.obs_rms)

    (first, keys), (second, _) = together(work)
    assert first == second
    near = first[keys.index("near")]
    assert near[0] == pytest.approx([2.0, 2.0], abs=0.5)
    assert near[1] == pytest.approx([5.0, 5.0], abs=1.0)  # 1, and 4 between the workers


def test_moments_are_equal_after_each_of_several_trainings() -> None:
    """Each `learn` counts its steps from 0 again."""

    def work(job: SumConnection) -> Any:
        env = environments(gamma=0.9)
        model = made("PPO", env, seed=10 * job.rank)
        distribute(model, through=job)
        seen = []
        for _ in range(3):
            model.learn(16 * N_ENVS)  # one rollout
            seen.append(moments(env))
        return seen

    first, second = together(work)
    assert first == second
    assert first[0] != first[1] != first[2]


def test_frozen_moments_stay_as_they_are() -> None:
    def work(job: SumConnection) -> Any:
        env = environments(training=False)
        distribute(model := made("PPO", env), through=job)
        env.obs_rms.mean += job.rank
        model.learn(STEPS)
        return moments(env)[0][0]

    assert together(work) == [[0.0] * 4, [1.0] * 4]


@pytest.mark.parametrize("algorithm", ["PPO", "DQN", "SAC"])
def test_a_model_is_saved_loaded_and_distributed_again(algorithm: str, tmp_path: Path) -> None:
    """The worker of rank 1 comes back with a saved model, rank 0 has a new one."""
    kind, file = getattr(sb3, algorithm), tmp_path / "model.zip"

    def begin(job: SumConnection) -> Any:
        env = environments(ENVIRONMENTS.get(algorithm, "Pendulum-v1"), gamma=0.9)
        distribute(model := made(algorithm, env, seed=1), through=job)
        model.learn(STEPS)
        if job.rank == 0:
            model.save(file)
            env.save(tmp_path / "moments")
        return state(model), moments(env)

    def resume(job: SumConnection) -> Any:
        plain = environments(ENVIRONMENTS.get(algorithm, "Pendulum-v1"))
        if job.rank == 1:
            env = VecNormalize.load(tmp_path / "moments", plain)
            model = kind.load(file, env=env, device="cpu")
        else:
            env = VecNormalize(plain, gamma=0.9)
            model = made(algorithm, env, seed=1)
        distribute(model, through=job)
        found = state(model), moments(env), model.num_timesteps, getattr(model, "_n_calls", 0)
        model.learn(STEPS, reset_num_timesteps=False)
        return found, state(model), model.num_timesteps

    (saved, seen), _ = together(begin)
    loaded = kind.load(file, device="cpu")
    assert same(state(loaded), saved)
    calls = STEPS // N_ENVS if algorithm == "DQN" else 0
    (first, ended, steps), (second, other, _) = together(resume)
    for weights, known, done, called in (first, second):
        assert same(weights, saved)
        assert (known, done, called) == (seen, STEPS, calls)
    assert same(ended, other)
    assert not same(ended, saved)
    assert steps == 2 * STEPS


class Until(BaseCallback):  # type: ignore[misc]
    """Stops at a step, if one worker or all decide it together."""

    def __init__(self, wants: bool, job: SumConnection | None = None) -> None:
        super().__init__()
        self.wants, self.job = wants, job

    def _on_step(self) -> bool:
        stops = np.array([self.wants and self.num_timesteps >= 48], np.float32)
        if self.job is not None:
            self.job.all_reduce(stops, "max")
        return not stops[0]


@pytest.mark.parametrize("algorithm", ["PPO", "SAC"])
def test_a_worker_that_stops_is_named_to_the_others(algorithm: str) -> None:
    def work(job: SumConnection) -> None:
        rank = job.rank
        distribute(model := made(algorithm), through=job)
        if rank == 1:
            model.learn(STEPS, callback=Until(wants=True))
            job.close()
            return
        with pytest.raises(olaf.SumError, match="worker 1 left job 1") as error:
            model.learn(STEPS)
        assert error.value.culprit == 1

    together(work)


def test_a_callback_stops_all_if_the_workers_decide_together() -> None:
    def work(job: SumConnection) -> Any:
        distribute(model := made("SAC"), through=job)
        model.learn(STEPS, callback=Until(wants=job.rank == 1, job=job))
        return model.num_timesteps, state(model)

    (first, weights), (second, others) = together(work)
    assert first == second == 48
    assert same(weights, others)


def test_the_example_trains_one_model() -> None:
    file = Path(__file__).parents[2] / "examples" / "sb3_distributed.py"
    argv = [sys.executable, str(file), "--algorithm", "SAC", "--steps", "240"]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stderr
    # Two processes may write to one line.
    found = re.findall(r"sum of weights (-?[\d.]+(?:e-?\d+)?)", ran.stdout)
    assert len(found) == 2, ran.stdout
    assert found[0] == found[1]
