"""A key is replaced while its job runs: real processes, a job that trains and a job that sums."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import message_of
from commands import olaf as command
from waiting import until

import olaf
from conftest import Events, Network, stats, zeros
from olaf import _olaf
from olaf.jobs.words import sentence

LANES = 2_000


class Role:
    """A switch or a server in a process, and what it has said last."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.address = str(message_of(process, "listening")["address"])
        self.stats: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        self._process = process
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            self.events.append(told)
            self.stats = told.get("stats", self.stats)

    def named(self, name: str) -> list[dict[str, Any]]:
        return [told for told in self.events if told["event"] == name]

    def with_old_key(self, engine: str | None = None) -> int:
        table = self.stats if engine is None else self.stats[engine]
        return int(table["keys"]["with_old_key"])


@contextmanager
def role(kind: str, *options: str) -> Iterator[Role]:
    argv = [sys.executable, "-m", "olaf", kind, "--json", "--every", "100ms"]
    argv += ["--listen", "127.0.0.1:0", *options]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Role(process)
        finally:
            process.kill()


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str]:
    """A job's key, the switch's, and a copy of the job's that nobody renews."""
    job, switch, old = (str(tmp_path / name) for name in ("job.key", "switch.key", "old.key"))
    _olaf.new_key(job)
    _olaf.switch_key(job, switch)
    shutil.copy(job, old)
    return job, switch, old


def keys(*argv: str) -> None:
    done = command("keys", *argv)
    assert done.returncode == 0, done.stderr


class Loop:
    """A worker that pushes and waits for the next model, until it is stopped."""

    def __init__(self, client: _olaf.Client) -> None:
        self.client = client
        self.pushed = 0
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            version = self.client.join(zeros(LANES), 20.0)
            while not self._stop.is_set():
                self.client.push([np.ones(LANES, np.float32)], reward=0.0)
                self.pushed += 1
                came = self.client.wait(version, 20.0)
                assert came is not None, "no model for 20 s"
                version = came
        except BaseException as error:
            self.error = error

    def goes_on(self) -> None:
        """Waits for twenty updates more."""
        goal = self.pushed + 20
        until(lambda: self.pushed >= goal or self.error, "twenty updates more")
        assert self.error is None

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30.0)
        assert self.error is None, self.error
        assert self.client.flush(20.0), "every update is confirmed"


def lost(party: dict[str, Any]) -> int:
    """Updates that were numbered and never came."""
    return int(party["arrivals"]["skipped"] - party["arrivals"]["late"])


def test_a_job_trains_through_a_rotation_and_loses_nothing(
    network: Network, files: tuple[str, str, str]
) -> None:
    job, own, old = files
    with (
        role("server", "--key-file", job) as server,
        role("switch", "--upstream", server.address, "--key-file", own) as switch,
    ):
        loops = [
            Loop(network.client(switch.address, cluster=at, worker=at + 1, key_file=job))
            for at in range(3)
        ]
        late = network.client(switch.address, cluster=3, worker=9, key_file=old)
        loops.append(Loop(late))
        said = Events(late)
        for loop in loops:
            loop.goes_on()
        keys("rotate", job, "--old-until", "1h")
        # The switch's file comes seconds later: workers have both keys, and the switch one.
        until(lambda: server.named("keys_renewed"), "the server's new key")
        until(lambda: all(Events(one.client).named("keys_renewed") for one in loops[:1]))
        for loop in loops:
            loop.goes_on()
        assert not switch.named("keys_renewed")
        keys("switch", job, own)
        until(lambda: switch.named("keys_renewed"), "the switch's new key")
        until(lambda: switch.with_old_key() == 1, "all but the worker with the old file")
        until(lambda: server.with_old_key() == 0, "the switch has moved")
        for loop in loops:
            loop.goes_on()
        # A newcomer takes the present key; one with the old file is let in, too.
        newcomer = network.client(switch.address, cluster=4, worker=10, key_file=job)
        newcomer.join(zeros(LANES), 20.0)
        assert stats(newcomer)["keys"]["with_old_key"] == 0
        loops.pop().stop()
        assert switch.with_old_key() == 1
        keys("rotate", job, "--finish")
        until(lambda: len(server.named("keys_renewed")) == 2, "the server's second file")
        keys("switch", job, own)
        until(lambda: len(switch.named("keys_renewed")) == 2, "the switch's second file")
        for loop in loops:
            loop.goes_on()
        (over,) = until(lambda: said.named("key_over"), "the old worker hears of it")
        name = json.loads(command("keys", "show", old, "--json").stdout)["name"]
        assert over["key"] == name
        assert f"key {name} was replaced" in sentence(over)
        refused = network.client(switch.address, cluster=5, worker=11, key_file=old)
        with pytest.raises(olaf.UnreachableError, match=f"key {name} .*was replaced") as error:
            refused.join(zeros(LANES), 2.0)
        assert "present key file" in str(error.value)
        until(lambda: switch.stats["keys"]["refused"].get("key_over", 0) > 0)
        told = until(lambda: switch.named("key_refused"))
        assert {"key_over"} <= {one["reason"] for one in told}
        for loop in loops:
            loop.stop()
        pushed = sum(loop.pushed for loop in loops)
        for client in (loop.client for loop in loops):
            counts = stats(client)
            assert counts["keys"]["held_too_long"] == counts["keys"]["no_association"] == 0
            assert [counts["signatures"][bad] for bad in ("forged", "wrong", "unsigned")] == [0] * 3
        until(lambda: switch.stats["received"] >= pushed)
        assert lost(switch.stats) == lost(server.stats) == 0
        assert sum(switch.stats["fates"]["dropped"].values()) == 0


@pytest.mark.parametrize("protocol", ["reduce", "iswitch"])
def test_sums_stay_exact_through_a_rotation_and_the_old_key_ends_on_time(
    protocol: str, files: tuple[str, str, str]
) -> None:
    job, own, old = files
    workers, done = 3, [0, 0, 0]
    stop = threading.Event()
    wrong: list[BaseException] = []

    def work(rank: int, address: str) -> None:
        place = {"job": 3, "workers": workers, "rank": rank, "protocol": protocol}
        try:
            with olaf.connect_sum(address, key_file=job, **place) as connection:  # type: ignore[arg-type]
                while True:
                    array = np.full(LANES, rank + 1.0, np.float32)
                    # Who is told to stop says so to all, as a worker of the sum.
                    array[0] = float(stop.is_set())
                    connection.all_reduce(array)
                    assert (array[1:] == 6.0).all()
                    done[rank] += 1
                    if array[0] > 0:
                        return
        except BaseException as error:
            wrong.append(error)

    def goes_on() -> None:
        goal = done[0] + 20
        until(lambda: done[0] >= goal or wrong, "twenty operations more")
        assert not wrong, wrong[0]

    with role("switch", "--engines", protocol, "--key-file", own) as switch:
        address = switch.address
        threads = [threading.Thread(target=work, args=(rank, address)) for rank in range(workers)]
        for thread in threads:
            thread.start()
        goes_on()
        keys("rotate", job, "--old-until", "6s")
        keys("switch", job, own)
        until(lambda: switch.named("keys_renewed"), "the switch's new key")
        goes_on()
        until(lambda: switch.with_old_key(protocol) == 0, "all have moved")
        goes_on()
        place = {"job": 4, "workers": 1, "rank": 0, "protocol": protocol, "key_file": old}

        def is_refused() -> str | None:
            try:
                with olaf.connect_sum(address, timeout_s=2.0, **place):  # type: ignore[arg-type]
                    return None
            except olaf.UnreachableError as error:
                return str(error)

        # Until its time is over a worker with the old file is let in.
        told = until(is_refused, "the end of the old key")
        assert "was replaced" in str(told)
        goes_on()
        stop.set()
        for thread in threads:
            thread.join(30.0)
        assert not wrong, wrong[0]
        assert len(set(done)) == 1
        counts = switch.stats[protocol]["keys"]
        # Workers may have the new key a moment before the switch. After the first datagram that
        # is too late, what a worker with the old file had here is forgotten.
        assert counts["refused"].keys() <= {"key_over", "no_such_key", "unknown_association"}
        assert switch.with_old_key(protocol) == 0


def test_a_file_that_is_no_key_changes_nothing(
    network: Network, files: tuple[str, str, str]
) -> None:
    job, _, _ = files
    server = network.server(key_files=[job])
    said = Events(server)
    client = network.client(server.address, key_file=job)
    version = client.join(zeros(), 10.0)
    Path(job).write_text("nothing")
    (told,) = until(lambda: said.named("keys_unreadable"))
    assert "is no key file" in told["reason"]
    client.push(zeros(), reward=0.0)
    assert client.wait(version, 20.0) is not None
    assert len(said.named("keys_unreadable")) == 1
