"""Every error over HTTP is a problem (RFC 9457) with the error, its place, and what to do."""

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
"""Kind of the core's refusal -> HTTP status; 422 for all others."""

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": models.Problem, "description": text}
    for status, text in {
        401: "No token.",
        403: "The request comes from a web page, and the service has no token.",
        404: "No such job, switch or host.",
        409: "Not possible in this state.",
        410: "No longer kept.",
        413: "Too long.",
        422: "Invalid; the problem names the error and its place.",
        429: "Too many clients wait. Try again.",
        503: "Not done. Try again.",
    }.items()
}


def install(app: FastAPI) -> None:
    """Turn every error into a problem with the error, its place, and what to do."""

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
        advice = "read GET /jobs, then go on from the number in GET /healthz"
        return answer(410, f"after: {error}", advice)

    @on(TooManyError)
    def _(error: TooManyError) -> JSONResponse:
        return answer(429, str(error), "ask again later")

    @on(BusyError)
    def _(error: BusyError) -> JSONResponse:
        return answer(503, str(error), "ask again later")

    @on(StoreError)
    def _(error: StoreError) -> JSONResponse:
        return answer(503, str(error), "see the service's log; the disk may be full")

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
            "a body is application/json; GET /openapi.json describes the requests",
        )
