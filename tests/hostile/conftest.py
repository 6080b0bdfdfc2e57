"""Parties of a test, which end with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from forging import Attacker
from parties import Party
from sum_formats import FORMATS, Format
from sum_parties import Stranger


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


@pytest.fixture(params=list(FORMATS))
def form(request: pytest.FixtureRequest) -> Format:
    """Each protocol that sums."""
    return FORMATS[request.param]


@pytest.fixture
def stranger() -> Iterator[Callable[..., Stranger]]:
    """Makes strangers, which end with the test."""
    all_of: list[Stranger] = []

    def appears(target: tuple[str, int], host: str = "127.0.0.1") -> Stranger:
        all_of.append(Stranger(target, host))
        return all_of[-1]

    yield appears
    for one in all_of:
        one.close()
