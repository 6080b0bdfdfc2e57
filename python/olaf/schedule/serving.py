"""``olaf schedule serve``: the store, the controller and the HTTP server, as one process."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from olaf._olaf import Allocator, LogFilter
from olaf.errors.outcome import Exit, RunError
from olaf.errors.usage import ConfigurationError
from olaf.processes.sink import Sink, lost_as_json, lost_in_words
from olaf.schedule import words
from olaf.schedule.api import application
from olaf.schedule.connections import connections_in
from olaf.schedule.controller import MOST_EVENTS, Controller, no_fault
from olaf.schedule.feed import Feed
from olaf.schedule.known import Known, contents
from olaf.schedule.places import MOST_CONNECTIONS, Places, most_connections
from olaf.schedule.reading import BUNDLED
from olaf.schedule.store import Store
from olaf.schedule.worth import Worth, united

MOST_LISTENERS = 2048
MOST_ACCEPTED = 16
"""Connections that are accepted before those of the turn before get their places, or none."""
MOST_PENDING = 1024
"""Connections that wait in the system until they are accepted."""
NO_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
QUIET_S = 10.0
"""Time between two lines about closed connections."""
GRACE_S = 5
LAST_WORDS_S = 2.0
SHORTEST_TOKEN = 16


@dataclass
class Settings:
    """Settings of ``serve``."""

    store: Path
    listen: str = "127.0.0.1:7070"
    spec: dict[str, Any] | None = None
    """Configuration of the allocator; None: that of the store."""
    left_out: Collection[str] = ()
    """Keys of ``trees`` and ``join`` whose value in ``spec`` is a default: the store's comes
    first."""
    token_file: Path | None = None
    patterns: list[Path] = field(default_factory=list)
    """Folders of patterns, added to those that come with Olaf and those in the store."""
    network: dict[str, int] = field(default_factory=dict)
    """The given fields of the core's ``Network``. The store keeps them, like the patterns."""
    change: bool = False
    """True to accept values that differ from the store, and to keep them from now on."""


def serve(
    settings: Settings,
    *,
    as_json: bool = False,
    log_format: str = "text",
    log_level: str = "info",
    at: Callable[[str], None] = no_fault,
) -> None:
    """Serve until SIGTERM or Ctrl-C.

    as_json: print each event as a line of JSON. Otherwise ``log_format`` (text or json, with time
    and level) and ``log_level`` say how the log on stderr looks.

    at: is called between any two steps of a command; tests kill the process there. Raises
    ConfigurationError, StoreError, and OSError if the address is in use.
    """
    token = _token(settings.token_file)
    host, port = _address(settings.listen)
    if token is None and not _is_loopback(host):
        raise ConfigurationError(
            f"--listen {settings.listen}: other machines could reach it and submit jobs; give "
            "--token-file FILE, or listen on 127.0.0.1"
        )
    try:
        spec = None if settings.spec is None else _resolved(settings.spec)
        began = time.monotonic()
        store = Store(settings.store, spec, left_out=settings.left_out)
        kept = store.worth()
        worth, changed = united(
            settings.store,
            kept,
            Worth(settings.network, contents(settings.patterns)),
            contents([BUNDLED]),
            change=settings.change,
        )
        places = Places(most_connections())
        # Some places are left for those who do not wait.
        feed = Feed(MOST_EVENTS, min(MOST_LISTENERS, places.most // 2))
        talker = _Talker(as_json=as_json, log_format=log_format, log_level=log_level)
        say = talker.say

        def tell(events: list[dict[str, Any]], last: int) -> None:
            feed.tell(events, last)
            for seq, each in enumerate(events, start=last - len(events) + 1):
                say({"seq": seq, **each})

        controller = Controller(store, tell=tell, at=at)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    if worth != kept:
        store.keep(worth)
    feed.tell(controller.last_events, controller.events)
    known = Known([*settings.patterns, BUNDLED], worth.network, worth.patterns)
    app = application(controller, feed, known, places, token=token)
    listener = _listener(host, port)
    shown_host, shown_port = listener.getsockname()[:2]
    shown = f"[{shown_host}]" if ":" in shown_host else shown_host
    # From here on a signal ends the service well: whoever reads the next line may send one at once.
    server = _Server(app, feed, controller, places, listener=listener, say=say)
    say(
        {
            "event": "listening",
            "url": f"http://{shown}:{shown_port}",
            "store": str(settings.store),
            "replayed": controller.replayed,
            "took_s": round(time.monotonic() - began, 3),
        }
    )
    for told in _of_the_store(store.spec, controller, kept, worth, changed):
        say(told)
    try:
        server.run(sockets=[listener])
    finally:
        controller.close()
        listener.close()
    say({"event": "stopped", "events": controller.events})
    talker.close()
    if controller.broken is not None:
        raise RunError(f"stopped, because the store failed: {controller.broken}", Exit.FAILED)


def _of_the_store(
    spec: dict[str, Any],
    controller: Controller,
    kept: Worth | None,
    worth: Worth,
    changed: list[str],
) -> list[dict[str, Any]]:
    """Messages about the store that a person should read."""
    said: list[dict[str, Any]] = [{"event": "changed", "what": what} for what in changed]
    if kept is None and controller.events:
        network = {"network": worth.network, "patterns": sorted(worth.patterns)}
        said.append({"event": "completed", **network})
    if spec["trees"].get("join", False) not in (False, "none", "nobody"):
        said.append({"event": "shares", "join": spec["trees"]["join"]})
    return said


class _Server(uvicorn.Server):
    """uvicorn that ends long polls when it is told to stop, and counts connections."""

    def __init__(
        self,
        app: Any,
        feed: Feed,
        controller: Controller,
        places: Places,
        *,
        listener: socket.socket,
        say: Callable[[dict[str, Any]], None],
    ) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="on",
            loop="asyncio",
            http=connections_in(places),
            backlog=MOST_ACCEPTED,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=GRACE_S,
            server_header=False,
            ws="none",
        )
        super().__init__(config)
        self._feed = feed
        self._places = places
        self._listener = listener
        self._say = say
        self._said = places.closed.copy()
        self._quiet_until = 0.0
        # These handlers are uvicorn's while it runs. Before that, a signal stops it as soon as it
        # has started. After that it raises the signal again: there is nothing left to do.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, frame: self._stop())
        controller.when_broken = self._stop

    def _stop(self) -> None:
        self.should_exit = True
        self._feed.close()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        asyncio.get_running_loop().set_exception_handler(self._in_trouble)
        await super().startup(sockets)
        # asyncio takes one number for what it accepts in a turn and for what waits in the system.
        self._listener.listen(MOST_PENDING)

    async def on_tick(self, counter: int) -> bool:
        """Say how many connections were closed, now and then."""
        now = time.monotonic()
        if now >= self._quiet_until and (news := self._places.closed - self._said):
            self._quiet_until = now + QUIET_S
            self._said = self._places.closed.copy()
            self._say({"event": "connections_closed", **news})
        return await super().on_tick(counter)

    def _in_trouble(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in NO_FILES:
            self._places.closed["no_files"] += 1  # asyncio tries again in a second
        else:
            loop.default_exception_handler(context)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Accept no more connections, answer the waiting requests."""
        super().handle_exit(sig, frame)
        self._feed.close()


def _resolved(spec: dict[str, Any]) -> dict[str, Any]:
    text = Allocator.resolve(json.dumps(spec))
    Allocator(text)  # raises for an invalid spec before a file is made
    made: dict[str, Any] = json.loads(text)
    return made


def _token(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        about = file.stat()
        # A group may read a file of root: systemd and Kubernetes hand credentials over in that way.
        private = 0o740 if about.st_uid == 0 != os.geteuid() else 0o700
        if about.st_mode & 0o777 & ~private:
            raise ConfigurationError(
                f"--token-file {file}: others may read it (mode {about.st_mode & 0o777:03o}); make "
                f"it private: chmod 600 {file}"
            )
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--token-file {file}: {error}") from None
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise ConfigurationError(
            f"--token-file {file}: needs at least {SHORTEST_TOKEN} printable ASCII characters in "
            "one line; `openssl rand -hex 32` makes some"
        )
    return token


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigurationError(f"--listen {text}: write HOST:PORT; port 0 picks a free one")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listener(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ConfigurationError(f"--listen {host}:{port}: {error.strerror or error}") from None
    # With a protocol number: otherwise asyncio leaves Nagle on, which costs 40 ms per answer.
    listener = socket.socket(*found[:3])
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(found[4])
    except OSError as error:
        listener.close()
        raise OSError(
            error.errno,
            f"--listen {host}:{port}: {error.strerror}; choose another, port 0 picks a free one",
        ) from None
    listener.listen(1024)
    return listener


class _Talker:
    """Prints messages. A reader that stalls, or a full disk, stops nothing: see `Sink`."""

    def __init__(self, *, as_json: bool, log_format: str, log_level: str) -> None:
        self._as_json = as_json
        self._log_format = log_format
        self._filter = LogFilter(log_level)
        in_words = not as_json and log_format != "json"
        stream = sys.stdout if as_json else sys.stderr
        self._sink = Sink(stream, lost_in_words if in_words else lost_as_json)

    def say(self, message: dict[str, Any]) -> None:
        """Print it, unless it is one of too many of its kind."""
        if self._as_json:
            self._sink.write(json.dumps(message))
            return
        suppressed = self._filter.take(message["event"])
        if suppressed is None:
            return
        if suppressed:
            self._log({"event": "suppressed", "of": message["event"], "lines": suppressed})
        self._log(message)

    def close(self) -> None:
        """Print the waiting messages, if there is a reader."""
        self._sink.drain(LAST_WORDS_S)

    def _log(self, message: dict[str, Any]) -> None:
        if self._log_format == "json":
            level = self._filter.level(message["event"])
            line = json.dumps({**message, "time_unix_s": time.time(), "level": level})
        else:
            line = f"{time.strftime('%H:%M:%S')}  {words.event(message)}"
        self._sink.write(line)
