"""Stable-Baselines3 through a real switch and server."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ports import free_port

import olaf

pytestmark = pytest.mark.torch


def sb3() -> Any:
    return importlib.import_module("stable_baselines3")


def callback(*given: Any, **options: Any) -> Any:
    return importlib.import_module("olaf.integrations.sb3").OlafCallback(*given, **options)


def small(**options: Any) -> Any:
    settings = {
        "n_steps": 32,
        "batch_size": 32,
        "n_epochs": 2,
        "seed": 3,
        "device": "cpu",
        **options,
    }
    return sb3().PPO("MlpPolicy", "CartPole-v1", **settings)


def flat(policy: Any) -> Any:
    return np.concatenate([part.ravel() for part in olaf.snapshot(policy)])


@pytest.mark.timeout(300)
def test_two_workers_train_one_policy_to_200(
    train: Callable[..., list[float]], job: olaf.LocalJob
) -> None:
    rewards = train("sb3_cartpole.py")
    assert min(rewards) >= 200
    stats = job.stats()
    assert len(stats["switch"]["clusters"]) == 2
    assert all(cluster["received"] > 10 for cluster in stats["switch"]["clusters"])


def test_alone_the_jobs_model_is_what_the_policy_became(job: olaf.LocalJob) -> None:
    """Every change was pushed once, and applied as it is; Adam's moments were never reset."""
    model = small()
    first = flat(model.policy)
    model.learn(96, callback=callback(job.address, patience_s=5.0))
    kept = job.model()
    assert kept is not None
    assert np.abs(flat(model.policy) - first).max() > 1e-3
    np.testing.assert_allclose(kept.parts[0], flat(model.policy), atol=1e-6)
    steps = {int(state["step"]) for state in model.policy.optimizer.state.values()}
    assert steps == {3 * 2}  # one minibatch of 32, twice a rollout


def test_a_later_worker_begins_with_the_jobs_model(job: olaf.LocalJob) -> None:
    small().learn(64, callback=callback(job.address, patience_s=5.0))
    kept = job.model()
    assert kept is not None
    seen: list[Any] = []
    late = small(seed=9)

    class Look(callback(job.address).__class__):  # type: ignore[misc]
        def _on_training_start(self) -> None:
            super()._on_training_start()
            seen.append(flat(late.policy))

    late.learn(32, callback=Look(job.address, cluster=1))
    np.testing.assert_array_equal(seen[0], kept.parts[0])


def test_rewards_and_every_so_many_rollouts(job: olaf.LocalJob) -> None:
    pushed = callback(job.address, every=3, patience_s=5.0)
    model = small()
    model.learn(32 * 7, callback=pushed)
    kept = job.model()
    assert kept is not None
    assert kept.version == 1 + 3  # after 3, after 6, and the one that was left
    assert pushed.mean_reward() == pytest.approx(
        np.mean([episode["r"] for episode in model.ep_info_buffer])
    )


def test_training_that_broke_off_can_be_started_again(job: olaf.LocalJob) -> None:
    """As in a notebook: Stable-Baselines3 calls no hook of the callback then."""
    hook, model = callback(job.address, worker=7, patience_s=5.0), small()

    def interrupt(found: Any, _: Any) -> bool:
        if model.num_timesteps == 40:
            raise KeyboardInterrupt
        return True

    both = importlib.import_module("stable_baselines3.common.callbacks")
    with pytest.raises(KeyboardInterrupt):
        model.learn(96, callback=both.CallbackList([hook, both.ConvertCallback(interrupt)]))
    model.learn(64, callback=hook)
    kept = job.model()
    assert kept is not None
    np.testing.assert_allclose(kept.parts[0], flat(model.policy), atol=1e-6)


def test_an_off_policy_algorithm_pushes_what_its_training_changed(job: olaf.LocalJob) -> None:
    model = sb3().DQN("MlpPolicy", "CartPole-v1", learning_starts=40, device="cpu", seed=1)
    model.learn(120, callback=callback(job.address, every=5, patience_s=5.0))
    kept = job.model()
    assert kept is not None
    # Rollouts of 4 steps; those that end after step 40 count: 44 .. 120.
    assert kept.version == 1 + 4
    np.testing.assert_allclose(kept.parts[0], flat(model.policy), atol=1e-6)


def test_without_a_switch_the_error_names_it_and_what_to_do() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(olaf.UnreachableError, match=rf"{address}.*olaf switch"):
        small().learn(32, callback=callback(address, join_timeout_s=0.5))


def test_what_cannot_be_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="every = 0"):
        callback("127.0.0.1:5555", every=0)
    with pytest.raises(ValueError, match="address = ''"):
        callback("")
    with pytest.raises(ValueError, match="patience_s = -1"):
        callback("127.0.0.1:5555", patience_s=-1)
    without = callback("127.0.0.1:5555")
    without.model = type("Model", (), {"policy": "MlpPolicy"})()
    with pytest.raises(ValueError, match=r"model\.policy is str, not a torch\.nn\.Module"):
        without._on_training_start()
    with pytest.raises(ValueError, match="not in a job"):
        _ = without.connection


def test_environments_without_monitor_are_told_from_a_reward_of_zero(
    job: olaf.LocalJob, caplog: pytest.LogCaptureFixture
) -> None:
    gymnasium = importlib.import_module("gymnasium")
    vectors = importlib.import_module("stable_baselines3.common.vec_env")
    for wrap, warnings in ((lambda vector: vector, 1), (vectors.VecMonitor, 0)):
        caplog.clear()
        environments = wrap(vectors.DummyVecEnv([lambda: gymnasium.make("CartPole-v1")]))
        model = sb3().PPO("MlpPolicy", environments, n_steps=64, n_epochs=1, device="cpu")
        pushed = callback(job.address)
        model.learn(128, callback=pushed)
        said = [r for r in caplog.records if "VecMonitor" in r.getMessage()]
        assert len(said) == warnings
        assert np.isnan(pushed.mean_reward()) == bool(warnings)
        environments.close()


def normalised(seed: int, **options: Any) -> Any:
    env_util = importlib.import_module("stable_baselines3.common.env_util")
    vec_env = importlib.import_module("stable_baselines3.common.vec_env")
    made = vec_env.VecNormalize(env_util.make_vec_env("Pendulum-v1", 2, seed=seed), **options)
    model = sb3().PPO("MlpPolicy", made, n_steps=32, batch_size=64, n_epochs=1, seed=seed)
    return model, made


def test_moments_of_vec_normalize_are_those_of_all_workers(job: olaf.LocalJob) -> None:
    seen: list[Any] = []

    def watched(seed: int) -> tuple[Any, Any]:
        """What the environments show, noted before they are normalised."""
        model, normalise = normalised(seed)
        step = normalise.venv.step_wait

        def noted() -> Any:
            found = step()
            seen.append(found[0].copy())
            return found

        normalise.venv.step_wait = noted
        return model, normalise

    (one, first), (other, second) = watched(1), watched(2)
    one.learn(256, callback=callback(job.address, patience_s=5.0))
    before = second.obs_rms.mean.copy()
    other.learn(256, callback=callback(job.address, cluster=1, patience_s=5.0))
    every = np.concatenate(seen)
    assert np.abs(second.obs_rms.mean - before).max() > 0
    np.testing.assert_allclose(second.obs_rms.mean, every.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(second.obs_rms.var, every.var(axis=0), rtol=0.05)
    assert second.obs_rms.count == pytest.approx(len(every), rel=0.02)
    assert second.ret_rms.count == pytest.approx(len(every), rel=0.02)
    assert first.obs_rms.count == pytest.approx(len(every) / 2, rel=0.02)
    kept = job.model()
    assert kept is not None
    assert kept.parts[0].size == flat(other.policy).size + (3 + 1) * 5


def test_a_later_worker_normalises_as_the_job_does(job: olaf.LocalJob) -> None:
    model, normalise = normalised(1)
    model.learn(128, callback=callback(job.address, patience_s=5.0))
    late, other = normalised(7, norm_reward=True)

    class Look(callback(job.address).__class__):  # type: ignore[misc]
        def _on_training_start(self) -> None:
            super()._on_training_start()
            np.testing.assert_allclose(other.obs_rms.mean, normalise.obs_rms.mean, atol=1e-5)
            np.testing.assert_allclose(other.obs_rms.var, normalise.obs_rms.var, rtol=1e-4)
            np.testing.assert_allclose(other.ret_rms.var, normalise.ret_rms.var, rtol=1e-4)

    late.learn(64, callback=Look(job.address, cluster=1))
