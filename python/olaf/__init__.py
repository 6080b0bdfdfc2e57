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
    from olaf.api.local_job import LocalJob, local
    from olaf.api.training import TrainResult, train
    from olaf.memory.parameters import snapshot
    from olaf.push_pull.connection import Connection, Model, connect
    from olaf.push_pull.rule import Rule
    from olaf.runs.calls import TrainEvaluation, TrainUpdate, stop_when_stalled
    from olaf.sums.collective import SumConnection, connect_sum
    from olaf.sums.future import SumFuture
    from olaf.sums.state import average_state

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
    "average_state",
    "connect",
    "connect_sum",
    "local",
    "snapshot",
    "stop_when_stalled",
    "train",
]

_HOMES = {
    "Connection": "olaf.push_pull.connection",
    "Model": "olaf.push_pull.connection",
    "Rule": "olaf.push_pull.rule",
    "TrainResult": "olaf.api.training",
    "train": "olaf.api.training",
    "TrainEvaluation": "olaf.runs.calls",
    "TrainUpdate": "olaf.runs.calls",
    "stop_when_stalled": "olaf.runs.calls",
    "connect": "olaf.push_pull.connection",
    "SumConnection": "olaf.sums.collective",
    "SumFuture": "olaf.sums.future",
    "average_state": "olaf.sums.state",
    "connect_sum": "olaf.sums.collective",
    "SumError": "olaf._olaf",
    "LocalJob": "olaf.api.local_job",
    "local": "olaf.api.local_job",
    "snapshot": "olaf.memory.parameters",
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
