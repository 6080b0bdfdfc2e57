"""ATP in trees of processes, with a file that says where workers are, and beside a queue."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import message_of, olaf
from waiting import PATIENCE_S, until
from workers import Worker

from olaf import _olaf

TOPOLOGY = {
    "switches": {"rack1": "pod", "rack2": "pod", "pod": "top", "top": None},
    "workers": {"rack1": ["0-1"], "rack2": [2, 3], "top": [4]},
}


class Switch:
    """``olaf switch`` as a process, and what it has said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        listening = message_of(process, "listening")
        self.address: str = listening["address"]
        self.engines: dict[str, str] = listening["engines"]
        self.said: list[dict[str, Any]] = []
        self._process = process
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.said.extend(json.loads(line) for line in self._process.stdout)

    def named(self, event: str) -> list[dict[str, Any]]:
        return [message for message in list(self.said) if message["event"] == event]

    def stats(self) -> dict[str, Any]:
        """What it counted last; empty before it has said so."""
        last = self.named("stats")
        found: dict[str, Any] = last[-1]["stats"] if last else {}
        return found


@contextmanager
def switch(*options: str) -> Iterator[Switch]:
    command = [sys.executable, "-m", "olaf", "switch", "--json", "--every", "50ms"]
    argv = [*command, "--listen", "127.0.0.1:0", *options]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Switch(process)
        finally:
            process.kill()


@contextmanager
def tree(topology: Path) -> Iterator[tuple[Switch, list[str]]]:
    """Two racks below a pod below the switch with the server; that one, and all with workers."""

    def named(name: str, *above: str) -> tuple[str, ...]:
        upstream = [f"atp={address}" for address in above]
        options = ["--engines", "atp", *(f"--upstream={address}" for address in upstream)]
        return (*options, "--set", f"switch.atp.name={name}")

    file = ("--set", f"switch.atp_server.topology={topology}")
    with (
        switch("--engines", "atp,atp_server", "--set", "switch.atp.name=top", *file) as top,
        switch(*named("pod", top.address)) as pod,
        switch(*named("rack1", pod.address)) as first,
        switch(*named("rack2", pod.address)) as second,
    ):
        yield top, [first.address, second.address, top.address]


@contextmanager
def workers(addresses: list[str]) -> Iterator[list[Worker]]:
    """A worker of ATP at each of the switches, in the order of their ranks."""
    told = {"workers": len(addresses), "protocol": "atp"}
    all_of_them = [Worker(at, rank=rank, **told) for rank, at in enumerate(addresses)]
    try:
        assert [worker.answer()["rank"] for worker in all_of_them] == list(range(len(addresses)))
        yield all_of_them
    finally:
        for worker in all_of_them:
            worker.end()


def sums(ranks: list[Worker], size: int) -> None:
    """All workers sum; the results are right."""
    for worker in ranks:
        worker.tell(do="sum", size=size)
    expected = float(sum(range(1, len(ranks) + 1)))
    for worker in ranks:
        answer = worker.answer()
        assert (answer.get("value"), answer.get("differ")) == (expected, 0), answer


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    file = tmp_path / "topology.json"
    file.write_text(json.dumps(TOPOLOGY))
    return file


def server_of(top: Switch) -> dict[str, Any]:
    found: dict[str, Any] = top.stats().get("atp_server", {})
    return found


def test_three_levels_of_processes_add_what_the_file_says(topology: Path) -> None:
    with tree(topology) as (top, at), workers([at[place] for place in (0, 0, 1, 1, 2)]) as ranks:
        sums(ranks, 59 * 50)
        sums(ranks, 59 * 50)
        counted = until(lambda: (server_of(top).get("fragments", 0) >= 100) and server_of(top))
    [job] = counted["jobs"]
    assert (job["levels"], job["misplaced"], counted["misplaced"]) == (4, [], 0)
    # Packets have 59 values: the fields of the other levels take the place of three.
    assert counted["fragments"] == 100
    assert counted["gradients"]["sums"] > 50, counted["gradients"]
    assert [len(member["switches"]) for member in job["members"]] == [3, 3, 3, 3, 1]


def test_a_worker_elsewhere_than_the_file_says_is_named_and_its_sums_are_right(
    topology: Path,
) -> None:
    with tree(topology) as (top, at), workers([at[place] for place in (0, 1, 1, 1, 2)]) as ranks:
        sums(ranks, 1_000)
        [told] = until(lambda: top.named("sum_worker_misplaced"))
        assert (told["rank"], told["engine"]) == (1, "atp_server")
        until(lambda: server_of(top).get("misplaced"))
        counted = server_of(top)
    assert counted["jobs"][0]["misplaced"] == [
        {"rank": 1, "planned": ["rack1", "pod", "top"], "found": ["rack2", "pod", "top"]}
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"switches": {"a": "b", "b": "a"}}', "switches.a: the way up from it is a circle"),
        ('{"switches": {"a": "c"}}', 'switches.a: "c" is not in `switches`: add it there'),
        ('{"switches": {"a": null},\n "workers": {"a": [1, 1]}}', 'worker 1 is also at "a"'),
        ('{"switches": {"a": null},\n "worker": {}}', "unknown field `worker`"),
        ('{"switches": {"a": null},\n "worker": {}}', "line 2"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_is_refused_with_its_name(
    tmp_path: Path, text: str | None, told: str
) -> None:
    file = tmp_path / "wrong.json"
    if text is not None:
        file.write_text(text)
    options = ("--engines", "atp,atp_server", "--listen", "127.0.0.1:0")
    ended = olaf("switch", *options, "--set", f"switch.atp_server.topology={file}")
    assert ended.returncode == 2
    assert "atp_server.topology" in ended.stderr
    assert str(file) in ended.stderr
    assert told in ended.stderr


PUSHES = 300


class Pusher(threading.Thread):
    """A worker of the queue that pushes until it is done, and takes models meanwhile."""

    def __init__(self, address: str, worker: int, begins: threading.Barrier) -> None:
        super().__init__(daemon=True)
        self.client = _olaf.Client(address, job=5, cluster=worker, worker=worker)
        self._begins = begins
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            update = [np.ones(100, np.float32)]
            self.client.join([np.zeros(100, np.float32)], PATIENCE_S)
            self._begins.wait(PATIENCE_S)
            for _ in range(PUSHES):
                self.client.push(update, reward=1.0)
                until(lambda: not self.client.awaits_end(), "an answer")
        except BaseException as error:
            self._begins.abort()
            self.error = error


def test_an_asynchronous_job_and_one_of_atp_share_a_switch() -> None:
    """Both at the same time: every update is accounted for, and every sum is exact."""
    server = _olaf.Server(json.dumps({"listen": "127.0.0.1:0"}))
    server.start()
    engines = ("--engines", "queue,atp,atp_server", "--upstream", server.address)
    try:
        with switch(*engines) as shared, workers([shared.engines["atp"]] * 2) as ranks:
            begins = threading.Barrier(3)
            pushers = [Pusher(shared.engines["queue"], worker, begins) for worker in (0, 1)]
            for pusher in pushers:
                pusher.start()
            begins.wait(PATIENCE_S)
            rounds = 0
            while any(pusher.is_alive() for pusher in pushers) or rounds == 0:
                sums(ranks, 20_000)
                rounds += 1
            for pusher in pushers:
                pusher.join(PATIENCE_S)
                assert pusher.error is None, pusher.error
            pushed = PUSHES * len(pushers)

            def has_all() -> dict[str, Any] | None:
                counted = shared.stats()
                added = counted.get("atp_server", {}).get("fragments", 0)
                is_all = counted.get("received") == pushed and added == rounds * -(-20_000 // 62)
                return counted if is_all else None

            counted = until(has_all)
            assert counted is not None
            fates = counted["fates"]
            kept = sum(fates[fate] for fate in ("sent_alone", "merged", "replaced", "filtered"))
            lost = sum(fates["dropped"].values()) + sum(fates["rejected"].values())
            assert kept + lost + fates["waiting"] == pushed
            assert (fates["waiting"], fates["rejected"]) == (0, dict.fromkeys(fates["rejected"], 0))
            gradients = dict(counted["atp_server"]["gradients"])
            assert gradients.pop("received") == sum(gradients.values())
            pieces = dict(counted["atp"]["pieces"])
            without_memory = pieces.pop("without_memory")
            assert (pieces.pop("received"), without_memory) == (sum(pieces.values()), 0)
            assert rounds > 1, "the jobs ran at the same time"
        served = json.loads(server.stats())
        [job] = served["jobs"]
        assert job["received"] == fates["sent_alone"] + fates["merged"]
        settled = [job["fates"][fate] for fate in ("delivered_alone", "delivered_merged", "gated")]
        assert job["received"] == sum(settled) + sum(job["fates"]["rejected"].values())
    finally:
        server.stop()
