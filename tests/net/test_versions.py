"""Parties of different releases tell each other so."""

from __future__ import annotations

import socket
import threading

import pytest
from waiting import until

import olaf
from conftest import Events, Network, stats, zeros


def test_a_worker_names_the_version_of_a_switch_of_another_release(
    network: Network, plain_socket: socket.socket
) -> None:
    plain_socket.settimeout(20.0)

    def answer() -> None:
        join, sender = plain_socket.recvfrom(65_536)
        plain_socket.sendto(join[:4] + b"\x09" + join[5:], sender)

    other = threading.Thread(target=answer)
    other.start()
    address = f"127.0.0.1:{plain_socket.getsockname()[1]}"
    client = network.client(address)
    with pytest.raises(olaf.UnreachableError, match=r"speaks version 9 .* install the same"):
        client.join(zeros(), 1.0)
    other.join()


@pytest.mark.parametrize("party", ["switch", "server"])
def test_a_join_of_another_version_hears_which_one_is_spoken(
    network: Network, plain_socket: socket.socket, party: str
) -> None:
    server = network.server()
    asked = network.switch(server.address) if party == "switch" else server
    host, _, port = asked.address.rpartition(":")
    plain_socket.settimeout(20.0)
    old_join = b"OLAF\x01\x04" + bytes(58)
    plain_socket.sendto(old_join, (host, int(port)))
    answer = plain_socket.recv(65_536)
    assert answer[:6] == b"OLAF\x03\x05"
    # What is no join is not answered: nobody can be made to send more than they were sent.
    plain_socket.sendto(b"OLAF\x01\x01" + bytes(200), (host, int(port)))
    plain_socket.sendto(old_join[:24], (host, int(port)))

    def refused() -> bool:
        return int(stats(asked)["refused"].get("wrong_version", 0)) == 3

    until(refused, "three refusals")
    plain_socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        plain_socket.recv(65_536)


@pytest.mark.parametrize("party", ["switch", "server"])
def test_datagrams_of_another_version_are_told_once_with_both_versions(
    network: Network, plain_socket: socket.socket, party: str
) -> None:
    server = network.server()
    asked = network.switch(server.address) if party == "switch" else server
    host, _, port = asked.address.rpartition(":")
    for _ in range(30):
        plain_socket.sendto(b"OLAF\x01\x01" + bytes(200), (host, int(port)))

    def refused() -> bool:
        return int(stats(asked)["refused"].get("wrong_version", 0)) == 30

    until(refused, "thirty refusals")
    told = Events(asked).named("other_version")
    assert len(told) == 1, "strangers fill no log"
    assert (told[0]["version"], told[0]["own_version"]) == (1, 3)
    assert told[0]["address"] == f"127.0.0.1:{plain_socket.getsockname()[1]}"
    assert "older: install the same release" in told[0]["reason"]
