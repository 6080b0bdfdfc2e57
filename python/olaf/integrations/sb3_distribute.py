"""Stable-Baselines3: each optimizer step of a model applies the mean gradient of all workers.

    with olaf.connect_sum("10.0.0.1:5555", workers=4) as job:
        distribute(model, through=job)
        model.learn(100_000)

The optimizers of the model are wrapped (`olaf.torch.DistributedOptimizer`). Everything else is
Stable-Baselines3's: it collects, computes losses, clips, steps and moves the target networks.
"""

# mypy checks this file with and without the framework; without it everything of it is Any.
# mypy: disable-error-code="import-untyped,import-not-found,misc,unused-ignore"

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.save_util import recursive_getattr, recursive_setattr

from olaf.integrations.sb3_settings import (
    check_equal,
    moments_of,
    optimizers_of,
    refuse_uneven,
    refuse_unknown,
    settings_of,
)
from olaf.sums.collective import SumConnection
from olaf.sums.state import average_state, furthest
from olaf.torch.begin_equal import broadcast_optimizer_state, broadcast_parameters
from olaf.torch.optimizer import DistributedOptimizer

MOMENTS_EVERY = 16
"""Default number of optimizer steps between two averages of the moments of ``VecNormalize``."""

COUNTERS = ("num_timesteps", "_n_updates", "_n_calls")
"""These decide when learning starts, and when an actor (TD3) or a target network is updated."""


def distribute(
    model: Any,
    *,
    through: SumConnection | None,
    moments_every: int = MOMENTS_EVERY,
    exact: bool = False,
    timeout_s: float | None = None,
) -> None:
    """Make a model one worker of a job. All workers call it, before ``learn``.

    model: of PPO, A2C, DQN, DDPG, TD3 or SAC, new or loaded, with its environments. Other
    algorithms: each optimizer that `model.save` saves is wrapped; TRPO and ARS are refused.
    through: the worker's connection, `olaf.connect_sum` with ``workers``. None, or a job of one
    worker: the optimizers are wrapped, and nothing else happens.
    moments_every: optimizer steps, at least, between two averages of the moments of
    ``VecNormalize``. They are averaged at the first step after a rollout, and in the last training
    of ``learn``.
    exact: the same bits in every run, see `SumConnection.all_reduce`; "reduce" alone.
    timeout_s: time limit of each sum; None uses ``operation_timeout_ms`` of the connection.

    The model begins with weights, target networks, optimizers, counters and moments of the worker
    that has been trained most; rank 0 if none has. With ``model.seed`` the worker of rank r draws
    as a model with the seed ``model.seed + r * n_envs`` does. The replay buffer stays as it is.

    Raises ValueError for a model that is distributed already, for settings that differ between the
    workers, or that make the number of optimizer steps depend on a worker's data; and as
    `SumConnection.all_reduce` does. ``learn`` then raises as `DistributedOptimizer` does, and
    ValueError at its first optimizer step if the workers call it for different numbers of steps.
    """
    if through is not None and not isinstance(through, SumConnection):
        raise TypeError(
            f"through is {type(through).__name__}: must be a connection of olaf.connect_sum, or "
            "None for a single worker"
        )
    if through is not None and through.is_elastic:
        raise ValueError(
            "through is an elastic job: nothing gives a worker that joins later the weights of the "
            "others; pass workers= to olaf.connect_sum"
        )
    if moments_every < 1:
        raise ValueError(f"moments_every = {moments_every}: must be at least 1 optimizer step")
    refuse_unknown(model)
    if is_distributed(model):
        raise ValueError(
            "the model is distributed already: call distribute once, or save it and load it anew"
        )
    options: dict[str, Any] = {}
    between: _Between | None = None
    if through is not None and not through.is_alone:
        settings = {**settings_of(model), "moments_every": str(moments_every)}
        check_equal(settings, through, timeout_s)
        refuse_uneven(model)
        _begin_equal(model, through, timeout_s)
        if model.seed is not None:
            model.set_random_seed(model.seed + through.rank * model.n_envs)
        options = {"exact": exact, "timeout_s": timeout_s}
        # The loss of an actor leaves gradients in the critic, which no optimizer applies. So only
        # a single optimizer sums what `backward` makes, before the gradients are clipped.
        options["overlap"] = len(optimizers_of(model)) == 1
        between = _Between(model, through, moments_every, timeout_s)
    for name, optimizer in optimizers_of(model).items():
        wrapped = DistributedOptimizer(optimizer, through=through, **options)
        if between:
            wrapped.register_step_pre_hook(between.step)
        recursive_setattr(model, name, wrapped)


def is_distributed(model: Any) -> bool:
    """True after `distribute`, also for a single worker."""
    return any(isinstance(found, DistributedOptimizer) for found in optimizers_of(model).values())


class _Between:
    """The workers' sums beside the gradients: settings and moments, before some optimizer steps.

    It is no part of the model, which `model.save` pickles.
    """

    def __init__(
        self, model: Any, through: SumConnection, moments_every: int, timeout_s: float | None
    ) -> None:
        self._model = weakref.ref(model)
        self._through, self._timeout_s = through, timeout_s
        self._moments_every = moments_every
        self._steps, self._due = 0, 0
        self._learning: Any = None
        """When the present ``learn`` has begun."""
        self._collected = -1
        """Environment steps until the last training."""

    def step(self, *_: Any) -> None:
        """A hook: an optimizer is about to step. All workers call it equally often."""
        model = self._model()
        if model is None:
            return
        if model.start_time != self._learning:
            self._learning, self._collected = model.start_time, -1
            self._check(model)
        has_collected = model.num_timesteps != self._collected
        self._collected = model.num_timesteps
        is_last = model.num_timesteps >= model._total_timesteps
        if has_collected and (is_last or self._steps >= self._due):
            self._due = self._steps + self._moments_every
            self._average(model.get_vec_normalize_env())
        self._steps += 1

    def _check(self, model: Any) -> None:
        """A ``learn`` has begun: does it train equally long everywhere?"""
        began = model._num_timesteps_at_start
        told = {
            "total_timesteps of learn()": str(model._total_timesteps - began),
            "num_timesteps at the beginning of learn()": str(began),
        }
        check_equal({**told, **settings_of(model)}, self._through, self._timeout_s)

    def _average(self, normalise: Any) -> None:
        if normalise is not None and normalise.training:
            for _, moments in moments_of(normalise):
                average_state(moments, self._through, timeout_s=self._timeout_s)


def _begin_equal(model: Any, through: SumConnection, timeout_s: float | None) -> None:
    """Take what the worker that has been trained most has."""
    root = furthest(through, int(model._n_updates), timeout_s=timeout_s)
    modules, variables = model._get_torch_save_params()
    values: dict[str, Any] = {}
    for name in modules:
        if isinstance(module := recursive_getattr(model, name), torch.nn.Module):
            values |= {f"{name}.{key}": tensor for key, tensor in module.state_dict().items()}
    values |= {name: recursive_getattr(model, name) for name in variables}
    counters = {
        name: torch.tensor(int(getattr(model, name))) for name in COUNTERS if hasattr(model, name)
    }
    moments = dict(moments_of(model.get_vec_normalize_env()))
    found = {
        (name, part): torch.tensor(np.asarray(getattr(running, part), np.float64))
        for name, running in moments.items()
        for part in ("mean", "var", "count")
    }
    values |= counters | {f"VecNormalize.{name}.{part}": t for (name, part), t in found.items()}
    broadcast_parameters(values, through, root, timeout_s=timeout_s)
    for optimizer in optimizers_of(model).values():
        broadcast_optimizer_state(optimizer, through, root, timeout_s=timeout_s)
    for name, counter in counters.items():
        setattr(model, name, int(counter))
    for (name, part), tensor in found.items():
        value = float(tensor) if part == "count" else tensor.numpy()
        setattr(moments[name], part, value)
