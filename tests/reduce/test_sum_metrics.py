"""Each field of the statistics of engines and workers that sum is a metric, or left out by name."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import numpy as np
import pytest
from workers import together

from olaf import SumConnection, _olaf
from olaf.sums.protocols import PROTOCOLS

SUMS = {"reduce": ["reduce"], **{n: [n, *p.beside] for n, p in PROTOCOLS.items() if p.sums_floats}}


def read(address: str | None, path: str) -> Any:
    with urllib.request.urlopen(f"http://{address}{path}", timeout=20) as answer:
        text = answer.read().decode()
    return json.loads(text) if path.endswith(".json") else text


@pytest.mark.parametrize("protocol", SUMS)
def test_engines_and_workers_that_sum(protocol: str) -> None:
    told = {"engines": SUMS[protocol], "listen": "127.0.0.1:0", "metrics": "127.0.0.1:0"}
    switch = _olaf.Switch(json.dumps(told))
    switch.start()

    def work(connection: SumConnection) -> None:
        connection.all_reduce(np.ones(5000, np.float32))
        if connection.rank == 0:
            status = read(switch.metrics_address, "/status.json")
            assert _olaf.metrics_unmapped(json.dumps(status)) == []
            text = read(switch.metrics_address, "/metrics")
            assert f'olaf_sum_received_pieces_total{{engine="{protocol}"}}' in text
            client = connection._client
            assert isinstance(client, _olaf.SumClient)
            own = read(client.metrics_address, "/status.json")
            assert _olaf.metrics_unmapped(json.dumps(own)) == []
            text = read(client.metrics_address, "/metrics")
            assert 'olaf_sum_operations_total{state="done"} 1.0' in text

    try:
        together(switch.address, 2, work, protocol=protocol, metrics="127.0.0.1:0")
    finally:
        switch.stop()
