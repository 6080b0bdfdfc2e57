"""Parties without the key of the job: they get nowhere, the role counts them and names them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forging import Attacker, lanes
from parties import SIZE, Honest, Party
from waiting import until

import olaf
from olaf import _olaf

MANY, PUSHES = 200, 40


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    files = {name: str(tmp_path / f"{name}.key") for name in ("job", "other", "switch")}
    _olaf.new_key(files["job"])
    _olaf.new_key(files["other"])
    _olaf.switch_key(files["job"], files["switch"])
    return files


@pytest.mark.parametrize("kind", ["switch", "server"])
def test_parties_with_another_key_or_none_are_counted_and_named(
    party: Callable[..., Party], keys: dict[str, str], kind: str
) -> None:
    own = {"metrics": "127.0.0.1:0"}
    server = party("server", learning_rate=1.0, step="mean", key_files=[keys["job"]], **own)
    place = server
    if kind == "switch":
        place = party("switch", upstream=server.address, key_files=[keys["switch"]], **own)
    honest = Honest(place.address, 1, key_file=keys["job"])
    honest.push()
    before = place.memory_mib()

    def counts() -> dict[str, Any]:
        found: dict[str, Any] = place.status()["keys"]["refused"]
        return found

    assert counts() == {}
    without = Attacker(place.place)
    for number in range(MANY):
        without.send(without.join(SIZE, worker=600 + number))
        without.send(without.update(lanes(1e30, SIZE), sequence=number))
        without.send(without.fetch())
    other = _olaf.Client(
        place.address, job=1, cluster=0, worker=7, config=f'{{"key_file": "{keys["other"]}"}}'
    )
    with pytest.raises(olaf.UnreachableError, match="no such key"):
        other.join([np.zeros(SIZE, np.float32)], 0.5)
    until(lambda: sum(counts().values()) >= 0.9 * 3 * MANY, "refusals on the status page")
    # What is as long as a handshake is taken for a seal of an association that is not known.
    assert {"no_seal", "unknown_association", "no_such_key"} == set(counts())
    while without.receive(None, 0.05):
        pass
    assert without.received_bytes < without.sent_bytes / 2, "hints, that the key is not known"
    told = [event for event in place.events() if event["event"] == "key_refused"]
    host, port = without.socket.getsockname()
    assert {event["reason"] for event in told} == {"no_seal", "no_such_key"}
    assert f"{host}:{port}" in {event["address"] for event in told}
    assert len(told) == 2, "one line for each reason"
    assert place.memory_mib() - before < 8
    assert honest.progress(PUSHES) >= 0.9 * PUSHES
    workers = server.stats()["jobs"][0]["clusters"][0]["workers"]
    assert workers == 1, "nobody else is in"
    without.close()
