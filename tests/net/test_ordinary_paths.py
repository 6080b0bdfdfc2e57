"""Real processes over ordinary paths: an MTU of 1500, 1400 in the middle, long ways, loss."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest
from namespaces import Namespaces, namespaces
from relay import Path, Relay
from waiting import until

from conftest import Events, Network, stats, zeros
from olaf import RefusedError

ROLE = File(__file__).with_name("role.py")
SIZE = 30_000

WORKER = """
import json, sys, time
import numpy as np
import olaf
with olaf.connect(sys.argv[1], job=1, worker=int(sys.argv[2])) as switch:
    weights = [np.zeros(30_000, np.float32)]
    try:
        switch.join(weights, timeout_s=30.0)
    except olaf.RefusedError as error:
        print(json.dumps({"refused": str(error)}), flush=True)
        sys.exit()
    for _ in range(5):
        switch.push([np.ones(30_000, np.float32)])
        switch.wait(10.0)
        switch.pull()
    flushed = switch.flush(10.0)
    print(json.dumps({"stats": switch.stats(), "events": switch.events(), "flushed": flushed}))
"""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def relayed(stack: ExitStack, target: str, path: Path) -> Relay:
    relay = Relay(target, path)
    stack.callback(relay.stop)
    return relay


def learns(client: Any) -> None:
    before = int(stats(client)["model_version"])
    client.push([np.ones(SIZE, np.float32)], reward=0.0)
    until(lambda: int(stats(client)["model_version"]) > before, "a newer model")


def test_a_job_starts_and_learns_over_120_ms_one_percent_of_loss_and_1500_bytes(
    network: Network, stack: ExitStack
) -> None:
    server = network.server(round_ms=200)
    switch = network.switch(server.address, slots=400)
    path = Path(delay_s=0.06, jitter_s=0.01, loss=0.01, longest=1472)
    relay = relayed(stack, switch.address, path)
    client = network.client(relay.address)
    said = Events(client)
    client.join(zeros(SIZE), 30.0)
    found = until(lambda: said.named("path"), "what the path carries")
    assert (found[0]["mtu_bytes"], found[0]["segment_lanes"]) == (1500, 340)
    assert stats(client)["path"]["mtu_bytes"] == 1500
    questions = path.too_long
    assert questions > 0, "the path does drop what is too long"
    learns(client)
    assert path.too_long == questions, "nothing too long is sent after the join"
    assert stats(client)["path_round_trip_ns"] > 100_000_000


def test_a_newcomer_behind_a_narrower_path_is_told_both_sizes_and_is_quiet(
    network: Network, stack: ExitStack
) -> None:
    server = network.server()
    switch = network.switch(server.address)
    wide = network.client(switch.address)
    wide.join(zeros(SIZE), 10.0)
    path = Path(longest=1472)
    late = network.client(relayed(stack, switch.address, path).address)
    with pytest.raises(RefusedError, match=r"packets of 1500 bytes at most.*mtu_bytes = 1500"):
        late.join(zeros(SIZE), 10.0)
    assert stats(late)["io"]["sent_datagrams"] < 60


def test_flush_says_what_arrived_and_not_what_left(network: Network, stack: ExitStack) -> None:
    server = network.server()
    switch = network.switch(server.address)
    path = Path()
    client = network.client(relayed(stack, switch.address, path).address)
    client.join(zeros(), 10.0)
    client.push([np.ones(10, np.float32)], reward=0.0)
    assert client.flush(10.0)
    assert (stats(client)["acknowledged"], stats(client)["awaited"]) == (1, 0)
    path.loss = 1.0
    client.push([np.ones(10, np.float32)], reward=0.0)
    assert not client.flush(0.2)
    assert (stats(client)["acknowledged"], stats(client)["awaited"]) == (1, 1)


def role(stack: ExitStack, where: Namespaces, kind: str, **config: Any) -> str:
    command = [sys.executable, str(ROLE), kind, json.dumps(config)]
    process = where.run(len(where.names) - 1, *command)
    stack.callback(process.wait)
    stack.callback(process.kill)
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize(("mtus", "found"), [([1500], 1500), ([1500, 1400], 1400), ([9000], 8972)])
def test_the_cut_follows_the_path_between_machines(
    stack: ExitStack, mtus: list[int], found: int
) -> None:
    where = namespaces(stack, mtus)
    server = role(stack, where, "server", listen=f"{where.server_host}:0", insecure=True)
    switch = role(
        stack, where, "switch", listen=f"{where.server_host}:0", upstream=server, insecure=True
    )
    with where.run(0, sys.executable, "-c", WORKER, f"udp://{switch}", "1") as worker:
        assert worker.stdout is not None
        said = json.loads(worker.stdout.readline())
    path = next(event for event in said["events"] if event["event"] == "path")
    assert path["mtu_bytes"] == found
    statistics = said["stats"]
    assert statistics["model_version"] > 1
    assert statistics["io"]["too_large"] == 0
    assert said["flushed"], statistics
