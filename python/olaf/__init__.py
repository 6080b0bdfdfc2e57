"""Olaf: distributed learning in which the network sums part of the updates.

Your existing training loop joins a job with three calls::

    import olaf

    with olaf.connect("udp://switch:5555", job=1, cluster=0) as switch:
        switch.join(weights)
        before = olaf.snapshot(weights)
        train(weights)
        switch.push_delta(before, weights, reward=episode_reward)
        switch.pull(into=weights)

Each name is imported when it is first used, so that ``import olaf`` and ``olaf --help`` are fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olaf._olaf import OlafError, RefusedError, SumError, UnreachableError, __version__
    from olaf.api import TrainResult, train
    from olaf.collective import SumConnection, SumFuture, connect_sum
    from olaf.connection import Connection, Model, connect
    from olaf.localjob import LocalJob, local
    from olaf.parameters import snapshot
    from olaf.rule import Rule
    from olaf.runs.calls import TrainEvaluation, TrainUpdate, stop_when_stalled

__all__ = [
    "Connection",
    "LocalJob",
    "Model",
    "OlafError",
    "RefusedError",
    "Rule",
    "SumConnection",
    "SumError",
    "SumFuture",
    "TrainEvaluation",
    "TrainResult",
    "TrainUpdate",
    "UnreachableError",
    "__version__",
    "connect",
    "connect_sum",
    "local",
    "snapshot",
    "stop_when_stalled",
    "train",
]

_HOMES = {
    "Connection": "olaf.connection",
    "Model": "olaf.connection",
    "Rule": "olaf.rule",
    "TrainResult": "olaf.api",
    "train": "olaf.api",
    "TrainEvaluation": "olaf.runs.calls",
    "TrainUpdate": "olaf.runs.calls",
    "stop_when_stalled": "olaf.runs.calls",
    "connect": "olaf.connection",
    "SumConnection": "olaf.collective",
    "SumFuture": "olaf.collective",
    "connect_sum": "olaf.collective",
    "SumError": "olaf._olaf",
    "LocalJob": "olaf.localjob",
    "local": "olaf.localjob",
    "snapshot": "olaf.parameters",
    "OlafError": "olaf._olaf",
    "RefusedError": "olaf._olaf",
    "UnreachableError": "olaf._olaf",
    "__version__": "olaf._olaf",
}


def __getattr__(name: str) -> object:
    """Import the name that is asked for, once."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'olaf' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
