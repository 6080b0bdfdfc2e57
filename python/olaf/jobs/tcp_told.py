"""The configurations of the processes of a plain TCP job (`train.transport`)."""

from __future__ import annotations

from typing import Any

from olaf.jobs.server_settings import ServerSettings
from olaf.jobs.settings import Settings

SPARE = 2
"""Connections per worker: one that died may restart before its end is noticed."""


def server_told(settings: Settings, server: ServerSettings) -> dict[str, Any]:
    """Configuration of the server's process, without its model file; see `olaf.tcp.server`."""
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
    """Configuration of the relay's process, see `olaf.tcp.relay`."""
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
    """Configuration of a worker's connection, see `olaf.tcp.client`."""
    return {"timeout_s": settings.tcp.timeout_s, "buffer_bytes": settings.tcp.buffer_bytes}


def _deadlines(settings: Settings) -> dict[str, float]:
    return {"timeout_s": settings.tcp.timeout_s, "idle_s": settings.tcp.idle_s}
