"""The address of this machine for the processes of a run."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from olaf.jobs.run_keys import listens_beyond
from olaf.jobs.settings import Settings
from olaf.jobs.supervisor import Supervisor
from olaf.processes.loopback import loopback


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test looks at the machine anew."""
    loopback.cache_clear()
    yield
    loopback.cache_clear()


def test_a_host_with_ipv6_alone_runs_on_its_own_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    class WithoutIpv4(socket.socket):
        def bind(self, address: Any) -> None:
            if self.family == socket.AF_INET:
                raise OSError(99, "Cannot assign requested address")
            super().bind(address)

    assert loopback() == "127.0.0.1"
    loopback.cache_clear()
    monkeypatch.setattr(socket, "socket", WithoutIpv4)
    assert loopback() == "[::1]"
    assert Supervisor()._host == "[::1]"
    here = {"switch": {"listen": "[::1]:0"}, "server": {"listen": f"{loopback()}:0"}}
    assert not listens_beyond(Settings.model_validate(here)), "it needs no key"
