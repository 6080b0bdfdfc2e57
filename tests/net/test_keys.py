"""Keys: who has none gets nowhere, and who has one notices nothing, on real sockets."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import olaf as command
from relay import Path as Way
from relay import Relay
from waiting import until

import olaf
from conftest import Network, address_of, events, stats, values, zeros
from olaf import _olaf
from olaf.jobs.words import sentence
from olaf.sums.protocols import PROTOCOLS

ENGINES = [name for name in PROTOCOLS if not name.startswith("switchml")]


@pytest.fixture
def key(tmp_path: Path) -> str:
    """A job's key, good for any job."""
    file = tmp_path / "job.key"
    _olaf.new_key(file)
    return str(file)


@pytest.fixture
def switch_key(key: str, tmp_path: Path) -> str:
    """What a switch needs of it."""
    file = tmp_path / "switch.key"
    _olaf.switch_key(key, file)
    return str(file)


def refused(party: _olaf.Switch | _olaf.Server) -> dict[str, int]:
    """What the keys of a party kept out, by reason."""
    return dict(stats(party)["keys"]["refused"])


def test_a_job_trains_behind_keys(network: Network, key: str, switch_key: str) -> None:
    server = network.server(key_files=[key])
    switch = network.switch(server.address, key_files=[switch_key])
    client = network.client(switch.address, key_file=key)
    client.join(zeros(100_000), 10.0)
    client.push([np.full(100_000, 2.0, np.float32)], reward=0.0)
    until(lambda: (server.model(1) or (0, zeros()))[0] == 2)
    model = server.model(1)
    assert model is not None
    np.testing.assert_array_equal(model[1], 2.0)
    for party in (server, switch):
        counts = stats(party)["keys"]
        assert counts["received"] == counts["opened"] + counts["handshakes"]
        assert counts["refused"] == {}


def test_models_are_taken_with_the_servers_signature_only(
    network: Network, key: str, switch_key: str
) -> None:
    server = network.server(key_files=[key])
    lower = network.switch(
        network.switch(server.address, key_files=[switch_key]).address, key_files=[switch_key]
    )
    client = network.client(lower.address, key_file=key)
    assert client.join(zeros(20_000), 10.0) == 1
    seen = 1
    for _ in range(20):
        client.push([np.ones(20_000, np.float32)], reward=0.0)
        came = client.wait(seen, 10.0)
        assert came is not None
        seen = came
    signatures = stats(client)["signatures"]
    assert signatures["checks"] is True
    assert signatures["checked"] >= 21
    assert [signatures[bad] for bad in ("forged", "unsigned", "wrong")] == [0, 0, 0]
    assert stats(server)["signatures"] >= 21


def test_a_server_or_worker_with_a_switchs_key_is_told_of(
    network: Network, key: str, switch_key: str
) -> None:
    config = {"listen": "127.0.0.1:0", "key_files": [switch_key]}
    with pytest.raises(ValueError, match=r"cannot sign models.*give the server the job's key"):
        _olaf.Server(json.dumps(config))
    listed = {"listen": "127.0.0.1:0", "jobs": [{"job": 1, "key_file": switch_key}]}
    with pytest.raises(ValueError, match=r"jobs: .*cannot sign models"):
        _olaf.Server(json.dumps(listed))
    server = network.server(key_files=[key])
    trusting = network.client(server.address, key_file=switch_key)
    assert trusting.join(zeros(), 10.0) >= 1
    assert "models_unchecked" in {event["event"] for event in events(trusting)}
    assert stats(trusting)["signatures"]["checks"] is False


def test_a_switch_says_once_that_its_key_is_a_jobs(
    network: Network, key: str, switch_key: str
) -> None:
    server = network.server(key_files=[key])
    for file, told in ((key, [key]), (switch_key, [])):
        switch = network.switch(server.address, key_files=[file])
        named = [one for one in events(switch) if one["event"] == "key_of_a_job"]
        assert [one["file"] for one in named] == told
        assert all(f"olaf keys switch {key} switch.key" in sentence(one) for one in named)
        assert not [one for one in events(switch) if one["event"] == "key_of_a_job"]


def test_who_has_no_key_gets_no_answer_and_hears_why(network: Network, key: str) -> None:
    server = network.server(key_files=[key])
    client = network.client(server.address)
    with pytest.raises(olaf.UnreachableError, match="only workers with the key of their job"):
        client.join(zeros(), 1.0)
    assert refused(server)["no_seal"] > 0
    assert stats(server)["jobs"] == []


def test_who_has_another_key_hears_so(network: Network, key: str, tmp_path: Path) -> None:
    other = tmp_path / "other.key"
    _olaf.new_key(other)
    server = network.server(key_files=[key])
    client = network.client(server.address, key_file=str(other))
    with pytest.raises(olaf.UnreachableError, match="no such key") as error:
        client.join(zeros(), 1.0)
    assert "is it running" not in str(error.value), "the switch has answered"
    assert refused(server)["no_such_key"] > 0
    plain = network.server()
    client = network.client(plain.address, key_file=str(other))
    with pytest.raises(olaf.UnreachableError, match="nobody there has answered it"):
        client.join(zeros(), 1.0)


def test_the_log_names_who_was_kept_out_a_few_times(network: Network, key: str) -> None:
    server = network.server(key_files=[key])
    client = network.client(server.address)
    with pytest.raises(olaf.UnreachableError):
        client.join(zeros(), 1.0)
    assert refused(server)["no_seal"] > 1
    (told,) = (one for one in events(server) if one["event"] == "key_refused")
    assert told["reason"] == "no_seal"
    assert told["address"].startswith("127.0.0.1:")
    assert "give it the key of its job" in told["advice"]


NEWER = b"OLAK\x09"
"""What a handshake of a later release begins with."""


def test_a_handshake_of_another_version_hears_which_one_is_spoken(
    network: Network, key: str, plain_socket: socket.socket
) -> None:
    server = network.server(key_files=[key])
    plain_socket.sendto(NEWER + bytes(91), address_of(server))
    assert plain_socket.recv(65_536)[:5] == b"OLAK\x02"
    # What is shorter than a handshake may be such an answer: two parties would never end.
    plain_socket.sendto(NEWER + bytes(90), address_of(server))
    until(lambda: refused(server)["other_version"] == 2)
    plain_socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        plain_socket.recv(65_536)
    (told,) = (one for one in events(server) if one["event"] == "other_version")
    assert (told["version"], told["own_version"]) == (9, 2)
    assert "this side is older" in told["reason"]


def test_a_worker_says_that_its_switch_has_seals_of_another_version(
    network: Network, key: str
) -> None:
    way = Relay(network.server().address, Way(mute=True))
    way.heard = lambda _: way.forge(NEWER + bytes(25))
    client = network.client(way.address, key_file=key)
    with pytest.raises(olaf.UnreachableError, match=r"version 9 of the seals.* version 2: install"):
        client.join(zeros(), 1.0)
    way.stop()


def test_the_key_of_one_job_opens_no_other(network: Network, tmp_path: Path) -> None:
    keys = [str(tmp_path / f"{job}.key") for job in (1, 2)]
    for job, file in enumerate(keys, start=1):
        _olaf.new_key(file, job)
    server = network.server(key_files=keys)
    with pytest.raises(ValueError, match="this key is for job 1, and the worker is of job 2"):
        network.client(server.address, job=2, key_file=keys[0])
    # A thief takes the job's number out of the file.
    stolen = tmp_path / "stolen.key"
    stolen.write_text(json.dumps(json.loads(Path(keys[0]).read_text()) | {"job": None}))
    stolen.chmod(0o600)
    thief = network.client(server.address, job=2, key_file=str(stolen))
    with pytest.raises(olaf.UnreachableError, match=r"takes this worker's key .* about job 2"):
        thief.join(zeros(), 1.0)
    assert refused(server)["other_job"] > 0
    told = [one["advice"] for one in events(server) if one["event"] == "key_refused"]
    assert told
    assert "not good for here" in told[0]
    for job, file in enumerate(keys, start=1):
        client = network.client(server.address, job=job, key_file=file)
        assert client.join(zeros(), 10.0) == 1
    with pytest.raises(ValueError, match="another of the key files is for job 1"):
        _olaf.Server(json.dumps({"listen": "127.0.0.1:0", "key_files": [keys[0], keys[0]]}))


@pytest.mark.parametrize("protocol", ENGINES)
def test_sums_are_exact_behind_keys_on_a_lossy_network(
    protocol: str, network: Network, key: str, switch_key: str
) -> None:
    chosen = PROTOCOLS[protocol]
    # The server of ATP is in the switch's process, and the switch its client.
    loss = {"probability": 0.01, "seed": 3}
    engines = [chosen.engine, *chosen.beside]
    switch = network.switch(
        "127.0.0.1:9", engines=engines, key_files=[switch_key], receive_loss=loss
    )
    size = 100_000

    def work(rank: int) -> Iterator[bool]:
        options = {"job": 3, "workers": 3, "rank": rank, "protocol": protocol, "key_file": key}
        with olaf.connect_sum(switch.address, **options) as job:  # type: ignore[arg-type]
            for _ in range(3):
                array = np.full(size, rank + 1, np.float32)
                job.all_reduce(array)
                yield bool(np.allclose(array, 6.0))

    assert all(all(each) for each in side_by_side(lambda rank: list(work(rank)), 3))
    counts = stats(switch)
    counts = counts.get("keys", counts.get(chosen.engine, {}).get("keys"))
    assert counts["opened"] > 0
    assert counts["refused"] == {}


def side_by_side(work: Callable[[int], list[bool]], workers: int) -> list[list[bool]]:
    """What each worker returned, in a thread of its own; a failed one has returned False."""
    found: list[list[bool]] = [[False] for _ in range(workers)]

    def run(rank: int) -> None:
        found[rank] = work(rank)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    return found


def test_what_was_recorded_or_changed_has_no_effect(
    network: Network, key: str, plain_socket: socket.socket
) -> None:
    server = network.server(key_files=[key])
    recorded: list[bytes] = []
    # In the middle: it sees every datagram, and has no key.
    way = Relay(server.address, Way())
    way.heard = recorded.append
    client = network.client(way.address, key_file=key)
    client.join(zeros(1000), 10.0)
    for _ in range(5):
        client.push([np.ones(1000, np.float32)], reward=0.0)
    until(lambda: (server.model(1) or (0,))[0] == 6)
    before = stats(server)["keys"]
    assert len(recorded) > 6
    for datagram in recorded:
        way.say(datagram)
        changed = bytearray(datagram)
        changed[len(changed) // 3] ^= 4
        way.say(bytes(changed))
        plain_socket.sendto(datagram, address_of(server))
    until(lambda: stats(server)["keys"]["received"] >= before["received"] + 3 * len(recorded))
    counts = stats(server)["keys"]
    assert counts["opened"] - before["opened"] <= 2, "heartbeats of the worker itself"
    assert counts["refused"]["replayed"] > 0
    assert counts["refused"]["bad_tag"] > 0
    assert counts["refused"]["unknown_association"] > 0
    model = server.model(1)
    assert model is not None
    assert model[0] == 6
    np.testing.assert_array_equal(model[1], 5.0)
    client.push(values(*[1.0] * 1000), reward=0.0)
    until(lambda: (server.model(1) or (0,))[0] == 7)
    way.stop()


def test_segments_fit_an_ethernet_frame_with_their_seal(network: Network, key: str) -> None:
    server = network.server(key_files=[key])
    way = Relay(server.address, Way(longest=1472))
    client = network.client(way.address, key_file=key)
    client.join(zeros(20_000), 20.0)
    client.push([np.ones(20_000, np.float32)], reward=0.0)
    until(lambda: (server.model(1) or (0,))[0] == 2)
    model = server.model(1)
    assert model is not None
    np.testing.assert_array_equal(model[1], 1.0)
    way.stop()


def test_the_environment_names_the_key(
    network: Network, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = network.server(key_files=[key])
    monkeypatch.setenv("OLAF_KEY_FILE", key)
    with olaf.connect(server.address) as connection:
        assert connection.join(zeros()) == 1


def test_sums_take_the_key_of_the_environment_as_under_torchrun(
    network: Network, key: str, switch_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch = network.switch("127.0.0.1:9", engines=["reduce"], key_files=[switch_key])
    place = {"job": 3, "workers": 1, "rank": 0}
    with pytest.raises(olaf.UnreachableError, match="only workers with the key of their job"):
        olaf.connect_sum(switch.address, **place, timeout_s=1.0)  # type: ignore[arg-type]
    monkeypatch.setenv("OLAF_KEY_FILE", key)
    with olaf.connect_sum(switch.address, **place) as job:  # type: ignore[arg-type]
        array = np.ones(100, np.float32)
        job.all_reduce(array)
    assert stats(switch)["reduce"]["keys"]["opened"] > 0


def test_keys_are_made_shown_and_kept_private(tmp_path: Path) -> None:
    job, own = tmp_path / "job.key", tmp_path / "switch.key"

    def keys(*argv: str | Path) -> Any:
        return command("keys", *map(str, argv), "--json")

    made = json.loads(keys("new", job, "--job", "7").stdout)
    assert made["job"] == 7
    switch = json.loads(keys("switch", job, own).stdout)
    assert (switch["name"], switch["kind"]) == (made["name"], "switch")
    assert json.loads(keys("show", own).stdout) == switch
    assert {os.stat(file).st_mode & 0o777 for file in (job, own)} == {0o600}
    again = keys("new", job)
    assert again.returncode == 1
    assert "exists" in again.stderr
    job.chmod(0o640)
    shown = keys("show", job)
    assert shown.returncode == 2
    assert f"chmod 600 {job}" in shown.stderr
    job.write_text("nothing")
    job.chmod(0o600)
    assert "is no key file" in keys("show", job).stderr


def test_a_whole_run_takes_the_key_of_the_environment(key: str, tmp_path: Path) -> None:
    argv = ("train", "--env", "CartPole-v1", "--workers", "2", "--leaves", "2", "--clusters", "2")
    options = ("--until-reward", "30", "--json", "--out", str(tmp_path / "run"))
    run = command(*argv, *options, environment=os.environ | {"OLAF_KEY_FILE": key})
    assert run.returncode == 0, run.stderr[-2000:]
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    behind = [report["stats"]["keys"] for report in record["reports"]]
    assert len(behind) >= 6, "two workers, two leaves, a switch and a server"
    assert all(counts["opened"] > 0 and counts["refused"] == {} for counts in behind)
