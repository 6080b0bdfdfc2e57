"""Backends by device, as in ``init_process_group("cpu:olaf,cuda:nccl")``."""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, TypeAlias

import torch

from olaf.torch.calls import DEVICES
from olaf.torch.distributed import Store, dist

NAME = "olaf"

Backend: TypeAlias = Any
"""A backend of torch, such as a `dist.ProcessGroupGloo`."""


def asked() -> dict[str, str]:
    """The backend of each device, as the program has asked for in the call that makes this group.

    Torch tells a backend nothing of the others, and makes none after one that is a whole process
    group, as ours is. So this looks at what torch's own function has.
    """
    frame = inspect.currentframe()
    while frame is not None:
        config = frame.f_locals.get("backend_config")
        if isinstance(config, dist.BackendConfig):
            return dict(config.get_device_backend_map())
        frame = frame.f_back
    return dict.fromkeys(DEVICES, NAME)


def beside(
    named: Mapping[str, str], gloo: Backend, store: Store, timeout: timedelta
) -> dict[str, Backend]:
    """The backends of the devices that do not sum through the switch, by device.

    gloo: that of the group. It serves the devices that ask for gloo, too.
    """
    made: dict[str, Backend] = {}
    for device, name in named.items():
        if name == "gloo":
            made[device] = gloo
        elif name == "nccl" and dist.is_nccl_available():
            options = dist.ProcessGroupNCCL.Options()
            options._timeout = timeout
            prefixed = dist.PrefixStore(device, store)
            made[device] = dist.ProcessGroupNCCL(prefixed, gloo.rank(), gloo.size(), options)
        elif name != NAME:
            raise ValueError(
                f"the backend {name!r} beside {NAME!r}: must be 'gloo', or 'nccl' where torch has "
                "it"
            )
    return made


def device_of(*arguments: Any) -> str | None:
    """Type of the device of the first tensor in the arguments of a call."""
    return next((tensor.device.type for tensor in _tensors(arguments)), None)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)
