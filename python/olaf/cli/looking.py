"""Reads ``/status.json`` of roles, and knows what changed since the last look."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from olaf.errors.outcome import ConfigurationError

TIMEOUT_S = 3.0
"""Longest wait for the beginning of an answer, and then for the rest of it."""
LARGEST = 64 * 1024 * 1024
"""Bytes of the largest status that is read."""
ENGINES = ("reduce", "iswitch", "trio", "atp", "atp_server")
"""Engines of a switch that sum: each has a table of its own in the status."""

SHARING = ("granted", "aborted", "datagrams", "launches")
"""Counters of those who share switches."""

Status = Mapping[str, Any]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows nobody elsewhere: no role redirects, and the token is for the role alone."""

    def redirect_request(self, *_: Any) -> None:
        """Never another request: the answer counts as an error."""
        return


_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)
"""Asks the roles themselves. A proxy of the environment would get the token, and does not reach
this machine's loopback."""


@dataclass(frozen=True)
class Look:
    """One role at one moment."""

    address: str
    status: Status | None = None
    error: str | None = None
    """Why there is no status."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Changes a second since the last look, by the name of the count."""

    def as_json(self) -> dict[str, Any]:
        """The look as plain data."""
        return {
            "address": self.address,
            "status": self.status,
            "error": self.error,
            "rates": dict(self.rates),
        }


class Reader:
    """Looks at the same roles again and again, at all of them at once."""

    def __init__(self, addresses: Sequence[str], token_file: str | None = None) -> None:
        self._urls = {text: _url(text) for text in addresses}
        self._token_file = token_file
        self._headers = {} if token_file is None else {"Authorization": _bearer(token_file)}
        self._last: dict[str, Status] = {}
        self._pool = ThreadPoolExecutor(max_workers=min(32, len(self._urls)))

    def look(self) -> list[Look]:
        """The roles now, in the order of the addresses."""
        return list(self._pool.map(self._one, self._urls))

    def _one(self, address: str) -> Look:
        request = urllib.request.Request(self._urls[address], headers=self._headers)
        try:
            with _DIRECT.open(request, timeout=TIMEOUT_S) as answer:
                text = _read(answer)
        except urllib.error.HTTPError as error:
            return Look(address, error=_refusal(error, self._token_file))
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            return Look(address, error=f"no answer: {reason}")
        status = _status(text)
        if status is None:
            return Look(address, error=_no_role(text))
        before = self._last.get(address)
        self._last[address] = status
        return Look(address, status, rates=rates(before, status))


def _read(answer: http.client.HTTPResponse) -> bytes:
    deadline = time.monotonic() + TIMEOUT_S
    text = bytearray()
    while len(text) < LARGEST and (more := answer.read1(1 << 16)):
        text += more
        if time.monotonic() > deadline:
            raise TimeoutError("timed out")
    return bytes(text)


def _status(text: bytes) -> Status | None:
    """The status of a role; None for what another program says, MINA's scheduler among them."""
    try:
        status = json.loads(text)
    except ValueError:
        return None
    about = status.get("olaf") if isinstance(status, dict) else None
    is_role = isinstance(about, dict) and {"pid", "at_unix_s"} <= about.keys()
    return status if is_role and "role" in status else None


def _no_role(text: bytes) -> str:
    """Who answers in place of a role."""
    try:
        status = json.loads(text)
    except ValueError:
        status = None
    if isinstance(status, dict) and status.get("role") == "scheduler":
        return "this is `olaf schedule serve`: look at it with `olaf schedule status`"
    return "what answers there is no role of Olaf"


def rates(before: Status | None, now: Status) -> dict[str, float]:
    """Changes a second of each count of `counts`; empty after a restart."""
    if before is None or before["olaf"]["pid"] != now["olaf"]["pid"]:
        return {}
    seconds = now["olaf"]["at_unix_s"] - before["olaf"]["at_unix_s"]
    if seconds <= 0:
        return {}
    old = counts(before)
    return {
        name: (count - old[name]) / seconds for name, count in counts(now).items() if name in old
    }


def counts(status: Status) -> dict[str, float]:
    """The counters of a status that people want rates of, by their path."""
    found: dict[str, float] = {}
    for name in ("received", "departures", "updates", "contributions", "models", *SHARING):
        if isinstance(status.get(name), int):
            found[name] = status[name]
    _tables(found, "", status)
    if "played" in status:
        found["in_network"] = status["played"]["in_network"]
    for engine in ENGINES:
        if engine in status:
            _tables(found, f"{engine}.", status[engine])
    for job in status.get("jobs", ()):
        if "clusters" not in job:  # of a sharing controller
            continue
        path = f"jobs.{job['job']}."
        found[path + "received"] = job["received"]
        found[path + "deliveries"] = job["deliveries"]
        _tables(found, path, job)
        for cluster in job["clusters"]:
            found[f"{path}clusters.{cluster['cluster']}.deliveries"] = cluster["deliveries"]
    for cluster in status.get("clusters", ()):
        path = f"clusters.{cluster['job']}.{cluster['cluster']}."
        found[path + "received"] = cluster["received"]
        found[path + "departures"] = cluster["departures"]
    return found


def _tables(found: dict[str, float], path: str, table: Mapping[str, Any]) -> None:
    for name in ("fates", "pieces", "gradients", "refused", "io", "results"):
        inner = table.get(name)
        if isinstance(inner, Mapping):
            for key, value in inner.items():
                if isinstance(value, int) or (isinstance(value, Mapping) and name != "io"):
                    found[f"{path}{name}.{key}"] = total(value)


def total(value: Any) -> float:
    """A count, or the sum of counts by reason."""
    if isinstance(value, Mapping):
        return sum(total(inner) for inner in value.values())
    return float(value) if isinstance(value, int | float) else 0.0


@dataclass(frozen=True)
class Refusal:
    """What was refused, why, and how often."""

    what: str
    reason: str
    count: int


def refusals(status: Status) -> list[Refusal]:
    """Everything that a role refused, the most frequent first."""
    found: list[Refusal] = []

    def take(what: str, table: Mapping[str, int] | None) -> None:
        for reason, count in (table or {}).items():
            if count:
                found.append(Refusal(what, reason.replace("_", " "), count))

    take("datagrams", status.get("refused"))
    take("datagrams, kept out by keys", status.get("keys", {}).get("refused"))
    fates = status.get("fates", {})
    take("updates dropped", fates.get("dropped"))
    take("updates rejected", fates.get("rejected"))
    for job in status.get("jobs", ()):
        take(f"updates of job {job['job']} rejected", job.get("fates", {}).get("rejected"))
    for engine in ENGINES:
        table = status.get(engine, {})
        take(f"datagrams, {engine}", table.get("refused"))
        take(f"datagrams, {engine}, kept out by keys", table.get("keys", {}).get("refused"))
        pieces = table.get("pieces", {})
        take(f"pieces, {engine}", pieces.get("refused"))
    for worker in status.get("workers", ()) if status["role"] == "switch" else ():
        for reason in ("rejected", "clipped"):
            who = f"updates of worker {worker['worker']}, {worker['address']}"
            take(who, {reason: worker[reason]})
    admission = status.get("admission") or {}
    take("clusters", {"not_admitted": admission.get("refused", 0)})
    return sorted(found, key=lambda one: -one.count)


def _url(text: str) -> str:
    bare = text.removeprefix("http://").rstrip("/")
    host, _, port = bare.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) <= 65535 or "/" in bare:
        raise ConfigurationError(f"{text}: write HOST:PORT, as in 127.0.0.1:9100")
    return f"http://{bare}/status.json"


def _bearer(file: str) -> str:
    try:
        token = Path(file).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--token-file {file}: {error}") from None
    return f"Bearer {token}"


def _refusal(error: urllib.error.HTTPError, token_file: str | None) -> str:
    if error.code == 401 and token_file is not None:
        return f"the token in {token_file} is not this role's (its --metrics-token-file)"
    if error.code == 401:
        return "it needs its token: give --token-file FILE"
    try:
        told = json.loads(error.read(4096))
    except (OSError, ValueError):
        told = {}
    why = told.get("why") if isinstance(told, dict) else None
    return f"HTTP {error.code}: {why or error.reason}"
