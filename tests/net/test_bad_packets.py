"""What a plain socket sends is counted by what is wrong with it, and costs nobody anything."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

import numpy as np
import pytest
from waiting import until

from conftest import (
    Events,
    Network,
    address_of,
    assert_sums_match,
    stats,
    zeros,
)
from olaf import _olaf

UPDATE, ACKNOWLEDGEMENT, JOIN = 1, 2, 4
LANES = 10


def common(kind: int, *, version: int = 3, flags: int = 0, job: int = 1, worker: int = 5) -> bytes:
    return b"OLAF" + struct.pack(">BBHIIII", version, kind, flags, job, 0, worker, 77)


def update(
    lanes: bytes, *, count: int | None = None, worker: int = 5, job: int = 1, number: int = 1
) -> bytes:
    """An update; ``number`` counts the datagrams of its sender."""
    count = len(lanes) // 4 if count is None else count
    rest = struct.pack(">IIIIQQIIIIddB7x", 0, number, 0, 1, 1, 1, 1, 1, 1, count, 1.0, 0.0, 0)
    return common(UPDATE, worker=worker, job=job) + rest + lanes


FINE = bytes(4 * LANES)
NAN = struct.pack("<f", float("nan")) * LANES


@pytest.fixture
def parties(network: Network) -> tuple[_olaf.Server, _olaf.Switch, _olaf.Client]:
    server = network.server()
    switch = network.switch(server.address)
    client = network.client(switch.address, worker=1)
    client.join(zeros(LANES), 10.0)
    return server, switch, client


MALFORMED: list[tuple[bytes, str]] = [
    (b"OLAF", "truncated"),
    (common(UPDATE), "truncated"),
    (update(FINE)[:-1], "truncated"),
    (update(FINE, count=LANES + 1), "truncated"),
    (update(FINE) + b"x", "oversized"),
    (common(JOIN) + bytes(1000), "oversized"),
    (common(UPDATE, version=1) + bytes(200), "wrong_version"),
    (common(99), "unknown_kind"),
    (common(UPDATE, flags=1) + bytes(200), "unknown_flags"),
    (update(FINE, count=1 << 30), "bad_field"),
    (common(JOIN) + bytes(48), "bad_field"),
    (common(ACKNOWLEDGEMENT) + bytes(88), "wrong_direction"),
]


@pytest.mark.parametrize(("datagram", "reason"), MALFORMED)
def test_what_is_no_message_is_counted_and_training_goes_on(
    parties: tuple[_olaf.Server, _olaf.Switch, _olaf.Client],
    plain_socket: socket.socket,
    datagram: bytes,
    reason: str,
) -> None:
    server, switch, client = parties
    for party in (switch, server):
        plain_socket.sendto(datagram, address_of(party))
    until(lambda: stats(switch)["refused"].get(reason) == 1, f"{reason} at the switch")
    if reason != "wrong_direction" or datagram[5] == ACKNOWLEDGEMENT:
        until(lambda: stats(server)["refused"].get(reason) == 1, f"{reason} at the server")
    client.push([np.ones(LANES, np.float32)], reward=0.0)
    assert client.wait(1, 10.0) == 2
    assert_sums_match(stats(switch))


REJECTED: list[tuple[Callable[[], bytes], str]] = [
    (lambda: update(FINE, worker=5), "unknown_worker"),
    (lambda: update(FINE, worker=1), "wrong_sender"),
    (lambda: update(FINE, job=9), "unknown_worker"),
]


@pytest.mark.parametrize(("make", "reason"), REJECTED)
def test_an_update_under_another_s_name_is_rejected_and_told(
    parties: tuple[_olaf.Server, _olaf.Switch, _olaf.Client],
    plain_socket: socket.socket,
    make: Callable[[], bytes],
    reason: str,
) -> None:
    server, switch, client = parties
    said = Events(switch)
    plain_socket.sendto(make(), address_of(switch))
    until(lambda: stats(switch)["fates"]["rejected"].get(reason) == 1, reason)
    told = until(lambda: said.named("contribution_rejected"), "the event")
    assert told[0]["reason"] == reason
    host, port = plain_socket.getsockname()
    assert told[0]["address"] == f"{host}:{port}"
    client.push([np.ones(LANES, np.float32)], reward=0.0)
    assert client.wait(1, 10.0) == 2
    assert stats(server)["jobs"][0]["received"] == 1
    assert_sums_match(stats(switch))


def test_numbers_that_are_none_are_rejected_at_the_switch_by_name(
    network: Network, plain_socket: socket.socket
) -> None:
    server = network.server()
    switch = network.switch(server.address)
    honest = network.client(switch.address, worker=1)
    honest.join(zeros(LANES), 10.0)
    # A worker made by hand joins, for no client of ours lets a NaN out.
    join = common(JOIN, worker=6) + struct.pack(">IIIIQqB15x", 0, LANES, 2208, 0, 1, 0, 0)
    plain_socket.sendto(join, address_of(switch))
    until(
        lambda: [w for w in stats(switch)["workers"] if w["worker"] == 6 and w["admitted"]],
        "worker 6",
    )
    said = Events(switch)
    plain_socket.sendto(update(NAN, worker=6), address_of(switch))
    until(lambda: stats(switch)["fates"]["rejected"].get("non_finite") == 1, "the rejection")
    wrong_size = update(bytes(4 * (LANES + 1)), worker=6, number=2)
    plain_socket.sendto(wrong_size, address_of(switch))
    until(lambda: stats(switch)["fates"]["rejected"].get("wrong_size") == 1, "the other one")
    assert {event["worker"] for event in said.named("contribution_rejected")} == {6}
    honest.push([np.ones(LANES, np.float32)], reward=0.0)
    assert honest.wait(1, 10.0) == 2
    assert_sums_match(stats(switch))


def test_a_client_lets_no_number_out_that_is_none(network: Network) -> None:
    server = network.server()
    client = network.client(server.address)
    client.join(zeros(3), 10.0)
    with pytest.raises(ValueError, match="value 1 is NaN"):
        client.push([np.array([0, np.nan, 0], np.float32)], reward=0.0)
    with pytest.raises(ValueError, match="reward"):
        client.push(zeros(3), reward=float("inf"))
    with pytest.raises(ValueError, match="weight"):
        client.push(zeros(3), reward=0.0, weight=0.0)
    with pytest.raises(ValueError, match="4 values; the job's model has 3"):
        client.push(zeros(4), reward=0.0)
    assert client.push(zeros(3), reward=0.0) == 0
    assert stats(client)["contributions"] == 1


def test_a_flood_of_garbage_loses_nothing_of_anybody_else_s(
    parties: tuple[_olaf.Server, _olaf.Switch, _olaf.Client], plain_socket: socket.socket
) -> None:
    server, switch, client = parties
    random = np.random.default_rng(5)
    sent = 0
    for step in range(30):
        for datagram, _ in MALFORMED:
            plain_socket.sendto(datagram, address_of(switch))
            noise = random.bytes(int(random.integers(24, 2000)))
            plain_socket.sendto(b"OLAF" + noise, address_of(switch))
            sent += 2
        client.push([np.ones(LANES, np.float32)], reward=0.0)
        assert client.wait(1 + step, 10.0) == 2 + step

    def refused() -> bool:
        counts = stats(switch)
        return int(sum(counts["refused"].values())) + int(counts["io"]["kernel_drops"]) >= sent

    until(refused, "a count for each")
    assert stats(server)["jobs"][0]["received"] == 30
    assert_sums_match(stats(switch))


def test_many_strangers_do_not_make_the_switch_forget_its_workers(
    parties: tuple[_olaf.Server, _olaf.Switch, _olaf.Client],
) -> None:
    _, switch, client = parties
    before = stats(switch)["io"]["received_datagrams"]
    count = 300
    for _ in range(count):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(common(99), address_of(switch))
    until(lambda: stats(switch)["io"]["received_datagrams"] >= before + count, "all strangers")
    client.push([np.ones(LANES, np.float32)], reward=0.0)
    assert client.wait(1, 10.0) == 2
