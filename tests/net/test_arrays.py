"""Memory between Python and the core: taken where it lies, or refused with a reason."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import numpy as np
import pytest

from conftest import Network, stats, zeros
from olaf import _olaf


@pytest.fixture
def client(network: Network) -> _olaf.Client:
    client = network.client(network.server().address)
    client.join(zeros(6), 10.0)
    return client


@pytest.mark.parametrize(
    ("parts", "kind", "hint"),
    [
        ([np.zeros(6)], ValueError, "part 0 holds float64"),
        ([np.zeros(6, ">f4")], ValueError, "byte order"),
        ([np.zeros(3, np.float32), np.zeros((3, 2), np.float32)[:, 0]], ValueError, "part 1"),
        ([np.zeros((2, 3), np.float32, order="F")], ValueError, "not C-contiguous"),
        (np.zeros(6, np.float32), TypeError, "list of arrays"),
        ([[0.0] * 6], TypeError, "part 0 is a list"),
        (7, TypeError, "iter"),
    ],
)
def test_what_cannot_be_read_in_place_says_what_to_do(
    client: _olaf.Client, parts: Any, kind: type[Exception], hint: str
) -> None:
    with pytest.raises(kind, match=hint):
        client.push(parts, reward=0.0)
    assert stats(client)["updates"] == 0


def test_what_cannot_be_written_in_place_says_so(client: _olaf.Client) -> None:
    fixed = np.zeros(6, np.float32)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="part 0 cannot be written"):
        client.pull([fixed], 0)
    twice = np.zeros(3, np.float32)
    with pytest.raises(ValueError, match="part 1 cannot be written"):
        client.pull([twice, twice], 0)
    with pytest.raises(ValueError, match="5 values together; the job's model has 6"):
        client.pull(zeros(5), 0)
    assert client.pull(zeros(6), 0) == 1


def test_ids_are_checked() -> None:
    for job in (-1, 1 << 32):
        with pytest.raises(OverflowError):
            _olaf.Client("127.0.0.1:1", job=job, cluster=0)
    with pytest.raises(ValueError, match="stands for all workers"):
        _olaf.Client("127.0.0.1:1", job=1, cluster=0, worker=0xFFFFFFFF)
    with pytest.raises(ValueError, match="keepalive"):
        _olaf.Client("127.0.0.1:1", job=1, cluster=0, config=json.dumps({"keepalive_ms": 0}))


def test_a_worker_without_an_id_draws_one_and_a_seed_settles_it() -> None:
    drawn = {_olaf.Client("127.0.0.1:1", job=1, cluster=0).worker for _ in range(8)}
    assert len(drawn) == 8
    seeded = {
        _olaf.Client("127.0.0.1:1", job=1, cluster=0, config='{"seed": 4}').worker for _ in range(3)
    }
    assert len(seeded) == 1


def test_other_threads_run_while_one_waits(client: _olaf.Client) -> None:
    ticks = 0
    done = threading.Event()

    def wait() -> None:
        assert client.wait(100, 0.5) is None
        done.set()

    thread = threading.Thread(target=wait)
    thread.start()
    while not done.is_set():
        ticks += 1
        time.sleep(0.001)
    thread.join()
    assert ticks > 10


def test_a_timeout_that_is_no_number_is_refused(client: _olaf.Client) -> None:
    with pytest.raises(ValueError, match="timeout_s"):
        client.wait(0, float("nan"))
    assert client.wait(0, float("inf")) == 1
    assert client.wait(1, -1.0) is None


def test_a_rate_reads_as_tc_writes_it() -> None:
    assert _olaf.parse_rate("1.9mbit") == 1_900_000
    with pytest.raises(ValueError, match="fast"):
        _olaf.parse_rate("fast")


def test_a_rule_is_tried_without_a_network() -> None:
    weights = np.zeros(2, np.float32)
    rule = json.dumps({"rule": "paper-literal", "learning_rate": 0.5})
    sums = np.array([4, -4], np.float32)
    applied = _olaf.apply_rule(
        rule, weights, [(sums, 2.0, 10.0, 0, 2, 0.0), (sums, 2.0, 9.0, 0, 2, 0.0)]
    )
    assert applied == [True, False]
    np.testing.assert_array_equal(weights, [1, -1])
    with pytest.raises(ValueError, match="update 0 has 3 lanes"):
        _olaf.apply_rule("{}", weights, [(np.zeros(3, np.float32), 1.0, 0.0, 0, 1, 0.0)])
