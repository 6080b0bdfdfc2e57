"""Joins from addresses that nobody is at: they take few places, with and without keys."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forging import Attacker
from parties import SIZE, Honest, Party

from olaf import _olaf

PUSHES = 40

Parties = tuple[Party, Party, dict[str, Any]]


@pytest.fixture(params=["clear", "keys"])
def parties(request: pytest.FixtureRequest, party: Callable[..., Party], tmp_path: Path) -> Parties:
    """A server, a switch, and what a worker needs to be let in."""
    files: dict[str, dict[str, Any]] = {"server": {}, "switch": {}, "worker": {}}
    if request.param == "keys":
        job, own = str(tmp_path / "job.key"), str(tmp_path / "switch.key")
        _olaf.new_key(job)
        _olaf.switch_key(job, own)
        files = {
            "server": {"key_files": [job]},
            "switch": {"key_files": [own]},
            "worker": {"key_file": job},
        }
    plain = {"learning_rate": 1.0, "step": "mean", "staleness_power": 0.0}
    server = party("server", **plain, **files["server"])
    switch = party("switch", upstream=server.address, **files["switch"])
    return server, switch, files["worker"]


def forged(target: tuple[str, int], count: int, join: Callable[[Attacker, int], bytes]) -> None:
    """A join from each of as many addresses, none of which hears an answer."""
    writer = Attacker(target)
    for number in range(count):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.bind((f"127.1.{number >> 8}.{number & 255}", 0))
            one.sendto(join(writer, number), target)
    writer.close()


def goes_on(honest: Honest) -> None:
    """At least 90 % of what is undisturbed, which is 1 for each push."""
    assert honest.progress(PUSHES) >= 0.9 * PUSHES


def test_workers_at_17000_forged_addresses_keep_no_worker_out(parties: Parties) -> None:
    server, switch, key = parties
    honest = Honest(switch.address, 1, **key)
    forged(switch.place, 17_000, lambda writer, number: writer.join(SIZE, worker=1_000 + number))
    here = switch.stats()
    assert len(here["workers"]) <= 400
    assert len(json.dumps(here)) < 400_000, "a line of --json"
    assert sum(c["workers"] for job in server.stats()["jobs"] for c in job["clusters"]) <= 9_700
    goes_on(Honest(switch.address, 2, **key))
    goes_on(honest)
    assert len(switch.events()) < 4_400
    assert len(server.events()) < 4_400


def test_jobs_of_300_forged_addresses_keep_no_new_job_out(parties: Parties) -> None:
    server, switch, key = parties
    honest = Honest(switch.address, 1, **key)
    forged(switch.place, 300, lambda writer, number: writer.join(SIZE, job=10_000 + number))
    # The same number again, as another minute of the attack.
    forged(switch.place, 300, lambda writer, number: writer.join(SIZE, job=20_000 + number))
    goes_on(Honest(switch.address, 1, job=2, **key))
    goes_on(Honest(switch.address, 1, job=3, **key))
    goes_on(honest)
    assert len(server.stats()["jobs"]) <= 100


def test_workers_at_forged_addresses_keep_nobody_from_a_server_without_a_switch(
    parties: Parties,
) -> None:
    server, _, key = parties
    honest = Honest(server.address, 1, **key)
    forged(server.place, 17_000, lambda writer, number: writer.join(SIZE, worker=1_000 + number))
    workers = sum(c["workers"] for job in server.stats()["jobs"] for c in job["clusters"])
    assert workers <= 400
    goes_on(Honest(server.address, 2, **key))
    goes_on(honest)
