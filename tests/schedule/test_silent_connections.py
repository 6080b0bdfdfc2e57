"""Real sockets that say nothing, too little or too slowly."""

import contextlib
import re
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from services import START_S, Service
from starlette.types import Receive, Scope, Send
from waiting import until

from olaf.schedule import connections
from olaf.schedule.connections import connections_in
from olaf.schedule.guard import Guard
from olaf.schedule.places import Places

TOKEN = "0123456789abcdef0123456789abcdef"
AUTHORIZED = {"authorization": f"Bearer {TOKEN}"}
HEAD = f"POST /jobs HTTP/1.1\r\nhost: h\r\nauthorization: Bearer {TOKEN}\r\n".encode()
SILENT = 400
FILES = 256
"""Fewer than the silent connections."""
SOON_S = 1.0
LARGE = b"x" * 2**26
"""More than the buffers of two sockets hold."""


def opened(address: tuple[str, int], said: bytes = b"") -> socket.socket:
    one = socket.create_connection(address, timeout=START_S)
    one.sendall(said)
    return one


def was_closed(one: socket.socket) -> bool:
    """Whether the other side has closed it; what it said before is read and thrown away."""
    try:
        while select.select([one], [], [], 0)[0]:
            if not one.recv(2**16):
                return True
    except ConnectionError:
        return True
    return False


def address_of(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("http://").rpartition(":")
    return host, int(port)


def test_silent_connections_keep_nobody_out_and_fill_no_log(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    options = ("--topology", "fat-tree:4", "--token-file", str(token))
    with (
        Service(tmp_path / "c.db", *options, files=FILES) as service,
        contextlib.ExitStack() as stack,
        httpx.Client(base_url=service.url, headers=AUTHORIZED, timeout=SOON_S) as honest,
    ):
        address = address_of(service.url)
        silent = [stack.enter_context(opened(address)) for _ in range(SILENT)]
        for path in ("/healthz", "/jobs", "/status.json"):
            # A new connection for each: one that is kept has its place already.
            asked = httpx.get(service.url + path, headers=AUTHORIZED, timeout=SOON_S)
            assert asked.status_code == 200
        until(lambda: sum(map(was_closed, silent)) >= SILENT - 8, "the oldest to give way")
        assert honest.get("/healthz").status_code == 200
        counted = re.search(r'closed_total\{reason="gave_way"\} (\d+)', honest.get("/metrics").text)
        assert counted is not None
        assert int(counted[1]) >= SILENT - 8
        told = until(lambda: said(service, "connections_closed"))
        assert told["gave_way"] > 0
        service.process.send_signal(signal.SIGTERM)
        _, errors = service.process.communicate(timeout=START_S)
        assert errors == b""


def said(service: Service, event: str) -> dict[str, Any]:
    """The next message of that kind."""
    while (message := service.line())["event"] != event:
        pass
    return message


class Small:
    """uvicorn with our connections and guard, in a thread of this process."""

    def __init__(self, places: Places) -> None:
        config = uvicorn.Config(
            Guard(self.answer, TOKEN),
            http=connections_in(places),
            lifespan="off",
            log_config=None,
            timeout_graceful_shutdown=1,
            timeout_keep_alive=30,
        )
        self.server = uvicorn.Server(config)
        listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = listener.getsockname()
        self.thread = threading.Thread(target=self.server.run, args=([listener],))

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = LARGE if scope["path"] == "/large" else b"ok"
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": body})

    def __enter__(self) -> "Small":
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.should_exit = True
        self.thread.join(START_S)


@pytest.fixture
def places() -> Places:
    return Places(1024)


@pytest.fixture
def small(places: Places, monkeypatch: pytest.MonkeyPatch) -> Iterator[Small]:
    monkeypatch.setattr(connections, "REQUEST_S", 0.5)
    monkeypatch.setattr(connections, "READING_S", 0.5)
    with Small(places) as served:
        yield served


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"", b""),
        (b"GET /healthz HT", b""),
        (HEAD, b"x: y\r\n"),
        (HEAD + b"content-length: 60000\r\n\r\n", b" "),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (b"GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n", b"G"),
        (b"POST /jobs HTTP/1.1\r\nhost: h\r\ncontent-length: 60000\r\n\r\n", b" "),
    ],
    ids=["silent", "half", "head", "body", "pieces", "second", "refused"],
)
def test_a_request_has_a_deadline(small: Small, places: Places, begin: bytes, more: bytes) -> None:
    with opened(small.address, begin) as slow:

        def trickled() -> bool:
            with contextlib.suppress(ConnectionError):
                slow.send(more)
            return was_closed(slow)

        until(trickled, "the deadline", START_S / 2)
    until(lambda: len(places) == 0)
    assert places.closed["late"] == 1


def test_who_does_not_read_its_answer_has_a_deadline(small: Small, places: Places) -> None:
    request = f"GET /large HTTP/1.1\r\nhost: h\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
    with opened(small.address, request.encode()):
        until(lambda: places.closed["late"] == 1)
    until(lambda: len(places) == 0)


def test_an_idle_connection_is_kept_and_used_again(small: Small, places: Places) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{small.address[1]}") as honest:
        assert honest.get("/jobs", headers=AUTHORIZED).content == b"ok"
        began = time.monotonic()
        # Silence beyond the deadline of a request: the other end does not close.
        with opened(small.address) as clock:
            until(lambda: was_closed(clock))
        assert time.monotonic() - began > connections.REQUEST_S / 2
        assert len(places) == 1
        assert honest.get("/jobs", headers=AUTHORIZED).content == b"ok"
        assert len(places) == 1
