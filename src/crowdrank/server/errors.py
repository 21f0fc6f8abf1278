"""What is answered when something cannot be done: one shape for programs, a page for people, no stack trace."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from crowdrank.errors import CrowdrankError, NothingToAskError, UnknownNameError
from crowdrank.storage import ContradictionError, ExpiredError, QuotaReachedError, UnavailableError, UnknownTokenError

_OF_ERRORS: tuple[tuple[type[Exception], int, str], ...] = (
    (ContradictionError, 409, "contradiction"),
    (ExpiredError, 410, "expired"),
    (UnknownTokenError, 404, "unknown_token"),
    (UnknownNameError, 404, "not_found"),
    (QuotaReachedError, 409, "finished"),
    (NothingToAskError, 409, "nothing_to_ask"),
    (UnavailableError, 503, "unavailable"),
    (CrowdrankError, 422, "invalid"),
)
_OF_STATUSES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "contradiction",
    410: "expired",
    413: "too_large",
    415: "unsupported",
    422: "invalid",
    429: "too_many",
    500: "internal",
    503: "unavailable",
}
_logger = logging.getLogger("crowdrank.server")


class Problem(Exception):  # noqa: N818
    """Something that is refused, with what to say of it."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        detail: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.detail = status, message, detail
        self.code = code or _OF_STATUSES.get(status, "refused")
        self.headers = dict(headers or {})

    def as_dict(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": self.message, "detail": self.detail}}


def too_many(seconds: float) -> Problem:
    wait = max(1, math.ceil(seconds))
    return Problem(
        429, f"Too many requests: try again in {wait} s.", detail={"seconds": wait}, headers={"Retry-After": str(wait)}
    )


def install(app: FastAPI) -> None:
    """Every way in which a request can fail ends in `answer`."""

    @app.exception_handler(Problem)
    async def refused(request: Request, problem: Problem) -> Response:
        return answer(request, problem)

    @app.exception_handler(CrowdrankError)
    async def failed(request: Request, error: CrowdrankError) -> Response:
        return answer(request, _of_error(error))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        said = {404: "There is nothing here.", 405: "That cannot be done here."}.get(error.status_code, error.detail)
        return answer(request, Problem(error.status_code, str(said), headers=error.headers))

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Response:
        faults = [{"where": [str(part) for part in one["loc"]], "message": str(one["msg"])} for one in error.errors()]
        said = "; ".join(f"{'.'.join(one['where'][1:]) or 'the body'}: {one['message']}" for one in faults[:3])
        return answer(request, Problem(422, f"The request cannot be understood: {said}.", detail=faults[:20]))


def answer(request: Request, problem: Problem) -> Response:
    """As JSON, or as a page where a browser asks for one."""
    if request.url.path.startswith("/api/") or "text/html" not in request.headers.get("accept", ""):
        return JSONResponse(problem.as_dict(), problem.status, headers=problem.headers)
    from crowdrank.server.rendering import error_page

    return error_page(request, problem)


def broken(scope: Scope) -> Response:
    """For whatever nobody foresaw."""
    problem = Problem(500, "Something went wrong here; the organiser's log says what.")
    try:
        return answer(Request(scope), problem)
    except Exception:  # not even the page can be made
        return JSONResponse(problem.as_dict(), 500)


def _of_error(error: CrowdrankError) -> Problem:
    for kind, status, code in _OF_ERRORS:
        if isinstance(error, kind):
            headers = {"Retry-After": "1"} if status == 503 else {}
            return Problem(status, str(error), code=code, headers=headers)
    raise AssertionError from error


def log_broken(route: str, error: BaseException) -> None:
    """Where the organiser looks; the route's pattern, not the address: that may hold a secret."""
    _logger.error("failed", exc_info=error, extra={"route": route})
