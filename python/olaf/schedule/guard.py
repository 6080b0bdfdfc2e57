"""Checks every request first: its token, its host and origin, and its size."""

from __future__ import annotations

import hmac
import ipaddress
import json
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from olaf.schedule.places import ADMITTED

MOST_BODY = 64 * 1024
"""Largest body of a request in bytes."""

OPEN = ("/healthz", "/readyz")
"""Paths that need no token."""


class Guard:
    """ASGI: token, host, origin and size."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        has_token = self._has_token(headers)
        refused = self._refused(scope["path"], headers, has_token=has_token)
        if refused is not None:
            await _problem(send, *refused)
            return
        admitted = scope.get("state", {}).get(ADMITTED)
        if has_token and admitted is not None:
            admitted()
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > MOST_BODY:
            await _problem(send, *_TOO_LARGE)
            return
        # A body may come in pieces without a length: read it here, up to the limit.
        body = b""
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            if len(body) > MOST_BODY:
                await _problem(send, *_TOO_LARGE)
                return
            if not message.get("more_body", False):
                break
        given = False

        async def replayed() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replayed, send)

    def _has_token(self, headers: dict[bytes, bytes]) -> bool:
        if self._token is None:
            return True
        said = headers.get(b"authorization", b"")
        # In constant time, whatever the client sent.
        return hmac.compare_digest(said, b"Bearer " + self._token)

    def _refused(
        self, path: str, headers: dict[bytes, bytes], *, has_token: bool
    ) -> tuple[int, str, str, str] | None:
        if not has_token and path not in OPEN:
            return (
                401,
                "Unauthorized",
                "the header Authorization has no token of this service",
                "send `Authorization: Bearer TOKEN`; on the command line: --token-file FILE",
            )
        if self._token is None and b"origin" in headers:
            # Without a token, any page in a browser on this machine could send requests.
            return (
                403,
                "Forbidden",
                "the request comes from a web page of another origin, and the service has no token",
                "start it with --token-file FILE",
            )
        if self._token is None and not is_address(headers.get(b"host", b"")):
            # A page elsewhere may give its own name the address of this machine.
            return (
                403,
                "Forbidden",
                "the header Host names neither localhost nor an address, and the service has no "
                "token",
                "ask it by its address, or start it with --token-file FILE",
            )
        return None


def is_address(host: bytes) -> bool:
    """Whether a header Host is an address or this machine's own name."""
    text = host.decode("latin-1")
    bracketed, _, port = text.removeprefix("[").partition("]")
    if text.startswith("["):
        name = bracketed if port[:1] in ("", ":") else ""
    else:
        name = text.rpartition(":")[0] if ":" in text else text
    if name.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


_TOO_LARGE = (
    413,
    "Content Too Large",
    f"a body has at most {MOST_BODY} bytes",
    "name a pattern instead of sending one",
)


async def _problem(send: Send, status: int, title: str, detail: str, advice: str) -> None:
    problem: dict[str, Any] = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "advice": advice,
        "why": None,
    }
    headers = [(b"content-type", b"application/problem+json")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(problem).encode()})
