"""Error responses: JSON for programs, a page for browsers, never a stack trace."""

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
from crowdrank.storage import (
    ConflictError,
    ExpiredError,
    QuotaReachedError,
    StudyClosedError,
    StudyPausedError,
    UnavailableError,
    UnknownTokenError,
)

_STATUS_BY_ERROR: tuple[tuple[type[Exception], int, str], ...] = (
    (ConflictError, 409, "conflict"),
    (ExpiredError, 410, "expired"),
    (UnknownTokenError, 404, "unknown_token"),
    (UnknownNameError, 404, "not_found"),
    (QuotaReachedError, 409, "finished"),
    (StudyClosedError, 409, "closed"),
    (StudyPausedError, 409, "paused"),
    (NothingToAskError, 409, "nothing_to_ask"),
    (UnavailableError, 503, "unavailable"),
    (CrowdrankError, 422, "invalid"),
)
_CODE_BY_STATUS = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    410: "expired",
    413: "too_large",
    415: "unsupported",
    422: "invalid",
    429: "too_many_requests",
    500: "internal",
    503: "unavailable",
}
_logger = logging.getLogger("crowdrank.server")


class RequestError(Exception):
    """A request that is refused.

    Parameters
    ----------
    status : int
        The HTTP status.
    message : str
        What to tell the user.
    code : str, optional
        A short name for programs; derived from the status by default.
    detail : optional
        More JSON values for programs.
    headers : mapping, optional
        HTTP headers of the response.
    """

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
        self.code = code or _CODE_BY_STATUS.get(status, "refused")
        self.headers = dict(headers or {})

    def as_dict(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": self.message, "detail": self.detail}}


def too_many_requests(seconds: float) -> RequestError:
    """Return the error for a client that must wait."""
    wait = max(1, math.ceil(seconds))
    return RequestError(
        429, f"Too many requests. Try again in {wait} s.", detail={"seconds": wait}, headers={"Retry-After": str(wait)}
    )


def install_handlers(app: FastAPI) -> None:
    """Make every failed request end in `response_to`."""

    async def failed(request: Request, error: Exception) -> Response:
        return response_to(request, error)

    for kind in (RequestError, CrowdrankError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, failed)


def response_to(request: Request, error: Exception) -> Response:
    """Return the response to a request that failed. An unexpected error is logged, and not shown."""
    if isinstance(error, RequestError):
        return error_response(request, error)
    if isinstance(error, CrowdrankError):
        return error_response(request, _from_error(error))
    if isinstance(error, HTTPException):
        messages = {404: "This page does not exist.", 405: "This method is not allowed here."}
        message = messages.get(error.status_code, error.detail)
        return error_response(request, RequestError(error.status_code, str(message), headers=error.headers))
    if isinstance(error, RequestValidationError):
        faults = [{"where": [str(part) for part in one["loc"]], "message": str(one["msg"])} for one in error.errors()]
        summary = "; ".join(f"{'.'.join(one['where'][1:]) or 'the body'}: {one['message']}" for one in faults[:3])
        return error_response(request, RequestError(422, f"Invalid request: {summary}.", detail=faults[:20]))
    log_internal_error(getattr(request.scope.get("route"), "path", "none"), error)
    return internal_error_response(request.scope)


def error_response(request: Request, error: RequestError) -> Response:
    """Return JSON, or a page if a browser asks for one."""
    if request.url.path.startswith("/api/") or "text/html" not in request.headers.get("accept", ""):
        return JSONResponse(error.as_dict(), error.status, headers=error.headers)
    from crowdrank.server.rendering import error_page

    return error_page(request, error)


def internal_error_response(scope: Scope) -> Response:
    """Return the response to a request that failed unexpectedly."""
    error = RequestError(500, "An internal error occurred. The server log has the details.")
    try:
        return error_response(Request(scope), error)
    except Exception:  # rendering the page failed as well
        return JSONResponse(error.as_dict(), 500)


def log_internal_error(route: str, error: BaseException) -> None:
    """Log an unexpected error with the pattern of its route. The URL itself may contain a secret."""
    _logger.error("failed", exc_info=error, extra={"route": route})


def _from_error(error: CrowdrankError) -> RequestError:
    for kind, status, code in _STATUS_BY_ERROR:
        if isinstance(error, kind):
            headers = {"Retry-After": "1"} if status == 503 else {}
            return RequestError(status, str(error), code=code, headers=headers)
    raise AssertionError from error
