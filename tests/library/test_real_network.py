"""The library's face against a real switch and server in this process, and the example."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import olaf
from olaf._olaf import Server, Switch

EXAMPLE = Path(__file__).parents[2] / "examples" / "cartpole.py"


@pytest.fixture
def network() -> Iterator[tuple[Switch, Server]]:
    server = Server(json.dumps({"listen": "127.0.0.1:0", "learning_rate": 0.5}))
    server.start()
    switch = Switch(json.dumps({"listen": "127.0.0.1:0", "upstream": server.address}))
    switch.start()
    yield switch, server
    switch.stop()
    server.stop()


def test_an_update_moves_everybodys_model(network: tuple[Switch, Server]) -> None:
    switch, _ = network
    first = [np.ones((2, 3), np.float32), np.zeros(4, np.float32)]
    second = [np.full((2, 3), 9.0, np.float32), np.full(4, 9.0, np.float32)]
    with olaf.connect(f"udp://{switch.address}", job=1, cluster=0) as one:
        one.join(first)
        with olaf.connect(switch.address, job=1, cluster=0) as other:
            other.join(second)
            np.testing.assert_array_equal(second[0], first[0])
            one.push([np.full((2, 3), 2.0, np.float32), np.ones(4, np.float32)], reward=1.0)
            assert one.wait(timeout_s=10)
            assert one.pull(into=first)
            np.testing.assert_allclose(first[0], 2.0)
            np.testing.assert_allclose(first[1], 0.5)
            model = one.pull()
            assert model is None
            assert one.flush()
            assert one.stats()["contributions"] == 1


def test_a_model_of_another_size_is_refused_with_a_reason(
    network: tuple[Switch, Server],
) -> None:
    switch, _ = network
    with olaf.connect(switch.address) as one, olaf.connect(switch.address) as other:
        one.join(np.zeros(4, np.float32))
        with pytest.raises(olaf.RefusedError):
            other.join(np.zeros(5, np.float32), timeout_s=5)


def test_a_switch_that_is_not_there_is_named() -> None:
    with (
        olaf.connect("udp://127.0.0.1:9") as nobody,
        pytest.raises(olaf.UnreachableError, match=r"127\.0\.0\.1:9"),
    ):
        nobody.join(np.zeros(4, np.float32), timeout_s=0.3)


def test_the_example_is_short_and_two_of_it_train_one_model() -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 30
    server = Server(json.dumps({"listen": "127.0.0.1:0"}))
    server.start()
    switch = Switch(json.dumps({"listen": "127.0.0.1:0", "upstream": server.address}))
    switch.start()
    try:
        runs = [
            subprocess.Popen(
                [sys.executable, str(EXAMPLE), switch.address, str(seed)],
                stdout=subprocess.PIPE,
                text=True,
            )
            for seed in range(2)
        ]
        for run in runs:
            said, _ = run.communicate(timeout=100)
            assert run.returncode == 0
            words = said.split()
            assert float(words[2].rstrip(",")) > 20  # pushed at random it stays upright for 20
            assert int(words[-1]) > 10
        (job,) = json.loads(server.stats())["jobs"]
        assert job["received"] > 100
        assert {cluster["cluster"] for cluster in job["clusters"]} == {0, 1}
    finally:
        switch.stop()
        server.stop()
