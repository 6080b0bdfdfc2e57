"""Congestion marks (ECN) over real sockets: a switch puts them on, the next party counts them."""

from __future__ import annotations

from typing import Any

import numpy as np
from waiting import until

from conftest import Network, assert_sums_match, stats, zeros
from olaf import _olaf

WORKERS = 4
SLOW_BPS = 20_000
"""An update of ten parameters takes tens of milliseconds: others queue behind it."""
DEPTH = 2


def loaded(network: Network, *, ecn: bool) -> tuple[_olaf.Server, _olaf.Switch, list[_olaf.Client]]:
    """A server, a switch with slow links and a small mark depth, and workers that push at once.

    A queue without merging keeps every update waiting; an answer goes to all workers.
    """
    server = network.server(ecn=ecn)
    switch = network.switch(
        server.address,
        queue="fifo",
        answer_to="cluster",
        uplink_bps=SLOW_BPS,
        downlink_bps=SLOW_BPS,
        uplink_ecn_depth_datagrams=DEPTH,
        downlink_ecn_depth_datagrams=DEPTH,
    )
    clients = [
        network.client(switch.address, worker=n, ecn=ecn, segment_lanes=10) for n in range(WORKERS)
    ]
    for client in clients:
        client.join(zeros(), 20.0)
    for client in clients:
        client.push([np.ones(10, np.float32)], reward=0.0)
    until(lambda: stats(server)["jobs"][0]["received"] == WORKERS, "all contributions")
    return server, switch, clients


def arrived(party: _olaf.Server | _olaf.Client) -> int:
    """Datagrams that came to this party with a mark."""
    return int(stats(party)["io"]["ecn_marked"])


def marked(switch: _olaf.Switch) -> tuple[int, int]:
    """Datagrams that the switch marked, up and down."""
    counts: dict[str, Any] = stats(switch)
    (downlink,) = counts["downlinks"]
    return counts["uplink"]["marked"], downlink["marked"]


def test_every_mark_of_a_congested_switch_arrives_and_is_counted(network: Network) -> None:
    server, switch, clients = loaded(network, ecn=True)
    # Of four updates that wait together at least two leave with another one behind them, and so do
    # the first answers of each group of four.
    until(lambda: min(marked(switch)) >= 2, "marks up and down")
    until(lambda: arrived(server) == marked(switch)[0], "the server's count")
    until(lambda: sum(map(arrived, clients)) == marked(switch)[1], "the workers' counts")
    assert arrived(server) >= 2
    assert_sums_match(stats(switch))


def test_a_switch_marks_no_datagram_of_a_sender_without_ecn(network: Network) -> None:
    server, switch, clients = loaded(network, ecn=False)
    assert marked(switch) == (0, 0)
    assert arrived(server) == 0
    assert [arrived(client) for client in clients] == [0] * WORKERS


def test_the_report_says_how_each_link_is_set_up(network: Network) -> None:
    server = network.server()
    switch = network.switch(
        server.address, downlink="1mbit", downlink_limit_datagrams=9, uplink_ecn_depth_datagrams=3
    )
    counts = stats(switch)
    (downlink,) = counts["downlinks"]
    expected = {
        "port": 1,
        "pacer": "rate",
        "bits_per_second": 1_000_000,
        "limit_datagrams": 9,
        "ecn_depth_datagrams": None,
    }
    assert {key: downlink[key] for key in expected} == expected
    assert counts["uplink"]["ecn_depth_datagrams"] == 3
