"""The plain TCP parameter server (`train.transport`): its settings, and what goes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from olaf.jobs.section import NoneIs, Section

if TYPE_CHECKING:
    from olaf.jobs.settings import ServerSettings, Settings


class TcpSettings(Section):
    """The plain TCP parameter server of `train.transport` = "tcp", a baseline."""

    buffer_bytes: Annotated[int | None, NoneIs("auto")] = Field(default=None, ge=2048)
    """Send buffer of each worker, and receive buffer of the relay for it. auto is the length of one
    update. What waits in longer buffers grows old: Linux lets them grow to megabytes."""
    timeout_s: float = Field(default=60.0, gt=0)
    """A connection that moves no byte of a frame within this time is given up, by name."""
    idle_s: float = Field(default=600.0, gt=0)
    """A worker that pushes nothing within this time is disconnected."""


def check_transport(settings: Settings) -> None:
    """Raise ValueError for what a plain TCP server does not have."""
    if settings.train.transport == "udp":
        return
    asked = {
        "train.on": (settings.train.on, "local"),
        "train.leaves": (settings.train.leaves, 0),
        "train.local": (settings.train.local, False),
        "server.aggregate": (settings.server.aggregate, "each"),
        "worker.transmission": (settings.worker.transmission, "off"),
        "switch.credits": (settings.switch.credits, None),
    }
    for key, (value, only) in asked.items():
        if value != only:
            word = "off" if only is None else only
            raise ValueError(
                f"`{key}` = {value!r} does not go with `train.transport` = 'tcp': a plain TCP "
                f"parameter server has only {word!r} there"
            )


SPARE = 2
"""Connections for each worker: one that died may be started again before its end is seen."""


def server_told(settings: Settings, server: ServerSettings) -> dict[str, Any]:
    """What the server's process is told, but its model's file; see `olaf.tcp.server`."""
    rule = ("rule", "learning_rate", "step", "gate", "gate_margin", "staleness_power")
    return {
        "every_s": settings.train.every_s,
        "tcp": {
            "listen": server.listen,
            "job": settings.worker.job,
            "rule": {key: getattr(server, key) for key in rule},
            "most_parameters": settings.switch.max_parameters,
            "most_workers": SPARE * settings.train.workers,
            "checkpoint": server.checkpoint,
            "checkpoint_every_s": server.checkpoint_every_ms / 1000,
            "fresh": server.fresh,
            **_deadlines(settings),
        },
    }


def relay_told(settings: Settings, listen: str, upstream: str) -> dict[str, Any]:
    """What the relay's process is told, see `olaf.tcp.relay`."""
    from olaf._olaf import parse_rate

    uplink = settings.switch.uplink
    return {
        "every_s": settings.train.every_s,
        "tcp": {
            "listen": listen,
            "upstream": upstream,
            "rate_bps": None if uplink is None else parse_rate(uplink),
            "most_connections": SPARE * settings.train.workers,
            "buffer_bytes": settings.tcp.buffer_bytes,
            **_deadlines(settings),
        },
    }


def worker_told(settings: Settings) -> dict[str, Any]:
    """What a worker is told of its connection, see `olaf.tcp.client`."""
    return {"timeout_s": settings.tcp.timeout_s, "buffer_bytes": settings.tcp.buffer_bytes}


def _deadlines(settings: Settings) -> dict[str, float]:
    return {"timeout_s": settings.tcp.timeout_s, "idle_s": settings.tcp.idle_s}
