"""RLlib through a real switch and server: `make test-ray`."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import olaf

pytestmark = [pytest.mark.ray, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    # 30 s are short on a busy machine; Ray spells the variable so.
    os.environ["RAY_raylet_start_wait_time_s"] = "300"  # noqa: SIM112
    ray = importlib.import_module("ray")
    ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def config(options: Any, **learners: Any) -> Any:
    ppo = importlib.import_module("ray.rllib.algorithms.ppo")
    integration = importlib.import_module("olaf.integrations.rllib")
    return (
        ppo.PPOConfig()
        .environment("CartPole-v1")
        .env_runners(num_env_runners=0)
        .training(train_batch_size_per_learner=256, minibatch_size=64, num_epochs=2)
        .learners(
            learner_class=integration.OlafPPOTorchLearner,
            learner_config_dict=options,
            **{"num_learners": 0, **learners},
        )
        .debugging(seed=1)
    )


def weights(algorithm: Any) -> Any:
    """The learner's parameters in the order in which they are pushed."""
    learner = algorithm.learner_group._learner
    parts = olaf.snapshot(list(learner.get_parameters(learner.module["default_policy"])))
    return np.concatenate([part.ravel() for part in parts])


def test_two_programs_train_one_policy_to_200(
    ray: Any, train: Callable[..., list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", ray.get_runtime_context().gcs_address)
    assert min(train("rllib_cartpole.py", timeout_s=800)) >= 200


def test_the_learner_pushes_what_its_steps_changed_and_leaves(ray: Any, job: olaf.LocalJob) -> None:
    options = {"address": job.address, "every": 3, "patience_s": 5.0}
    algorithm = config({"olaf": options}).build_algo()
    first = weights(algorithm)
    begin = job.model()
    assert begin is not None
    np.testing.assert_array_equal(begin.parts[0], first)
    algorithm.train()
    kept = job.model()
    assert kept is not None
    # 4 minibatches, twice; RLlib's connectors may make one more of what is left over.
    steps = algorithm.learner_group._learner.get_optimizer("default_policy").state_dict()["state"]
    count = int(steps[0]["step"])
    assert count >= 8
    assert kept.version == 1 + -(-count // 3)
    np.testing.assert_allclose(kept.parts[0], weights(algorithm), atol=1e-6)
    assert np.abs(kept.parts[0] - first).max() > 1e-5
    rewards = algorithm.learner_group._learner._olaf_rewards
    assert rewards.mean() > 5

    state = algorithm.learner_group._learner.get_state()
    algorithm.train()
    after = weights(algorithm)
    algorithm.learner_group._learner.set_state(state)
    np.testing.assert_array_equal(weights(algorithm), after)  # the job's model stays

    algorithm.stop()
    with pytest.raises(ValueError, match="not in a job"):
        _ = algorithm.learner_group._learner._olaf_member.connection


@pytest.mark.parametrize(
    ("options", "learners", "says"),
    [
        ({}, {}, "no address for Olaf"),
        ({"olaf": {"address": "127.0.0.1:5555", "every": 0}}, {}, "every = 0"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    ray: Any, options: Any, learners: Any, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        config(options, **learners).build_learner_group(
            env=importlib.import_module("gymnasium").make("CartPole-v1")
        )


def test_pieces_of_episodes_add_up_to_rewards() -> None:
    rewards = importlib.import_module("olaf.integrations.rllib").Rewards()

    def piece(name: str, reward: float, done: bool) -> Any:
        made = {"id_": name, "is_done": done, "get_return": lambda self: reward}
        return type("Episode", (), made)()

    assert rewards.mean() == 0.0
    rewards.see([piece("a", 3, False), piece("b", 5, True)])
    rewards.see([piece("a", 4, True)])
    assert rewards.mean() == 6.0
