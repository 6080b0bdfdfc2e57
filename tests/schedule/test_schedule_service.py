"""Real processes: serve, submit, runtimes that answer, a drain, a kill, a restart."""

import contextlib
import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from ports import free_port
from services import START_S, Service
from waiting import until

from olaf.errors.outcome import Exit, RunError
from olaf.schedule.client import Client, ProblemError

CLUSTER = ("--topology", "fat-tree:4", "--capacity", "switch:1", "--trees", "gain")


class Runtime(threading.Thread):
    """Follows the orders for every job until it is stopped."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url, self.stopped, self.obeyed = url, threading.Event(), 0

    def run(self) -> None:
        with Client(self.url) as client:
            after = 0
            while not self.stopped.is_set():
                try:
                    found, after = client.events(after, wait_s=0.5)
                    for event in found:
                        self.obey(client, event)
                except RunError:
                    return  # the service is gone

    def obey(self, client: Client, event: dict[str, object]) -> None:
        said = {"acquire": "acquired", "release": "released", "fence": "released"}
        verb = said.get(str(event["event"]))
        if verb is not None:
            body = {"generation": event["generation"]}
            # An order may have been overtaken by a newer one.
            with contextlib.suppress(ProblemError):
                client.post(f"/jobs/{event['job']}/{verb}", body)
                self.obeyed += 1


def settled(client: Client) -> dict[int, str | None]:
    """Once all that shall have a tree hold it: the root of each running job's."""
    deadline = time.monotonic() + START_S
    while True:
        jobs = client.get("/jobs", state="running")["jobs"]
        held = {job["job"]: job["held"] for job in jobs}
        if all(
            (job["root"] is None and held[job["job"]] is None)
            or (
                held[job["job"]] is not None
                and held[job["job"]]["phase"] == "held"
                and held[job["job"]]["root"] == job["root"]
            )
            for job in jobs
        ):
            return {job["job"]: job["root"] for job in jobs}
        assert time.monotonic() < deadline, jobs


@pytest.mark.slow
def test_a_day_of_a_cluster(tmp_path: Path) -> None:
    store = tmp_path / "cluster.db"
    with Service(store, *CLUSTER) as service:
        runtime = Runtime(service.url)
        runtime.start()
        for hosts in (3, 4, 5, 9):
            done = service.olaf("submit", f"of-{hosts}", "--hosts", str(hosts), "--json")
            assert done.returncode == 0, done.stderr
        with Client(service.url) as client:
            trees = settled(client)
            assert list(trees) == [1, 2, 3]
            root = trees[1]
            assert root is not None
            drained = service.olaf("drain", root)
            assert drained.stdout.startswith(f"{root} is drained")
            assert "job 1" in drained.stdout
            moved = settled(client)
            assert moved[1] != root
            before = client.get("/jobs")
            events = client.get("/healthz")["events"]
        assert service.end(signal.SIGKILL) == -signal.SIGKILL
        runtime.stopped.set()
        runtime.join(START_S)
        assert runtime.obeyed >= 4

    with Service(store) as service:
        with Client(service.url) as client:
            assert client.get("/jobs") == before
            assert client.get("/healthz")["events"] == events
        explained = service.olaf("explain", "4")
        assert "it is the head and needs 9 hosts, 4 are free" in explained.stdout
        listed = service.olaf("list", "--json")
        assert [job["state"] for job in json.loads(listed.stdout)["jobs"]] == [
            *["running"] * 3,
            "queued",
        ]
        finished = service.olaf("finish", "3")
        assert finished.stdout == "job 3 of-5: finished\n"
        again = service.olaf("finish", "3")
        assert (again.returncode, again.stdout) == (Exit.FAILED, "")
        assert "job 3 is finished" in again.stderr
        assert "9 hosts" in service.olaf("explain", "4").stdout
        assert service.end(signal.SIGTERM) == 0

    with Service(store) as service:
        assert "2 drained" not in service.olaf("status").stdout
        assert root in service.olaf("status").stdout
        assert service.end(signal.SIGINT) == 0


def test_a_long_poll_does_not_hold_the_end_up(tmp_path: Path) -> None:
    with Service(tmp_path / "c.db", *CLUSTER) as service:
        found: list[object] = []

        def listen() -> None:
            with Client(service.url) as client:
                found.append(client.events(0, wait_s=50.0))

        listener = threading.Thread(target=listen)
        listener.start()
        with Client(service.url) as client:
            deadline = time.monotonic() + START_S
            while "olaf_schedule_listeners 1" not in _metrics(client):
                assert time.monotonic() < deadline
            began = time.monotonic()
        assert service.end(signal.SIGTERM) == 0
        assert time.monotonic() - began < 20
        listener.join(START_S)
        assert found == [([], 0)]


def test_who_leaves_does_not_count_as_a_listener(tmp_path: Path) -> None:
    with Service(tmp_path / "c.db", *CLUSTER) as service, Client(service.url) as client:
        host, _, port = service.url.removeprefix("http://").rpartition(":")
        request = b"GET /events?wait=50 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
        with socket.create_connection((host, int(port))) as listener:
            listener.sendall(request)
            until(lambda: "olaf_schedule_listeners 1\n" in _metrics(client))
        until(lambda: "olaf_schedule_listeners 0\n" in _metrics(client), timeout_s=20)
        assert service.end(signal.SIGTERM) == 0
        assert service.process.stderr is not None
        assert service.process.stderr.read() == b""


def _metrics(client: Client) -> str:
    return client._http.get("/metrics").text


def test_a_submission_survives_a_service_that_is_away(tmp_path: Path) -> None:
    store = tmp_path / "c.db"
    port = free_port(socket.SOCK_STREAM)
    url, jobs = f"http://127.0.0.1:{port}", []

    def submit() -> None:
        with Client(url, timeout_s=START_S) as client:
            jobs.append(client.submit({"name": "patient", "hosts": 2}))

    patient = threading.Thread(target=submit)
    patient.start()
    with Service(store, *CLUSTER, "--listen", f"127.0.0.1:{port}"):
        patient.join(START_S)
        assert [job["state"] for job in jobs] == ["running"]


@pytest.mark.slow
def test_nobody_there_and_a_taken_port(tmp_path: Path) -> None:
    with Service(tmp_path / "c.db", *CLUSTER) as service:
        port = service.url.rpartition(":")[2]
        with pytest.raises(AssertionError, match="port 0 picks a free one"):
            Service(tmp_path / "d.db", *CLUSTER, "--listen", f"127.0.0.1:{port}")
        with pytest.raises(AssertionError, match="another service has it"):
            Service(tmp_path / "c.db")
        service.end(signal.SIGKILL)
        gone = service.olaf("status", "--timeout", "2s")
        assert gone.returncode == Exit.UNREACHABLE
        assert "OLAF_SCHEDULE_URL" in gone.stderr
    with pytest.raises(AssertionError, match="--token-file"):
        Service(tmp_path / "e.db", *CLUSTER, "--listen", "0.0.0.0:0")


def test_a_token_that_others_may_read_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123456789abcdef\n")
    token.chmod(0o644)
    with pytest.raises(AssertionError, match="chmod 600"):
        Service(tmp_path / "f.db", *CLUSTER, "--token-file", str(token))


def test_a_job_may_have_any_name(tmp_path: Path) -> None:
    names = ["[/x] boo", "[red]x[/red]", ":bomb:"]
    with Service(tmp_path / "c.db", *CLUSTER) as service, Client(service.url) as client:
        for name in names:
            client.submit({"name": name, "hosts": 1})
        listed = service.olaf("list")
        assert listed.returncode == 0, listed.stderr
        assert all(name in listed.stdout for name in names)


def test_a_host_that_is_taken_for_a_switch_is_explained(tmp_path: Path) -> None:
    with Service(tmp_path / "c.db", *CLUSTER) as service:
        refused = service.olaf("drain", "h3")
        assert (refused.returncode, refused.stdout) == (Exit.FAILED, "")
        assert "a host needs --host" in refused.stderr
        assert "--host" not in service.olaf("drain", "--host", "nowhere").stderr
        assert service.olaf("drain", "--host", "h3").stdout == "h3 is drained\n"


def test_a_reader_that_stands_still_stops_nobody(tmp_path: Path) -> None:
    with Service(tmp_path / "c.db", *CLUSTER) as service:
        assert service.process.stdout is not None
        # Nobody reads its output from here on: far more than a pipe holds is said.
        os.set_blocking(service.process.stdout.fileno(), False)
        with Client(service.url, timeout_s=START_S) as client:
            for _ in range(60):
                job = client.submit({"name": "j" * 256, "hosts": 16})
                client.post(f"/jobs/{job['job']}/finish")
            assert client.get("/cluster")["free_hosts"] == 16
