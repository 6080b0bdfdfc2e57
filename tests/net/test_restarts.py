"""Parties die, really: processes killed in the middle of a run and started again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import until

from conftest import Array, Events, Network, stats, zeros
from olaf import _olaf

ROLE = Path(__file__).with_name("role.py")


class Process:
    """A role in a process of its own, at one address whatever becomes of it."""

    def __init__(self, kind: str, **config: Any) -> None:
        self._kind = kind
        self._config = {"listen": "127.0.0.1:0", "silent_after_ms": 300, **config}
        self.address = ""
        self.start()

    def start(self) -> None:
        command = [sys.executable, str(ROLE), self._kind, json.dumps(self._config)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        self._config["listen"] = self.address

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@pytest.fixture
def processes() -> Iterator[tuple[Process, Process]]:
    server = Process("server", learning_rate=1.0, staleness_power=0.0)
    switch = Process("switch", upstream=server.address)
    yield server, switch
    switch.kill()
    server.kill()


def joined(network: Network, switch: str) -> list[_olaf.Client]:
    config = {"keepalive_ms": 50, "silent_after_ms": 300}
    clients = [network.client(switch, cluster=n % 2, **config) for n in range(3)]
    for client in clients:
        client.join(zeros(), 10.0)
    return clients


def trains(client: _olaf.Client) -> bool:
    """Whether a push comes back as a newer model soon."""
    model: list[Array] = zeros()
    version = client.pull(model, 0)
    assert version is not None
    client.push([np.ones(10, np.float32)], reward=0.0)
    return client.wait(version, 0.5) is not None


@pytest.mark.parametrize("victim", ["switch", "server"])
def test_a_party_killed_and_started_again_is_noticed_and_training_goes_on(
    network: Network, processes: tuple[Process, Process], victim: str
) -> None:
    server, switch = processes
    clients = joined(network, switch.address)
    said = [Events(client) for client in clients]
    assert all(trains(client) for client in clients)
    before = max(int(stats(client)["model_version"]) for client in clients)

    dead = switch if victim == "switch" else server
    dead.kill()
    for events in said:
        gone = until(lambda e=events: e.named(f"{victim}_silent"), "the silence")  # type: ignore[misc]
        # A worker knows no address of the server, only that of the switch on the way to it.
        assert gone[0]["address" if victim == "switch" else "through"] == switch.address
    if victim == "server":
        # The switch is alive, and the worker knows.
        assert stats(clients[0])["switch_alive"]
        assert not said[0].named("switch_silent")

    dead.start()
    for events in said:
        until(lambda e=events: e.named(f"{victim}_restarted"), "the new life")  # type: ignore[misc]
    # A worker that was behind may first get the newest model of before. Then it trains on that one.
    for client in clients:
        until(
            lambda c=client: trains(c) and int(stats(c)["model_version"]) > before,  # type: ignore[misc]
            "a model after the restart",
        )
    # Nobody went back in time: the model lived on with the workers.
    assert min(int(stats(client)["model_version"]) for client in clients) > before


def test_a_killed_worker_is_noticed_by_switch_and_server(network: Network) -> None:
    server = network.server(silent_after_ms=300)
    switch = network.switch(server.address, silent_after_ms=300)
    at_server, at_switch = Events(server), Events(switch)
    code = (
        "import sys, numpy, time; from olaf import _olaf;"
        f"c = _olaf.Client({switch.address!r}, job=1, cluster=0, worker=42);"
        "c.join([numpy.zeros(10, numpy.float32)], 10.0); print('in', flush=True); time.sleep(3600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "in\n"
        worker.kill()
    for events in (at_server, at_switch):
        silent = until(lambda e=events: e.named("worker_silent"), "the silence")  # type: ignore[misc]
        assert silent[0]["worker"] == 42
    other = network.client(switch.address, worker=42)
    assert other.join(zeros(), 10.0) == 1
