"""Small models of Stable-Baselines3, and what two of them have in common."""

from __future__ import annotations

from typing import Any

import stable_baselines3 as sb3
import torch
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

ON_POLICY: dict[str, dict[str, Any]] = {
    "PPO": {"n_steps": 16, "batch_size": 16, "n_epochs": 2},
    "A2C": {"n_steps": 8},
}
OFF_POLICY: dict[str, Any] = {"learning_starts": 16, "train_freq": 4, "batch_size": 8}
ALGORITHMS: dict[str, dict[str, Any]] = {
    **ON_POLICY,
    "DQN": {**OFF_POLICY, "target_update_interval": 8, "tau": 0.5},
    "DDPG": OFF_POLICY,
    "TD3": {**OFF_POLICY, "gradient_steps": 3},
    "SAC": {**OFF_POLICY, "gradient_steps": 2},
}
ENVIRONMENTS = dict.fromkeys(("PPO", "A2C", "DQN"), "CartPole-v1")
STEPS = 96
N_ENVS = 2


def environments(name: str = "CartPole-v1", **normalise: Any) -> Any:
    made = make_vec_env(name, N_ENVS)
    return VecNormalize(made, **normalise) if normalise else made


def made(algorithm: str, env: Any = None, **options: Any) -> Any:
    """A small model, the same for each seed if no other thread draws."""
    env = env or environments(ENVIRONMENTS.get(algorithm, "Pendulum-v1"))
    shape: dict[str, Any] = {"policy_kwargs": {"net_arch": [16]}, "device": "cpu"}
    if algorithm not in ON_POLICY:
        shape["buffer_size"] = 500
    policy = options.pop("policy", "MlpPolicy")
    return getattr(sb3, algorithm)(policy, env, **{**shape, **ALGORITHMS[algorithm], **options})


def state(model: Any) -> dict[str, Any]:
    """Weights, target networks, entropy coefficient and moments of the optimizers, copied."""
    values = {name: value.clone() for name, value in model.policy.state_dict().items()}
    if getattr(model, "log_ent_coef", None) is not None:
        values["log_ent_coef"] = model.log_ent_coef.detach().clone()
    for name, saved in model.get_parameters().items():
        for at, kept in saved.get("state", {}).items() if name.endswith("optimizer") else ():
            values |= {f"{name} {at} {key}": value.clone() for key, value in kept.items()}
    return values


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


def moments(normalise: Any) -> Any:
    every = normalise.obs_rms
    every = list(every.values()) if isinstance(every, dict) else [every]
    return [(m.mean.tolist(), m.var.tolist(), float(m.count)) for m in (*every, normalise.ret_rms)]
