"""From push to pull over real sockets."""

from __future__ import annotations

import json

import numpy as np
import pytest
from waiting import until

from conftest import Network, assert_sums_match, stats, values, zeros
from olaf import _olaf


def test_what_is_pushed_comes_back_as_the_new_model(network: Network) -> None:
    server = network.server()
    switch = network.switch(server.address)
    client = network.client(switch.address)
    first = [np.full((2, 3), 5, np.float32), np.full(4, 7, np.float32)]
    assert client.join(first, 10.0) == 1

    sequence = client.push([np.ones((2, 3), np.float32), np.zeros(4, np.float32)], reward=1.0)
    assert sequence == 0
    assert client.wait(1, 10.0) == 2
    model = [np.empty((2, 3), np.float32), np.empty(4, np.float32)]
    assert client.pull(model, 0) == 2
    np.testing.assert_array_equal(model[0], 6)
    np.testing.assert_array_equal(model[1], 7)
    assert client.pull(model, 2) is None
    held = server.model(1)
    assert held is not None
    assert held[0] == 2
    np.testing.assert_array_equal(held[1], [6] * 6 + [7] * 4)
    assert_sums_match(stats(switch))


def test_the_second_worker_gets_the_job_s_model_and_not_its_own(network: Network) -> None:
    server = network.server()
    switch = network.switch(server.address)
    first, second = network.client(switch.address), network.client(switch.address)
    first.join(values(1, 2, 3), 10.0)
    second.join(values(9, 9, 9), 10.0)
    model = zeros(3)
    assert second.pull(model, 0) == 1
    np.testing.assert_array_equal(model[0], [1, 2, 3])


def test_an_update_is_answered_to_the_worker_that_sent_it(network: Network) -> None:
    server = network.server()
    switch = network.switch(server.address)
    first, second = network.client(switch.address), network.client(switch.address)
    for client in (first, second):
        client.join(zeros(), 10.0)
    first.push([np.ones(10, np.float32)], reward=0.0)
    assert first.wait(1, 10.0) == 2
    until(lambda: stats(first)["acknowledged"] == 1, "the acknowledgement")
    assert stats(first)["queue"]["slots"] == 8


def test_a_server_without_a_switch_serves_a_worker(network: Network) -> None:
    server = network.server()
    client = network.client(server.address)
    client.join(values(1, 1), 10.0)
    client.push(values(2, 3), reward=0.0)
    assert client.wait(1, 10.0) == 2
    model = zeros(2)
    client.pull(model, 0)
    np.testing.assert_array_equal(model[0], [3, 4])


@pytest.mark.parametrize("through", ["[::1]:0", "[::]:0"])
def test_ipv6_alone_and_beside_ipv4(network: Network, through: str) -> None:
    server = network.server(through, insecure=True)
    port = server.address.rsplit(":", 1)[1]
    switch = network.switch(f"[::1]:{port}", through, insecure=True)
    port = switch.address.rsplit(":", 1)[1]
    hosts = ["[::1]"] if through == "[::1]:0" else ["[::1]", "127.0.0.1", "udp://localhost"]
    clients = [network.client(f"{host}:{port}") for host in hosts]
    for client in clients:
        client.join(values(1, 2), 10.0)
    for step, client in enumerate(clients):
        client.push(values(1, 0), reward=0.0)
        assert client.wait(1 + step, 10.0) == 2 + step
    addresses = [worker["address"] for worker in stats(switch)["workers"]]
    assert len(addresses) == len(hosts)
    assert not any("ffff" in address for address in addresses)


def test_two_jobs_share_one_switch_and_two_servers(network: Network) -> None:
    one, two = network.server(), network.server()
    switch = network.switch(one.address, routes={"2": two.address})
    a, b = network.client(switch.address, job=1), network.client(switch.address, job=2)
    a.join(values(1, 1), 10.0)
    b.join(values(5, 5, 5), 10.0)
    a.push(values(1, 0), reward=0.0)
    b.push(values(0, 0, 1), reward=0.0)
    assert (a.wait(1, 10.0), b.wait(1, 10.0)) == (2, 2)
    model = one.model(1)
    assert model is not None
    np.testing.assert_array_equal(model[1], [2, 1])
    model = two.model(2)
    assert model is not None
    np.testing.assert_array_equal(model[1], [5, 5, 6])
    assert one.model(2) is None
    assert two.model(1) is None
    assert {server["job"] for server in stats(switch)["servers"]} == {1, 2}


def test_a_model_of_many_segments_comes_up_and_down_whole(network: Network) -> None:
    size = 1_600_000
    server = network.server()
    switch = network.switch(server.address)
    client = network.client(switch.address)
    first = np.arange(size, dtype=np.float32)
    client.join([first], 20.0)
    client.push([np.full(size, 2, np.float32)], reward=0.0)
    assert client.flush(10.0)
    segments = -(-size // 2208)
    until(
        lambda: stats(server)["jobs"][0]["received"] + lost(switch, server, client) == segments,
        "each of the segments, or the count of its loss",
    )
    version = client.wait(1, 20.0)
    assert version is not None
    model = [np.empty(size, np.float32)]
    assert client.pull(model, 0) is not None
    change = model[0] - first
    # Each segment is either applied or not; none is torn.
    for start in range(0, size, 2208):
        assert set(np.unique(change[start : start + 2208])) <= {0.0, 2.0}
    assert_sums_match(stats(switch))


def lost(*parties: _olaf.Switch | _olaf.Server | _olaf.Client) -> int:
    return sum(int(stats(party)["io"]["kernel_drops"]) for party in parties)


def test_behind_a_slow_uplink_updates_merge_and_the_server_takes_their_mean(
    network: Network,
) -> None:
    server = network.server()
    # One credit and nobody acknowledges but the server: what comes meanwhile waits, and merges.
    switch = network.switch(server.address, uplink_bps=40_000)
    clients = [network.client(switch.address, worker=n) for n in range(4)]
    for client in clients:
        client.join(zeros(100), 20.0)
    before = stats(server)["jobs"][0]["version"]
    for n, client in enumerate(clients):
        client.push([np.full(100, n, np.float32)], reward=float(n))
    until(lambda: stats(server)["jobs"][0]["received"] == 4, "all four contributions")
    counts = stats(switch)
    assert_sums_match(counts)
    fates = counts["fates"]
    assert fates["sent_alone"] + fates["merged"] == 4
    assert fates["merged"] >= 2
    assert counts["departures"] < 4
    job = stats(server)["jobs"][0]
    assert job["deliveries"] == counts["departures"] == job["version"] - before
    model = server.model(1)
    assert model is not None
    # Whichever updates merged, the mean of some of 0..3 is added each time.
    assert np.unique(model[1]).size == 1


def test_a_switch_with_one_credit_waits_for_the_server(network: Network) -> None:
    server = network.server()
    switch = network.switch(server.address, credits=1)
    client = network.client(switch.address)
    client.join(zeros(), 10.0)
    for step in range(50):
        client.push([np.ones(10, np.float32)], reward=0.0)
        assert client.wait(1 + step, 10.0) == 2 + step
    counts = stats(switch)
    assert counts["uplink"]["credits_expired"] == 0
    assert counts["uplink"]["outstanding"] == 0
    assert counts["fates"]["sent_alone"] == 50


def test_a_foreign_datagram_goes_up_untouched_where_a_list_names_its_sender(
    network: Network,
) -> None:
    import socket

    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as behind,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as before,
    ):
        behind.bind(("127.0.0.1", 0))
        behind.settimeout(10.0)
        host, port = behind.getsockname()
        before.bind(("127.0.0.1", 0))
        sender = "{}:{}".format(*before.getsockname())
        switch = network.switch(f"{host}:{port}", pass_from=[sender])
        own, own_port = switch.address.rsplit(":", 1)
        before.sendto(b"not ours at all", (own, int(own_port)))
        assert behind.recv(100) == b"not ours at all"
        behind.sendto(b"nor this", (own, int(own_port)))
        until(lambda: stats(switch)["refused"].get("foreign") == 1, "the count")
    assert stats(switch)["forwarded"]["untouched"] == 1


def test_a_worker_goes_on_in_another_cluster_while_the_job_runs(network: Network) -> None:
    server = network.server()
    switch = network.switch(server.address)
    client = network.client(switch.address, cluster=3)
    client.join([np.zeros(4, np.float32)], 10.0)
    client.push([np.ones(4, np.float32)], reward=0.0)
    client.move_to(8)
    client.push([np.ones(4, np.float32)], reward=0.0)

    def deliveries() -> dict[int, int]:
        clusters = json.loads(server.stats())["jobs"][0]["clusters"]
        return {one["cluster"]: one["deliveries"] for one in clusters}

    until(lambda: deliveries() == {3: 1, 8: 1}, "a delivery for each of the two clusters")
    said = [json.loads(event)["event"] for event in switch.events()]
    assert "worker_moved" in said
