"""Real switches, servers and workers on this machine's loopback, each test its own."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from olaf import _olaf

Array = NDArray[np.float32]


class Network:
    """Makes parties and stops them all at the end."""

    def __init__(self) -> None:
        self._stops: list[Callable[[], None]] = []

    def server(self, listen: str = "127.0.0.1:0", **config: Any) -> _olaf.Server:
        config = {"listen": listen, "learning_rate": 1.0, "staleness_power": 0.0, **config}
        server = _olaf.Server(json.dumps(config))
        server.start()
        self._stops.append(server.stop)
        return server

    def switch(self, upstream: str, listen: str = "127.0.0.1:0", **config: Any) -> _olaf.Switch:
        config = {"listen": listen, "upstream": upstream, **config}
        switch = _olaf.Switch(json.dumps(config))
        switch.start()
        self._stops.append(switch.stop)
        return switch

    def client(
        self,
        address: str,
        *,
        job: int = 1,
        cluster: int = 0,
        worker: int | None = None,
        **config: int | str,
    ) -> _olaf.Client:
        client = _olaf.Client(
            address, job=job, cluster=cluster, worker=worker, config=json.dumps(config)
        )
        self._stops.append(client.leave)
        return client

    def stop(self) -> None:
        for stop in reversed(self._stops):
            stop()


@pytest.fixture
def network() -> Iterator[Network]:
    network = Network()
    yield network
    network.stop()


@pytest.fixture
def plain_socket() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        plain.bind(("127.0.0.1", 0))
        yield plain


def zeros(size: int = 10) -> list[Array]:
    return [np.zeros(size, np.float32)]


def values(*given: float) -> list[Array]:
    return [np.array(given, np.float32)]


def stats(party: _olaf.Switch | _olaf.Server | _olaf.Client) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(party.stats())
    return read


def events(party: _olaf.Switch | _olaf.Server | _olaf.Client) -> list[dict[str, Any]]:
    return [json.loads(event) for event in party.events()]


class Events:
    """Everything a party has said so far, so that no test misses what another look took."""

    def __init__(self, party: _olaf.Switch | _olaf.Server | _olaf.Client) -> None:
        self._party = party
        self._said: list[dict[str, Any]] = []

    def named(self, name: str) -> list[dict[str, Any]]:
        self._said += events(self._party)
        return [event for event in self._said if event["event"] == name]


def assert_sums_match(switch: dict[str, Any]) -> None:
    """Every contribution has one fate, in all and in each cluster."""
    fates = switch["fates"]
    settled = sum(fates[f] for f in ("sent_alone", "merged", "replaced", "filtered", "waiting"))
    settled += sum(fates["dropped"].values()) + sum(fates["rejected"].values())
    assert switch["received"] == settled
    for cluster in switch["clusters"]:
        names = ("sent_alone", "merged", "replaced", "filtered", "dropped", "rejected", "waiting")
        assert cluster["received"] == sum(cluster[name] for name in names)
    for link in (switch["uplink"], *switch["downlinks"]):
        assert link["forwarded"] == link["sent"] + link["waiting"]
    assert switch["forwarded"]["up"] == switch["uplink"]["forwarded"]
    assert switch["forwarded"]["down"] == sum(link["forwarded"] for link in switch["downlinks"])


def address_of(party: _olaf.Switch | _olaf.Server) -> tuple[str, int]:
    host, port = party.address.rsplit(":", 1)
    return host, int(port)
