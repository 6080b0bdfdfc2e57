"""The client of ``olaf schedule serve``, for the command line and for runtimes."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from olaf.errors.outcome import Exit, RunError
from olaf.errors.usage import ConfigurationError

DEFAULT_URL = "http://127.0.0.1:7070"
URL_VARIABLE = "OLAF_SCHEDULE_URL"
TOKEN_VARIABLE = "OLAF_SCHEDULE_TOKEN_FILE"

RETRY_S = 0.2
EXITS = {401: Exit.REFUSED, 403: Exit.REFUSED, 422: Exit.USAGE}
"""Status of a problem -> exit code; for other statuses FAILED."""


class ProblemError(RunError):
    """The service answered with a problem; its fields are those of ``Problem``."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        advice = f" ({problem['advice']})" if problem.get("advice") else ""
        super().__init__(f"{problem['detail']}{advice}", EXITS.get(status, Exit.FAILED))
        self.status = status
        self.problem = problem


class Client:
    """Client of one service; a context manager."""

    def __init__(
        self, url: str | None = None, *, token_file: Path | None = None, timeout_s: float = 10.0
    ) -> None:
        """Address: ``url``, or OLAF_SCHEDULE_URL, or port 7070 here. An answer takes at most
        ``timeout_s`` seconds; for events, the time of the wait is added.

        Raises ConfigurationError for an invalid URL, and for a token that cannot be read.
        """
        self.url = url or os.environ.get(URL_VARIABLE) or DEFAULT_URL
        if token_file is None and TOKEN_VARIABLE in os.environ:
            token_file = Path(os.environ[TOKEN_VARIABLE])
        headers = {}
        if token_file is not None:
            try:
                headers["authorization"] = (
                    f"Bearer {token_file.read_text(encoding='utf-8').strip()}"
                )
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigurationError(f"--token-file {token_file}: {error}") from None
        self._timeout_s = timeout_s
        try:
            # Ignore proxies of the environment: the service is in the cluster.
            self._http = httpx.Client(
                base_url=self.url, headers=headers, timeout=timeout_s, trust_env=False
            )
            if self._http.base_url.scheme not in ("http", "https"):
                raise httpx.InvalidURL("it begins with http:// or https://")
        except httpx.InvalidURL as error:
            raise ConfigurationError(f"--url {self.url}: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        """GET. Raises ProblemError, or RunError if no service answers."""
        given = {key: value for key, value in params.items() if value is not None}
        return self._ask("GET", path, params=given)

    def post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """POST. Raises ProblemError, or RunError if no service answers."""
        return self._ask("POST", path, json=body)

    def submit(self, body: dict[str, Any], key: str | None = None) -> dict[str, Any]:
        """Submit a job, once, even if an answer is lost or the service restarts meanwhile.

        key: name of this submission; None makes one up. Raises as ``post``.
        """
        headers = {"idempotency-key": key or str(uuid.uuid4())}
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                return self._ask("POST", "/jobs", json=body, headers=headers)
            except RunError as error:
                again = error.code == Exit.UNREACHABLE or (
                    isinstance(error, ProblemError) and error.status == 503
                )
                if not again or time.monotonic() + RETRY_S >= deadline:
                    raise
            time.sleep(RETRY_S)

    def events(
        self, after: int, *, job: int | None = None, wait_s: float = 0.0
    ) -> tuple[list[dict[str, Any]], int]:
        """Events after a number, and the number for the next call; waits for the first event.

        Raises as ``get``: a ProblemError of status 410 if the events are no longer kept.
        """
        params = {"after": after, "wait": wait_s} | ({} if job is None else {"job": job})
        timeout = httpx.Timeout(self._timeout_s, read=self._timeout_s + wait_s)
        found = self._ask("GET", "/events", params=params, timeout=timeout)
        return found["events"], found["last"]

    def _ask(self, method: str, path: str, **how: Any) -> dict[str, Any]:
        try:
            answer = self._http.request(method, path, **how)
        except httpx.TimeoutException:
            raise RunError(
                f"{self.url}: no answer within {self._timeout_s:g} s", Exit.UNREACHABLE
            ) from None
        except httpx.HTTPError as error:
            raise RunError(
                f"{self.url}: {error}: start `olaf schedule serve` there, or give its address with "
                f"--url or {URL_VARIABLE}",
                Exit.UNREACHABLE,
            ) from None
        try:
            said: dict[str, Any] = answer.json()
        except ValueError:
            said = {}
        if answer.is_success and isinstance(said, dict):
            return said
        if "detail" not in said:
            raise RunError(f"{self.url}: {answer.status_code}, and no answer of `olaf schedule`")
        raise ProblemError(answer.status_code, said)
