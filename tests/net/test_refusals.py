"""What cannot be says so, says what to do, and keeps its deadline."""

from __future__ import annotations

import json
import socket
import time

import numpy as np
import pytest
from ports import free_port, taken_port
from waiting import until

from conftest import Network, address_of, events, stats, values, zeros
from olaf import _olaf


def test_nobody_there_is_said_by_the_deadline(network: Network) -> None:
    with taken_port() as port:
        address = f"127.0.0.1:{port}"
        client = network.client(address)
        began = time.monotonic()
        with pytest.raises(_olaf.UnreachableError, match=f"switch at {address}"):
            client.join(zeros(), 0.5)
        assert 0.4 < time.monotonic() - began < 5.0


def test_a_closed_port_is_told_from_silence(network: Network) -> None:
    address = f"127.0.0.1:{free_port()}"
    client = network.client(address)
    with pytest.raises(_olaf.UnreachableError, match="nothing listens"):
        client.join(zeros(), 0.5)
    assert stats(client)["io"]["connection_refused"] > 0


def test_a_silent_server_is_told_from_a_silent_switch(network: Network) -> None:
    with taken_port() as port:
        switch = network.switch(f"127.0.0.1:{port}", silent_after_ms=200)
        client = network.client(switch.address, silent_after_ms=200)
        with pytest.raises(_olaf.UnreachableError, match="but the server of job 1 behind it"):
            client.join(zeros(), 1.5)
        said = [event["event"] for event in events(client)]
    assert "server_silent" in said
    assert "switch_silent" not in said


def test_a_worker_may_wait_for_a_switch_that_comes_later(network: Network) -> None:
    server = network.server()
    address = f"127.0.0.1:{free_port()}"
    client = network.client(address)
    with pytest.raises(_olaf.UnreachableError):
        client.join(values(1, 2), 0.2)
    network.switch(server.address, address)
    assert client.join(values(1, 2), 10.0) == 1


def test_an_id_in_use_is_refused_and_the_owner_goes_on(network: Network) -> None:
    server = network.server()
    switch = network.switch(server.address)
    owner = network.client(switch.address, worker=3)
    owner.join(zeros(), 10.0)
    claimer = network.client(switch.address, worker=3)
    with pytest.raises(_olaf.RefusedError, match="worker id 3 of job 1 is in use"):
        claimer.join(zeros(), 0.5)
    with pytest.raises(_olaf.RefusedError, match="in use"):
        claimer.push(zeros(), reward=0.0)
    owner.push([np.ones(10, np.float32)], reward=0.0)
    assert owner.wait(1, 10.0) == 2
    refused = [event for event in events(switch) if event["event"] == "worker_refused"]
    assert refused
    assert refused[0]["reason"] == "worker_id_in_use"
    assert refused[0]["worker"] == 3


def test_an_id_is_free_again_when_its_owner_has_left(network: Network) -> None:
    server = network.server()
    switch = network.switch(server.address)
    first = network.client(switch.address, worker=3)
    first.join(values(1, 2), 10.0)
    first.leave()
    first.leave()
    second = network.client(switch.address, worker=3)
    assert second.join(values(0, 0), 10.0) == 1


def test_a_dead_worker_s_id_is_taken_over_after_its_silence(network: Network) -> None:
    server = network.server(silent_after_ms=300)
    switch = network.switch(server.address, silent_after_ms=300)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as relay:
        relay.bind(("127.0.0.1", 0))
        relay.setblocking(False)
        # The first life joins through a wire that is then cut: it can say no leave.
        first = network.client(f"127.0.0.1:{relay.getsockname()[1]}", worker=3, keepalive_ms=50)
        pump = _Pump(relay, address_of(switch))
        joining = pump.joined(first)
        assert joining
    second = network.client(switch.address, worker=3, keepalive_ms=50)
    assert second.join(zeros(), 10.0) == 1


class _Pump:
    """Passes datagrams both ways until the worker is in."""

    def __init__(self, relay: socket.socket, switch: tuple[str, int]) -> None:
        self._relay = relay
        self._switch = switch
        self._worker: tuple[str, int] | None = None

    def joined(self, client: _olaf.Client) -> bool:
        import threading

        done = threading.Event()
        joined: list[int] = []

        def join() -> None:
            joined.append(client.join(zeros(), 10.0))
            done.set()

        thread = threading.Thread(target=join)
        thread.start()
        while not done.is_set():
            self._pass_one()
        thread.join()
        return bool(joined)

    def _pass_one(self) -> None:
        try:
            datagram, source = self._relay.recvfrom(65536)
        except BlockingIOError:
            time.sleep(0.001)
            return
        if source == self._switch:
            if self._worker is not None:
                self._relay.sendto(datagram, self._worker)
        else:
            self._worker = source
            self._relay.sendto(datagram, self._switch)


def test_a_model_of_another_size_is_refused(network: Network) -> None:
    server = network.server()
    switch = network.switch(server.address)
    network.client(switch.address).join(zeros(10), 10.0)
    other = network.client(switch.address)
    began = time.monotonic()
    with pytest.raises(
        _olaf.RefusedError, match="another number of parameters than this worker's 11"
    ):
        other.join(zeros(11), 20.0)
    assert time.monotonic() - began < 10.0
    model = server.model(1)
    assert model is not None
    assert model[1].size == 10


def test_segments_of_another_size_are_refused(network: Network) -> None:
    server = network.server()
    switch = network.switch(server.address)
    network.client(switch.address).join(zeros(10), 10.0)
    other = network.client(switch.address, mtu_bytes=1500)
    with pytest.raises(_olaf.RefusedError, match="neither segment_lanes nor mtu_bytes"):
        other.join(zeros(10), 10.0)


def test_a_server_may_insist_on_its_segments(network: Network) -> None:
    server = network.server(segment_lanes=100)
    client = network.client(server.address, segment_lanes=50)
    with pytest.raises(_olaf.RefusedError, match="segments of another size"):
        client.join(zeros(10), 10.0)
    # Who leaves it to the job takes over what the server says.
    other = network.client(server.address)
    assert other.join(zeros(10), 10.0) == 1
    assert stats(other)["path"]["segment_lanes"] == 100


def test_a_job_without_a_server_and_a_model_too_large_are_refused(network: Network) -> None:
    server = network.server()
    switch = network.switch(server.address, max_parameters=100)
    client = network.client(switch.address)
    with pytest.raises(_olaf.RefusedError, match="max_parameters"):
        client.join(zeros(101), 10.0)


def test_a_port_in_use_names_itself(network: Network) -> None:
    server = network.server()
    with pytest.raises(OSError, match="in use by another program") as raised:
        _olaf.Server(json.dumps({"listen": server.address}))
    assert server.address in str(raised.value)
    assert raised.value.errno is not None
    with pytest.raises(OSError, match="listen on another port"):
        _olaf.Switch(json.dumps({"listen": server.address, "upstream": server.address}))


@pytest.mark.parametrize(
    ("config", "hint"),
    [
        ({"upstream": "127.0.0.1:1", "slotz": 3}, "slotz"),
        ({"listen": "127.0.0.1:0"}, "upstream"),
        ({"upstream": "nowhere"}, "host:port"),
        ({"upstream": "127.0.0.1:1", "queue": "lifo"}, "olaf, fifo or freshest"),
        ({"upstream": "127.0.0.1:1", "slots": 0}, "slots"),
        ({"upstream": "127.0.0.1:1", "gate": -1.0}, "gate"),
        ({"upstream": "127.0.0.1:1", "uplink_bps": 1, "credits": 1}, "at most one"),
        ({"upstream": "127.0.0.1:1", "credits": 0}, "credits"),
        ({"upstream": "127.0.0.1:1", "slots": "many"}, "slots"),
        ({"upstream": "127.0.0.1:1", "uplink_bps": 0}, "uplink_bps"),
        ({"upstream": "127.0.0.1:1", "answer_to": "none"}, "shared or cluster"),
        ({"upstream": "127.0.0.1:1", "routes": {"x": "127.0.0.1:1"}}, "routes"),
        ({"upstream": "[::1]:1", "listen": "127.0.0.1:0"}, "upstream"),
    ],
)
def test_a_switch_configuration_that_cannot_be_names_the_key(
    config: dict[str, object], hint: str
) -> None:
    with pytest.raises(ValueError, match=hint):
        _olaf.Switch(
            json.dumps({"listen": "127.0.0.1:0", **config} if hint != "upstream" else config)
        )


@pytest.mark.parametrize(
    ("config", "hint"),
    [
        ({"rule": "best"}, "delta or paper-literal"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"step": "median"}, "mean, sum or overlap"),
        ({"gate": "some"}, "none, best or recent"),
        ({"keep_versions": 0}, "keep_versions"),
        ({"sede": 1}, "sede"),
    ],
)
def test_a_server_configuration_that_cannot_be_names_the_key(
    config: dict[str, object], hint: str
) -> None:
    with pytest.raises(ValueError, match=hint):
        _olaf.Server(json.dumps({"listen": "127.0.0.1:0", **config}))


@pytest.mark.parametrize("address", ["nowhere", "tcp://127.0.0.1:1", "127.0.0.1:0", "::1:5"])
def test_an_address_that_cannot_be_says_what_to_write(address: str) -> None:
    with pytest.raises(ValueError, match="address"):
        _olaf.Client(address, job=1, cluster=0)


def test_stopping_is_final_and_keeps_the_counts(network: Network) -> None:
    server = network.server()
    switch = network.switch(server.address)
    client = network.client(switch.address)
    client.join(zeros(), 10.0)
    switch.stop()
    switch.stop()
    assert stats(switch)["forwarded"]["up"] >= 1
    with pytest.raises(ValueError, match="make a new one"):
        switch.start()
    again = network.switch(server.address, switch.address)
    assert again.address == switch.address
    until(lambda: stats(again)["workers"], "the worker at the new switch")
