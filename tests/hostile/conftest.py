"""Parties of a test, which end with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from forging import Attacker
from parties import Party


@pytest.fixture
def party() -> Iterator[Callable[..., Party]]:
    parties: list[Party] = []

    def start(kind: str, **config: Any) -> Party:
        one = Party(kind, {"listen": "127.0.0.1:0", **config})
        parties.append(one)
        return one

    yield start
    for one in reversed(parties):
        one.stop()


@pytest.fixture
def server(party: Callable[..., Party]) -> Party:
    """Applies each update as it is, so that progress can be read off the model."""
    return party("server", learning_rate=1.0, step="mean", staleness_power=0.0)


@pytest.fixture
def switch(party: Callable[..., Party], server: Party) -> Party:
    return party("switch", upstream=server.address)


@pytest.fixture
def attacker(switch: Party) -> Iterator[Attacker]:
    one = Attacker(switch.place)
    yield one
    one.close()
