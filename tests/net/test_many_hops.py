"""Switches behind switches over real sockets: the allowed orders, and the end of a circle."""

from __future__ import annotations

import json

import numpy as np
import pytest
from ports import free_port
from waiting import until

from conftest import Events, Network, assert_sums_match, stats, zeros
from olaf import _olaf


@pytest.mark.parametrize("listen", ["127.0.0.1", "0.0.0.0"])
def test_a_switch_above_itself_is_refused_at_the_start(listen: str) -> None:
    port = free_port()
    config = {"listen": f"{listen}:{port}", "upstream": f"127.0.0.1:{port}"}
    config |= {"insecure": True}  # type: ignore[dict-item]
    with pytest.raises(ValueError, match=r"upstream = .* is this switch itself"):
        _olaf.Switch(json.dumps(config))
    routed = {**config, "upstream": "127.0.0.1:9", "routes": {"7": config["upstream"]}}
    with pytest.raises(ValueError, match=r"routes\.7 = .* is this switch itself"):
        _olaf.Switch(json.dumps(routed))


def test_two_switches_above_each_other_say_so_and_turn_workers_away(network: Network) -> None:
    later = f"127.0.0.1:{free_port()}"
    one = network.switch(later)
    other = network.switch(one.address, later)
    said = Events(other)
    client = network.client(one.address)
    with pytest.raises(_olaf.RefusedError, match="in a circle: correct their `upstream`"):
        client.join(zeros(), 10.0)
    told = until(lambda: said.named("loop"), "the circle")
    assert told[0]["address"] == one.address
    assert stats(other)["refused"]["loop"] > 0


def test_updates_merge_on_from_switch_to_switch_and_nothing_is_lost(network: Network) -> None:
    server = network.server(step="sum")
    # A datagram of 136 bytes takes 20 ms at the root: what comes meanwhile must merge.
    root = network.switch(server.address, uplink_bps=54_400)
    leaves = [network.switch(root.address, uplink_bps=544_000) for _ in range(2)]
    clients = [network.client(leaves[n % 2].address, cluster=0, worker=n) for n in range(4)]
    for client in clients:
        client.join(zeros(), 20.0)
    for number in range(20):
        lanes = np.zeros(10, np.float32)
        lanes[number % 10] = 1.0
        clients[number % 4].push([lanes], reward=0.0)
        # Each on its way before the next, which would take its place; nobody waits for answers.
        until(lambda c=clients[number % 4]: stats(c)["unsent"] == 0, "room in the socket")  # type: ignore[misc]

    def arrived() -> bool:
        job = stats(server)["jobs"][0]
        gone = sum(sum(replaced(stats(switch))) for switch in (*leaves, root))
        return int(job["received"]) + gone == 20

    until(arrived, "every contribution at the server")
    for switch in (*leaves, root):
        assert_sums_match(stats(switch))
    upper = stats(root)
    assert upper["received"] == sum(
        stats(leaf)["fates"]["sent_alone"] + stats(leaf)["fates"]["merged"] for leaf in leaves
    )
    assert upper["fates"]["merged"] > 0
    assert {below["address"] for below in upper["switches"]} == {leaf.address for leaf in leaves}
    assert all(stats(leaf)["servers"][0]["is_switch"] for leaf in leaves)
    for client in clients:
        until(lambda c=client: stats(c)["queue"]["switches"] == 2, "both switches' status")  # type: ignore[misc]


def replaced(switch: dict[str, dict[str, int]]) -> tuple[int, ...]:
    fates = switch["fates"]
    return fates["replaced"], fates["filtered"]
