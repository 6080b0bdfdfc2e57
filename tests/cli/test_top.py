"""``olaf top`` on real roles: once, as JSON, and in a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from click.testing import CliRunner
from commands import olaf

from olaf import _olaf
from olaf.cli.looking import Reader, counts, rates, refusals
from olaf.cli.top import top
from olaf.errors.outcome import ConfigurationError

PATIENCE_S = 60.0


class Roles:
    """A server, a switch and a worker whose update has come to its end."""

    def __init__(self) -> None:
        own = {"listen": "127.0.0.1:0", "metrics": "127.0.0.1:0"}
        self.server = _olaf.Server(json.dumps(own))
        self.server.start()
        engines = {"engines": ["queue", "reduce"]}
        told = {**own, **engines, "upstream": self.server.address}
        self.switch = _olaf.Switch(json.dumps(told))
        self.switch.start()
        config = json.dumps({"metrics": "127.0.0.1:0"})
        address = self.switch.address
        self.worker = _olaf.Client(address, job=1, cluster=7, worker=3, config=config)
        self.worker.join([np.zeros(4, np.float32)], 10.0)
        self.worker.push([np.ones(4, np.float32)], reward=1.0)
        assert self.worker.flush(10.0)
        host, port = address.rsplit(":", 1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"hello" * 20, (host, int(port)))

    @property
    def addresses(self) -> list[str]:
        roles = (self.switch, self.server, self.worker)
        return [address for role in roles if (address := role.metrics_address)]


@pytest.fixture(scope="module")
def roles() -> Iterator[Roles]:
    roles = Roles()
    yield roles
    roles.worker.leave()
    roles.switch.stop()
    roles.server.stop()


def test_once_prints_every_role(roles: Roles) -> None:
    ended = olaf("top", *roles.addresses, "--once", "--every", "0.3")
    assert ended.returncode == 0, ended.stderr
    for part in ("switch 127", "server 127", "worker 127", "occupancy", "fairness", "sent alone 1"):
        assert part in ended.stdout
    assert "foreign" in ended.stdout, "who was refused, and why"
    assert f"server of job 1 {roles.server.address} heard" in ended.stdout
    assert "worker joined" in ended.stdout


def test_json_has_the_whole_status_and_the_rates(roles: Roles) -> None:
    ended = olaf("top", *roles.addresses, "--once", "--json", "--every", "0.3")
    switch, server, _worker = json.loads(ended.stdout)
    assert switch["status"]["clusters"][0]["cluster"] == 7
    assert switch["rates"]["fates.sent_alone"] == 0.0
    assert server["status"]["jobs"][0]["deliveries"] == 1


def test_a_role_that_does_not_answer_is_named(roles: Roles) -> None:
    ended = olaf("top", "127.0.0.1:9", roles.addresses[0], "--once", "--every", "0.2")
    assert ended.returncode == 3
    assert "127.0.0.1:9" in ended.stdout
    assert "no answer" in ended.stdout
    assert "occupancy" in ended.stdout, "the others are shown all the same"


class Other(BaseHTTPRequestHandler):
    """A program that is no role; it redirects some questions to itself, under another name."""

    says: ClassVar[bytes] = b""
    tokens: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.tokens.append(self.headers.get("Authorization"))
        self.send_response({b"elsewhere": 302, b"token": 401}.get(self.says, 200))
        if self.says == b"elsewhere":
            port = self.connection.getsockname()[1]
            self.send_header("Location", f"http://localhost:{port}/")
        self.end_headers()
        self.wfile.write(self.says)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def other() -> Iterator[str]:
    Other.tokens = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    "says",
    [b"{}", b"[1]", b"<html>", b'{"olaf": 1}', b'{"role": "else", "olaf": {"version": "1"}}'],
)
def test_a_program_that_is_no_role_is_named_and_stops_nothing(other: str, says: bytes) -> None:
    Other.says = says
    reader = Reader([other])
    for look in [*reader.look(), *reader.look()]:
        assert look.status is None
        assert look.error == "what answers there is no role of Olaf"


def test_the_scheduler_is_named(other: str) -> None:
    Other.says = b'{"role": "scheduler", "olaf": {"version": "1"}}'
    (look,) = Reader([other]).look()
    assert look.error == "this is `olaf schedule serve`: look at it with `olaf schedule status`"


def test_a_wrong_token_is_not_a_missing_one(other: str, tmp_path: Path) -> None:
    Other.says = b"token"
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    (look,) = Reader([other], str(token)).look()
    assert look.error == f"the token in {token} is not this role's (its --metrics-token-file)"
    (look,) = Reader([other]).look()
    assert look.error == "it needs its token: give --token-file FILE"


def test_without_a_terminal_the_way_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("olaf.cli.top.time.sleep", interrupted)
    said = CliRunner().invoke(top, ["127.0.0.1:9"])
    assert "--once" in said.stderr


def test_the_token_goes_to_the_role_alone(
    other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    Other.says = b"elsewhere"
    (look,) = Reader([other], str(token)).look()
    assert look.error == "HTTP 302: Found"
    assert Other.tokens == ["Bearer 0123456789abcdef"], "nobody was asked a second time"
    # Not to a proxy either.
    monkeypatch.setenv("http_proxy", f"http://{other}")
    (look,) = Reader(["127.0.0.1:9"], str(token)).look()
    assert "no answer" in str(look.error)
    assert len(Other.tokens) == 1


def test_an_address_that_is_none_is_refused() -> None:
    ended = olaf("top", "here", "--once")
    assert ended.returncode == 2
    assert "write HOST:PORT" in ended.stderr


def test_live_in_a_terminal_until_it_is_interrupted(roles: Roles) -> None:
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "olaf", "top", roles.addresses[0], "--every", "0.2"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "140", "LINES": "40"}
    with subprocess.Popen(
        argv, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        try:
            drawn = 0
            deadline = time.monotonic() + PATIENCE_S
            while drawn < 3:
                assert time.monotonic() < deadline, "it does not draw"
                if select.select([ours], [], [], 1.0)[0]:
                    drawn += os.read(ours, 1 << 16).count(b"occupancy")
            process.send_signal(signal.SIGINT)
            while process.poll() is None:
                assert time.monotonic() < deadline, "it does not end"
                if select.select([ours], [], [], 0.1)[0]:
                    try:
                        os.read(ours, 1 << 16)
                    except OSError:  # the terminal's other end is closed
                        break
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
            os.close(ours)


def test_rates_are_changes_a_second_and_none_after_a_restart(roles: Roles) -> None:
    (look,) = Reader(roles.addresses[:1]).look()
    assert look.status is not None
    before = json.loads(json.dumps(look.status))
    now = json.loads(json.dumps(look.status))
    now["olaf"]["at_unix_s"] += 2.0
    now["fates"]["merged"] += 10
    now["fates"]["dropped"] = {"queue_full": 3, "evicted": 1}
    assert rates(before, now)["fates.merged"] == pytest.approx(5.0)
    assert rates(before, now)["fates.dropped"] == pytest.approx(2.0)
    now["olaf"]["pid"] += 1
    assert rates(before, now) == {}
    assert "clusters.1.7.received" in counts(before)


def test_refusals_name_the_worker(roles: Roles) -> None:
    (look,) = Reader(roles.addresses[:1]).look()
    assert look.status is not None
    status = json.loads(json.dumps(look.status))
    status["workers"][0]["rejected"] = 1
    status["fates"]["rejected"] = {"non_finite": 1}
    found = {(one.what.split(",")[0], one.reason): one.count for one in refusals(status)}
    assert found["updates of worker 3", "rejected"] == 1
    assert found["updates rejected", "non finite"] == 1
    assert found["datagrams", "foreign"] == 1


def test_what_keys_kept_out_is_refused_too() -> None:
    keys = {"refused": {"no_seal": 3, "no_such_key": 1}}
    status = {"role": "switch", "keys": keys, "reduce": {"keys": {"refused": {"replayed": 2}}}}
    found = {(one.what, one.reason): one.count for one in refusals(status)}
    assert found == {
        ("datagrams, kept out by keys", "no seal"): 3,
        ("datagrams, kept out by keys", "no such key"): 1,
        ("datagrams, reduce, kept out by keys", "replayed"): 2,
    }


def test_a_token_file_that_is_missing_is_said() -> None:
    with pytest.raises(ConfigurationError, match="--token-file"):
        Reader(["127.0.0.1:1"], "/nowhere/token")
