"""Every error over HTTP is a problem (RFC 9457) that says what, where, and what to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from olaf.schedule import models
from olaf.schedule.controller import BusyError, KeyTakenError, RefusedError
from olaf.schedule.feed import GoneError, TooManyError
from olaf.schedule.known import UnknownPatternError
from olaf.schedule.store import StoreError

STATUS = {
    "no_job": HTTPStatus.NOT_FOUND,
    "no_node": HTTPStatus.NOT_FOUND,
    "not_now": HTTPStatus.CONFLICT,
    "generation": HTTPStatus.CONFLICT,
    "not_asked": HTTPStatus.CONFLICT,
    "queue_full": HTTPStatus.TOO_MANY_REQUESTS,
}
"""Of the core's refusals; the others are 422."""

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": models.Problem, "description": text}
    for status, text in {
        401: "No token.",
        403: "A web page asks, and there is no token.",
        404: "No such job, switch or host.",
        409: "Not in this state.",
        410: "Kept no longer.",
        413: "Too long.",
        422: "It cannot be: what, and where.",
        429: "Too many wait. Come again.",
        503: "It was not done. Come again.",
    }.items()
}


def install(app: FastAPI) -> None:
    """Every error is a problem that says what, where, and what to do."""

    def answer(
        status: int, detail: str, advice: str | None = None, why: Any = None
    ) -> JSONResponse:
        problem = models.Problem(
            title=HTTPStatus(status).phrase, status=status, detail=detail, advice=advice, why=why
        )
        headers = {"retry-after": "1"} if status in (429, 503) else None
        return JSONResponse(
            problem.model_dump(),
            status_code=status,
            media_type="application/problem+json",
            headers=headers,
        )

    def on(kind: type[Exception]) -> Callable[[Callable[[Any], JSONResponse]], None]:
        def register(make: Callable[[Any], JSONResponse]) -> None:
            async def handler(request: Request, error: Exception) -> JSONResponse:
                return make(error)

            handle: Callable[[Request, Exception], Awaitable[JSONResponse]] = handler
            app.add_exception_handler(kind, handle)

        return register

    @on(RefusedError)
    def _(error: RefusedError) -> JSONResponse:
        status = STATUS.get(error.why["kind"], HTTPStatus.UNPROCESSABLE_ENTITY)
        return answer(status, str(error), why=dict(error.why))

    @on(UnknownPatternError)
    def _(error: UnknownPatternError) -> JSONResponse:
        return answer(422, f"pattern: {error}", error.advice)

    @on(KeyTakenError)
    def _(error: KeyTakenError) -> JSONResponse:
        return answer(409, f"Idempotency-Key: {error}", "use another key for another job")

    @on(GoneError)
    def _(error: GoneError) -> JSONResponse:
        advice = "look at GET /jobs, then go on behind the number in GET /healthz"
        return answer(410, f"after: {error}", advice)

    @on(TooManyError)
    def _(error: TooManyError) -> JSONResponse:
        return answer(429, str(error), "ask again later")

    @on(BusyError)
    def _(error: BusyError) -> JSONResponse:
        return answer(503, str(error), "ask again later")

    @on(StoreError)
    def _(error: StoreError) -> JSONResponse:
        return answer(503, str(error), "see what the service says; the disk may be full")

    @on(HTTPException)
    def _(error: HTTPException) -> JSONResponse:
        return answer(error.status_code, error.detail)

    @on(RequestValidationError)
    def _(error: RequestValidationError) -> JSONResponse:
        wrong = [
            f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}"
            for each in error.errors()
        ]
        return answer(
            422,
            "; ".join(wrong[:8]),
            "a body is application/json; GET /openapi.json says what may be sent",
        )
