"""The settings of a Stable-Baselines3 model that all workers of a job have in common.

Some decide how many optimizer steps a worker does between two points of its program. The others
decide what a step makes of the mean gradient.
"""

# mypy checks this file with and without the framework; without it everything of it is Any.
# mypy: disable-error-code="import-untyped,import-not-found,misc,unused-ignore"

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.save_util import recursive_getattr
from stable_baselines3.common.type_aliases import TrainFreq, TrainFrequencyUnit

from olaf.sums.collective import SumConnection
from olaf.sums.state import broadcast_bytes, of_all

COMPARED = (
    *("n_envs", "n_steps", "batch_size", "n_epochs", "target_kl"),
    *("learning_starts", "train_freq", "gradient_steps", "policy_delay"),
    *("target_update_interval", "tau", "max_grad_norm"),
)
"""Attributes of a model; an algorithm that lacks one has None."""

TEXT_BYTES = 96
"""Bytes of a value that an error shows."""


def optimizers_of(model: Any) -> dict[str, torch.optim.Optimizer]:
    """Name -> optimizer, in the order in which `model.save` knows them."""
    named = {name: recursive_getattr(model, name) for name in model._get_torch_save_params()[0]}
    return {n: found for n, found in named.items() if isinstance(found, torch.optim.Optimizer)}


def moments_of(normalise: Any) -> Iterator[tuple[str, Any]]:
    """Name and ``RunningMeanStd`` of what a ``VecNormalize`` normalises; None has nothing."""
    if normalise is None:
        return
    if normalise.norm_obs:
        observed = normalise.obs_rms
        if isinstance(observed, dict):
            yield from ((f"observations.{key}", observed[key]) for key in sorted(observed))
        else:
            yield "observations", observed
    if normalise.norm_reward:
        yield "rewards", normalise.ret_rms


def settings_of(model: Any) -> dict[str, str]:
    """Name -> value as text. The names are the same for every algorithm."""
    rates = (str(model.lr_schedule(progress)) for progress in (1.0, 0.5, 0.0))
    optimizers = (f"{name} ({type(each).__name__})" for name, each in optimizers_of(model).items())
    normalise = model.get_vec_normalize_env()
    moments = ", ".join(name for name, _ in moments_of(normalise))
    is_frozen = normalise is not None and not normalise.training
    return {
        "algorithm": type(model).__name__,
        "optimizers": ", ".join(optimizers),
        **{name: _text(getattr(model, name, None)) for name in COMPARED},
        "learning_rate": ", ".join(dict.fromkeys(rates)),
        "VecNormalize": f"of {moments or 'nothing'}{', training=False' if is_frozen else ''}",
    }


def check_equal(
    settings: Mapping[str, str], through: SumConnection, timeout_s: float | None
) -> None:
    """Raise ValueError at all workers if a setting of one differs; it names setting and rank."""
    if not _differs("\n".join(settings.values()), through, timeout_s):
        return
    for name, text in settings.items():
        if ranks := _differs(text, through, timeout_s):
            first, other = (_text_of(rank, text, through, timeout_s) for rank in (0, ranks[0]))
            raise ValueError(
                f"{name} is {first} at rank 0 and {other} at rank {ranks[0]}: all workers need "
                "the same, so that they do equally many optimizer steps with the same effect "
                f"(this worker is rank {through.rank})"
            )


def refuse_uneven(model: Any) -> None:
    """Raise ValueError for a model whose number of optimizer steps depends on a worker's data."""
    name = type(model).__name__
    if model.get_env() is None:
        raise ValueError(
            "the model has no environment: pass env= to load, or call model.set_env, before "
            "distribute"
        )
    if getattr(model, "target_kl", None) is not None:
        raise ValueError(
            f"target_kl = {model.target_kl}: {name} ends an epoch early when the worker's own "
            "data say so, and the other workers would wait for it; use target_kl=None"
        )
    frequency = getattr(model, "train_freq", None)
    if isinstance(frequency, TrainFreq) and frequency.unit is TrainFrequencyUnit.EPISODE:
        raise ValueError(
            f'train_freq = ({frequency.frequency}, "episode"): episodes differ in length between '
            f'the workers, and so would the number of optimizer steps; use train_freq=(n, "step")'
        )


def refuse_unknown(model: Any) -> None:
    """Raise TypeError or ValueError for a model that wrapped optimizers do not train."""
    if not hasattr(model, "_get_torch_save_params"):
        raise TypeError(
            f"model is {type(model).__name__}: must be a model of Stable-Baselines3, such as PPO"
        )
    if any(base.__name__ == "TRPO" for base in type(model).__mro__):
        raise ValueError(
            "TRPO changes its policy without an optimizer (a line search over the worker's own "
            "data), so the policies of the workers would differ; use PPO"
        )
    if not optimizers_of(model):
        raise ValueError(
            f"{type(model).__name__} has no optimizer of torch among what it saves "
            "(_get_torch_save_params): there are no gradients to sum"
        )


def _text(value: Any) -> str:
    if isinstance(value, TrainFreq):
        return f"{value.frequency} {value.unit.value}"
    return str(value)


def _differs(text: str, through: SumConnection, timeout_s: float | None) -> list[int]:
    """Ranks whose text is another than that of rank 0."""
    every = of_all(np.uint32(zlib.crc32(text.encode())), through, timeout_s)
    return [rank for rank in range(len(every)) if every[rank] != every[0]]


def _text_of(rank: int, own: str, through: SumConnection, timeout_s: float | None) -> str:
    """The text of the worker ``rank``, cut off after `TEXT_BYTES`."""
    data = np.zeros(TEXT_BYTES, np.uint8)
    said = np.frombuffer(own.encode()[:TEXT_BYTES], np.uint8)
    data[: said.size] = said
    broadcast_bytes(data, through, rank, timeout_s=timeout_s)
    return data.tobytes().rstrip(b"\0").decode(errors="replace")
