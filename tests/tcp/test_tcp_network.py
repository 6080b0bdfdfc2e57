"""The plain TCP server and its relay over real sockets: the rate holds, and bad input is named."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from olaf.errors.outcome import Exit, RunError
from olaf.tcp import frames
from olaf.tcp.client import TcpClient
from olaf.tcp.frames import Join, Lanes, Push, Refused
from olaf.tcp.relay import Relay, RelayConfig
from olaf.tcp.server import ServerConfig, TcpServer

PARAMETERS = 500
RATE_BPS = 400_000


@pytest.fixture
def server() -> Iterator[TcpServer]:
    made = TcpServer(
        ServerConfig(
            listen="127.0.0.1:0", job=1, rule={"staleness_power": 0.0}, most_parameters=10_000,
            most_workers=3, timeout_s=5.0, idle_s=30.0,
        )
    )  # fmt: skip
    made.start()
    yield made
    made.stop()


@pytest.fixture
def relay(server: TcpServer) -> Iterator[Relay]:
    made = Relay(
        RelayConfig(
            listen="127.0.0.1:0", upstream=server.address, rate_bps=RATE_BPS, most_connections=3,
            timeout_s=5.0, idle_s=30.0, buffer_bytes=4096,
        )
    )  # fmt: skip
    made.start()
    yield made
    made.stop()


def parts() -> list[Lanes]:
    return [np.zeros(PARAMETERS, np.float32)]


def client(address: str, worker: int) -> TcpClient:
    return TcpClient(address, cluster=0, worker=worker, timeout_s=10.0, buffer_bytes=4096)


@pytest.mark.slow
def test_the_relay_holds_the_rate_for_all_connections_together(
    server: TcpServer, relay: Relay
) -> None:
    """Two workers push as fast as their sends return: bytes over time are the uplink's."""
    both = [client(relay.address, worker) for worker in (1, 2)]
    for one in both:
        one.join(parts(), 10.0)
    over = time.monotonic() + 3.0

    def pour(one: TcpClient) -> None:
        while time.monotonic() < over:
            one.push(parts(), reward=0.0)

    before, began = json.loads(relay.stats())["bytes"]["up"], time.monotonic()
    threads = [threading.Thread(target=pour, args=(one,)) for one in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20.0)
    took = time.monotonic() - began
    bits = 8 * (json.loads(relay.stats())["bytes"]["up"] - before)
    # Never above, but for the burst; a busy machine may be late, not by half.
    assert bits <= RATE_BPS * (took + 0.05) + 8 * 2 * 1460
    assert bits >= 0.5 * RATE_BPS * took
    assert all(json.loads(one.stats())["blocked_s"] > 0.5 for one in both)  # TCP held them back
    assert all(one.flush(10.0) for one in both)
    sent = sum(json.loads(one.stats())["sent"] for one in both)
    (job,) = json.loads(server.stats())["jobs"]
    assert job["received"] == job["fates"]["delivered_alone"] == sent > 10
    for one in both:
        one.leave()


def test_what_is_pushed_changes_the_model_of_everybody(server: TcpServer) -> None:
    first, second = client(server.address, 1), client(server.address, 2)
    own = [np.full(PARAMETERS, 2.0, np.float32)]
    assert first.join(own, 5.0) == 1
    assert second.join(parts(), 5.0) == 1
    model = parts()
    assert second.pull(model, 0) == 1
    assert (model[0] == 2.0).all()  # the first worker's weights start the job
    second.push([np.full(PARAMETERS, 3.0, np.float32)], reward=1.0)
    assert second.wait(1, 5.0) == 2
    assert second.pull(model, 1) == 2
    assert (model[0] == 5.0).all()
    assert second.pull(model, 2) is None
    first.leave()
    second.leave()


def test_a_first_worker_that_dies_before_its_weights_leaves_the_place_to_the_next(
    server: TcpServer,
) -> None:
    with closing(_connected(server.address)) as half:
        half.sendall(frames.write(Join(1, 0, PARAMETERS)))
        assert half.recv(5)[4] == frames.Kind.OFFER
        waiting = client(server.address, 2)
        joined: list[int] = []
        thread = threading.Thread(target=lambda: joined.append(waiting.join(parts(), 10.0)))
        thread.start()
    thread.join(15.0)
    assert joined == [1]
    waiting.leave()


@pytest.mark.parametrize(
    ("data", "kind", "said"),
    [
        (b"\xff\xff\xff\xff", "malformed", "a frame of 4294967295 bytes"),
        (b"\x00\x00\x00\x00", "malformed", "a frame of 0 bytes"),
        (b"\x00\x00\x00\x01\x09", "malformed", "unknown kind 9"),
        (b"\x00\x00\x00\x01\x02", "malformed", "a connection begins with JOIN"),
        (frames.write(Join(1, 0, 20_000)), "refused", "the limit is 10000"),
        (
            frames.write(Join(1, 0, 2)) + frames.write(Push(0, 1, 0.0, 1.0, 0, parts()[0][:2])),
            "malformed",
            "WEIGHTS answer an OFFER",
        ),
    ],
)
def test_a_malformed_frame_ends_its_connection_with_the_reason(
    server: TcpServer, data: bytes, kind: str, said: str
) -> None:
    with closing(_connected(server.address)) as bad:
        bad.sendall(data)
        answer = b""
        while chunk := bad.recv(4096):
            answer += chunk
    refused = frames.parse(answer[answer.rindex(bytes([frames.Kind.REFUSED])) :], 0)
    assert isinstance(refused, Refused)
    assert said in refused.why
    assert json.loads(server.stats())["refused"][kind] == 1
    # Others go on.
    good = client(server.address, 3)
    assert good.join(parts(), 5.0) == 1
    good.leave()


def test_more_connections_than_there_may_be_are_closed(server: TcpServer) -> None:
    most = 3 + 16  # workers, and connections that have not named their worker yet
    held = [_connected(server.address) for _ in range(most + 1)]
    try:
        deadline = time.monotonic() + 10.0
        while json.loads(server.stats())["refused"]["too_many"] == 0:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert json.loads(server.stats())["refused"]["too_many"] == 1
    finally:
        for one in held:
            one.close()


def test_a_server_that_sends_nonsense_is_named(server: TcpServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as fake:
        address = "{}:{}".format(*fake.getsockname())

        def answer() -> None:
            connection, _ = fake.accept()
            with connection:
                connection.sendall(b"\x00\x00\x00\x01\x03")
                connection.recv(1000)

        thread = threading.Thread(target=answer)
        thread.start()
        one = client(address, 1)
        with pytest.raises(RunError, match="WEIGHTS: 1 bytes instead of") as error:
            one.join(parts(), 5.0)
        one.leave()
        thread.join(5.0)
    assert error.value.code == Exit.FAILED


def test_nobody_there_and_nobody_answering_are_said_with_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = "{}:{}".format(*silent.getsockname())
        with pytest.raises(RunError, match=f"no model from {address} within 0.3 s") as error:
            client(address, 1).join(parts(), 0.3)
        assert error.value.code == Exit.UNREACHABLE
    with pytest.raises(RunError, match=f"{address}: cannot connect"):
        client(address, 1).join(parts(), 0.3)


def test_a_push_that_blocks_ends_when_it_is_told_to_stop() -> None:
    """Nobody reads at the other end: the send blocks, and the update counts as unsent."""
    stopping = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = "{}:{}".format(*deaf.getsockname())
        one = TcpClient(
            address, cluster=0, worker=1, flush_s=0.1, buffer_bytes=4096, stop=stopping.is_set
        )
        one._parameters = 5_000_000
        one._connect(time.monotonic() + 5.0)
        timer = threading.Timer(0.3, stopping.set)
        timer.start()
        began = time.monotonic()
        one.push([np.zeros(5_000_000, np.float32)], reward=0.0)
        assert 0.3 <= time.monotonic() - began < 5.0
        stats = json.loads(one.stats())
        assert (stats["contributions"], stats["sent"], stats["unsent"]) == (1, 0, 1)
        one.leave()
        timer.join()


def _connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=5.0)
