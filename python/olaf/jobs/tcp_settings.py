"""Settings of the plain TCP parameter server (`train.transport`), and the keys it excludes."""

from __future__ import annotations

from typing import Annotated, Any, Protocol

from pydantic import Field

from olaf.jobs.section import NoneIs, Section


class TcpSettings(Section):
    """The plain TCP parameter server of `train.transport` = "tcp", a baseline."""

    buffer_bytes: Annotated[int | None, NoneIs("auto")] = Field(default=None, ge=2048)
    """Send buffer of each worker, and receive buffer of its connection at the relay. auto is the
    length of one update. Longer buffers hold older updates: Linux lets them grow to megabytes."""
    timeout_s: float = Field(default=60.0, gt=0)
    """A connection that moves no byte of a frame within this time is closed, and its peer named."""
    idle_s: float = Field(default=600.0, gt=0)
    """A worker that pushes nothing within this time is disconnected."""


class Asked(Protocol):
    """The tables of `olaf.jobs.settings.Settings` that are looked at here."""

    @property
    def train(self) -> Any:
        """How the job runs."""

    @property
    def server(self) -> Any:
        """The parameter server."""

    @property
    def worker(self) -> Any:
        """Each worker."""

    @property
    def switch(self) -> Any:
        """The switch."""


def check_transport(settings: Asked) -> None:
    """Raise ValueError for settings that a plain TCP server does not have."""
    if settings.train.transport == "udp":
        return
    asked = {
        "train.on": (settings.train.on, "local"),
        "train.leaves": (settings.train.leaves, 0),
        "train.local": (settings.train.local, False),
        "server.aggregate": (settings.server.aggregate, "each"),
        "worker.transmission": (settings.worker.transmission, "off"),
        "switch.credits": (settings.switch.credits, None),
        "switch.downlink": (settings.switch.downlink, None),
    }
    for key, (value, only) in asked.items():
        if value != only:
            word = "off" if only is None else only
            raise ValueError(
                f"`{key}` = {value!r} does not go with `train.transport` = 'tcp': a plain TCP "
                f"parameter server has only {word!r} there"
            )
