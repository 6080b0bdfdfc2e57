"""What a server does with a push is known to the worker from its join on."""

from __future__ import annotations

import json

import pytest

from conftest import Network, zeros


def test_a_worker_knows_the_rule_of_its_server(network: Network) -> None:
    server = network.server(
        rule="paper-literal", learning_rate=0.25, step="sum", aggregate="round", staleness_power=0.5
    )
    client = network.client(network.switch(server.address).address)
    assert client.rule() is None
    assert json.loads(client.stats())["rule"] is None
    client.join(zeros(), 10.0)
    told = json.loads(client.rule() or "{}")
    assert told == {
        "kind": "paper-literal",
        "aggregate": "round",
        "step": "sum",
        "gate": "none",
        "factor": 0.25,
        "staleness_power": 0.5,
    }
    assert json.loads(client.stats())["rule"] == told


def test_by_default_a_push_moves_the_model_by_what_it_says(network: Network) -> None:
    from olaf import _olaf

    server = _olaf.Server('{"listen": "127.0.0.1:0"}')
    server.start()
    try:
        client = network.client(server.address)
        version = client.join(zeros(), 10.0)
        parts = zeros()
        client.pull(parts, 0)
        client.push([part + 3.0 for part in zeros()], reward=0.0)
        assert client.wait(version, 10.0) is not None
        client.pull(parts, version)
        assert parts[0].tolist() == pytest.approx([3.0] * 10)
    finally:
        server.stop()
