"""Models of Stable-Baselines3 that cannot train together: refused with the reason."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from sb3_models import environments, made, same, state  # noqa: E402
from stable_baselines3 import PPO  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from sum_threads import together  # noqa: E402

from olaf import SumConnection  # noqa: E402
from olaf.integrations.sb3 import OlafCallback, distribute  # noqa: E402

pytestmark = pytest.mark.torch

CONSTANT = {"learning_rate": 1e-3}
DIFFERENT: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("PPO", {}, {"n_steps": 32}, "n_steps is 16 at rank 0 and 32 at rank 1"),
    ("PPO", {}, {"batch_size": 8}, "batch_size is 16 at rank 0 and 8 at rank 1"),
    ("PPO", {}, {"target_kl": 0.1}, "target_kl is None at rank 0 and 0.1 at rank 1"),
    ("PPO", {}, {"max_grad_norm": 9.0}, "max_grad_norm is 0.5 at rank 0 and 9.0 at rank 1"),
    ("PPO", CONSTANT, {"learning_rate": lambda left: left / 1e3}, "learning_rate is 0.001 at"),
    ("DQN", {}, {"train_freq": (2, "step")}, "train_freq is 4 step at rank 0 and 2 step at rank 1"),
    ("TD3", {}, {"policy_delay": 5}, "policy_delay is 2 at rank 0 and 5 at rank 1"),
    ("SAC", {}, {"ent_coef": 0.1}, r"optimizers is .* ent_coef_optimizer \(Adam\) at rank 0 and"),
]


def test_settings_that_differ_are_named_at_all_with_the_rank() -> None:
    def work(job: SumConnection) -> None:
        for algorithm, mine, others, said in DIFFERENT:
            model = made(algorithm, **(others if job.rank == 1 else mine))
            before = state(model)
            with pytest.raises(ValueError, match=said) as error:
                distribute(model, through=job)
            assert f"this worker is rank {job.rank}" in str(error.value)
            assert same(state(model), before)
            assert isinstance(model.get_parameters(), dict)
        for model, every, said in (
            (made("A2C" if job.rank == 2 else "PPO"), 16, "algorithm is PPO at rank 0 and A2C at"),
            (made("PPO"), 16 + job.rank // 2, "moments_every is 16 at rank 0 and 17 at rank 2"),
        ):
            with pytest.raises(ValueError, match=said):
                distribute(model, through=job, moments_every=every)
        env = environments(norm_reward=job.rank == 0)
        said = "VecNormalize is of observations, rewards at rank 0 and of observations at rank 1"
        with pytest.raises(ValueError, match=said):
            distribute(made("PPO", env), through=job)
        distribute(model := made("PPO"), through=job)  # the connection is as it was
        model.learn(32)

    together(work, workers=3)


def test_networks_that_differ_are_refused() -> None:
    def work(job: SumConnection) -> None:
        model = made("PPO", policy_kwargs={"net_arch": [16 + job.rank]})
        with pytest.raises(ValueError, match="rank 1 have other names, types or shapes"):
            distribute(model, through=job)

    together(work)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (lambda rank: {"total_timesteps": 64 + 32 * rank}, "total_timesteps of learn.. is 64 at"),
        (
            lambda rank: {"total_timesteps": 32, "reset_num_timesteps": rank == 0},
            "num_timesteps at the beginning of learn.. is 0 at rank 0 and 32 at rank 1",
        ),
    ],
)
def test_workers_that_learn_differently_long_are_told_before_they_step(
    options: Any, said: str
) -> None:
    def work(job: SumConnection) -> None:
        distribute(model := made("PPO"), through=job)
        model.learn(32)
        before = state(model)
        with pytest.raises(ValueError, match=said):
            model.learn(**options(job.rank))
        assert same(state(model), before)

    together(work)


def test_what_makes_the_steps_uneven_is_refused_by_name() -> None:
    def work(job: SumConnection) -> None:
        with pytest.raises(ValueError, match=r"target_kl = 0\.1: PPO ends an epoch early"):
            distribute(made("PPO", target_kl=0.1), through=job)
        env = make_vec_env("Pendulum-v1", 1)
        with pytest.raises(ValueError, match=r'train_freq = \(2, "episode"\): episodes differ'):
            distribute(made("SAC", env, train_freq=(2, "episode")), through=job)
        model = made("PPO")
        model.env = None
        with pytest.raises(ValueError, match="the model has no environment"):
            distribute(model, through=job)

    together(work)


def test_an_elastic_job_is_refused() -> None:
    """A worker that comes later would never have the weights of the others."""

    def work(job: SumConnection) -> None:
        assert job.is_elastic
        with pytest.raises(ValueError, match="through is an elastic job"):
            distribute(made("PPO"), through=job)

    together(work, elastic=True)

    def fixed(job: SumConnection) -> bool:
        return job.is_elastic

    assert together(fixed) == [False, False]


class TRPO(PPO):  # type: ignore[misc]
    """Has the name of sb3-contrib's."""


class WithoutOptimizer(PPO):  # type: ignore[misc]
    def _get_torch_save_params(self) -> Any:
        return ["policy"], []


def test_what_cannot_be_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"model is Linear: must be a model of Stable-Baselines3"):
        distribute(torch.nn.Linear(1, 1), through=None)
    with pytest.raises(TypeError, match=r"through is str: must be a connection of olaf\.connect"):
        distribute(made("PPO"), through="127.0.0.1:5555")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="moments_every = 0"):
        distribute(made("PPO"), through=None, moments_every=0)
    with pytest.raises(ValueError, match="TRPO changes its policy without an optimizer"):
        distribute(TRPO("MlpPolicy", environments()), through=None)
    with pytest.raises(ValueError, match="WithoutOptimizer has no optimizer of torch"):
        distribute(WithoutOptimizer("MlpPolicy", environments()), through=None)
    distribute(model := made("PPO"), through=None)
    with pytest.raises(ValueError, match="the model is distributed already"):
        distribute(model, through=None)
    with pytest.raises(ValueError, match="leave OlafCallback out"):
        model.learn(32, callback=OlafCallback("127.0.0.1:5555"))
