"""Whole engines, driven by hand: time and datagrams are arguments of every call."""

import json

import numpy as np
import pytest

from olaf._olaf import Engine

SERVER, SWITCH = 100, 50
MS = 1_000_000


class Cluster:
    """A server, a switch and workers; every datagram takes a millisecond."""

    def __init__(self, workers: int, **switch: object) -> None:
        config = json.dumps({"server": SERVER, **switch})
        self.engines = {
            SERVER: Engine("server", "{}", life=3),
            SWITCH: Engine("switch", config, life=2),
        }
        for worker in range(workers):
            who = {"worker": worker, "switch": SWITCH, "cluster": 1}
            self.engines[worker] = Engine("worker", json.dumps(who), life=10 + worker)
        self.now = 1_000 * MS
        self.events: list[tuple[int, dict[str, object]]] = []
        self.verdicts: list[str] = []

    def run(self, milliseconds: int) -> None:
        for _ in range(milliseconds):
            self.now += MS
            flying = [sent for at in self.engines for sent in self.leaving(at)]
            for sender, receiver, data in flying:
                engine = self.engines[receiver]
                port = 1 if receiver == SWITCH and sender != SERVER else 0
                verdict = engine.handle_packet(self.now, sender, data, port)
                self.verdicts.append(verdict)
                self.hear(receiver)

    def leaving(self, at: int) -> list[tuple[int, int, bytes]]:
        engine = self.engines[at]
        due = engine.poll_timeout()
        if due is not None and due <= self.now:
            engine.handle_timeout(self.now)
        self.hear(at)
        sent = []
        for port in range(engine.ports):
            while (datagram := engine.poll_transmit(self.now, port)) is not None:
                receivers, data, _ = datagram
                sent += [(at, receiver, data) for receiver in receivers]
        return sent

    def hear(self, at: int) -> None:
        while (event := self.engines[at].poll_event()) is not None:
            self.events.append((at, event))


def test_two_workers_train_through_a_switch() -> None:
    cluster = Cluster(2)
    model = np.zeros(4, np.float32)
    for worker in (0, 1):
        cluster.engines[worker].join(cluster.now, model)
    cluster.run(500)
    names = [(at, event["event"]) for at, event in cluster.events]
    expected = {(0, "joined"), (1, "joined"), (SERVER, "model_started"), (SWITCH, "worker_joined")}
    assert expected <= set(names)
    # The first takes the uplink; the second, one instant later, has a departure of its own.
    for worker in (0, 1):
        update = np.full(4, worker + 1, np.float32)
        assert cluster.engines[worker].push(cluster.now, update, reward=1.0) == 0
    cluster.run(200)
    newest = cluster.engines[SERVER].model()
    assert newest is not None
    version, parameters = newest
    pulled = np.zeros(4, np.float32)
    assert cluster.engines[0].pull(pulled) == version
    assert np.array_equal(pulled, parameters)
    assert parameters.any()
    report = cluster.engines[SWITCH].report(cluster.now)
    fates = report["fates"]
    assert report["received"] == 2
    assert fates["sent_alone"] + fates["merged"] == 2
    assert [server["address"] for server in report["servers"]] == [SERVER]
    assert set(cluster.verdicts) == {"absorbed"}
    assert sorted(cluster.engines[SWITCH].peers()) == [0, 1]


def test_updates_that_meet_in_the_queue_leave_as_one() -> None:
    cluster = Cluster(3, uplink_bps=20_000, slots=4)
    for worker in range(3):
        cluster.engines[worker].join(cluster.now, np.zeros(4, np.float32))
    cluster.run(3_000)
    for worker in range(3):
        cluster.engines[worker].push(cluster.now, np.ones(4, np.float32))
    cluster.run(3_000)
    fates = cluster.engines[SWITCH].report(cluster.now)["fates"]
    assert (fates["sent_alone"], fates["merged"]) == (1, 2), "two met while the first was sent"


def test_bytes_that_are_not_ours_are_refused_with_a_reason() -> None:
    switch = Engine("switch", '{"server": 9}')
    assert switch.handle_packet(0, 1, b"a stranger's datagram", port=1) == "foreign"
    server = Engine("server")
    assert server.handle_packet(0, 1, b"a stranger's datagram") == "not_ours"
    assert server.report(0)["refused"] == {"not_ours": 1}


@pytest.mark.parametrize(
    ("role", "config", "says"),
    [
        ("gateway", "{}", "must be one of switch, sum_switch, iswitch, trio, atp"),
        ("switch", '{"slots": 0}', "slots"),
        ("switch", '{"slotz": 8}', "slotz: a switch has no such key"),
        ("server", '{"keep_versions": "many"}', "keep_versions"),
        ("worker", "[]", "configuration"),
    ],
)
def test_a_configuration_that_cannot_be_names_its_key(role: str, config: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Engine(role, config)


def test_only_a_worker_pushes() -> None:
    with pytest.raises(ValueError, match="only a worker does this"):
        Engine("server").push(0, np.ones(1, np.float32))
    worker = Engine("worker")
    with pytest.raises(ValueError, match="join"):
        worker.push(0, np.ones(1, np.float32))


def test_a_switch_that_sums_answers_a_join_without_sockets() -> None:
    switch = Engine("sum_switch", '{"jobs": 1}', 7)
    join = bytearray(64)
    join[:6] = b"OLFR\x04\x05"
    join[11], join[23] = 1, 9  # the job, the session
    join[16:20] = b"\xff" * 4  # any rank
    join[35], join[39] = 2, 1  # the job has two workers; this end stands for one
    join[50:52] = (1472).to_bytes(2, "big")
    assert switch.handle_packet(1_000, 3, bytes(join), port=1) == "absorbed"
    sent = switch.poll_transmit(1_000, port=1)
    assert sent is not None
    to, welcome, _ = sent
    assert (to, welcome[5], welcome[62]) == ([3], 6, 2), "it waits for the other worker"
    assert switch.report(1_000)["jobs"][0]["waiting_workers"] == 1
    # Of another address a job that has not begun would give way.
    refused = switch.handle_packet(2_000, 3, bytes(join[:11] + b"\x02" + join[12:]), port=1)
    assert refused == "full"


@pytest.mark.parametrize(
    ("role", "verdict"),
    [
        ("iswitch", "foreign"),
        ("trio", "truncated"),
        ("atp", "truncated"),
        ("atp_server", "truncated"),
    ],
)
def test_an_engine_of_a_paper_takes_no_other_packet(role: str, verdict: str) -> None:
    engine = Engine(role, '{"jobs": 1}', 7)
    assert engine.report(1_000)["jobs"] == []
    port = 0 if role == "atp_server" else 1
    assert engine.handle_packet(1_000, 3, b"a web page", port=port) == verdict
