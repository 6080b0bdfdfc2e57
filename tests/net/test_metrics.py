"""What a server serves over HTTP beside its packets."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import numpy as np
import pytest
from waiting import until

import olaf
from conftest import Network
from olaf import _olaf


def read(address: str | None, path: str) -> Any:
    with urllib.request.urlopen(f"http://{address}{path}", timeout=20) as answer:
        text = answer.read().decode()
    return json.loads(text) if path.endswith(".json") else text


def test_a_scrape_does_not_disturb_packets(network: Network) -> None:
    """The statistics are asked for four times a second at most, however many ask."""
    server = network.server(metrics="127.0.0.1:0")
    first = read(server.metrics_address, "/status.json")["olaf"]["at_unix_s"]
    times = {read(server.metrics_address, "/status.json")["olaf"]["at_unix_s"] for _ in range(60)}
    times.add(first)
    assert len(times) <= 2 + (max(times) - first) / 0.25


def test_the_catalogue_names_what_a_scrape_shows(network: Network) -> None:
    server = network.server(metrics="127.0.0.1:0")
    network.client(server.address).join([np.zeros(3, np.float32)], 10.0)
    names = {name for name, _, _ in _olaf.metrics_catalogue()}
    lines = read(server.metrics_address, "/metrics").splitlines()
    shown = {line.split("{")[0].split(" ")[0] for line in lines if not line.startswith("#")}
    assert shown <= names
    assert "olaf_age_of_model_seconds" in names


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="expected"):
        _olaf.metrics("no")


def test_who_finds_an_engine_full_is_counted_in_the_metrics(network: Network) -> None:
    jobs = [{"job": 2, "max_workers": 1}]
    switch = network.switch("127.0.0.1:9", engines=["reduce"], metrics="127.0.0.1:0", jobs=jobs)
    with pytest.raises(olaf.RefusedError, match="max_workers"):
        olaf.connect_sum(switch.address, job=2, workers=2, timeout_s=5.0)
    line = 'olaf_sum_refused_datagrams_total{engine="reduce",reason="full"} 1.0'
    until(lambda: line in read(switch.metrics_address, "/metrics"), line)
