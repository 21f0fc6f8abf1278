"""What was asked and how it went: a line of JSON a request, and its figures. Never an address: it may hold a secret."""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crowdrank.server.metrics import Metrics
from crowdrank.server.problems import broken, log_broken

_logger = logging.getLogger("crowdrank.requests")
_METHODS = {"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"}


class Watching:
    """Around everything else. Routes are told by their pattern."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except Exception as error:
            log_broken(_route(scope), error)
            if not status:
                await broken(scope)(scope, receive, sent)
        finally:
            self._note(scope, status or 500, time.perf_counter() - begin)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        metrics: Metrics = scope["app"].state.service.metrics
        metrics.note(method, _route(scope), status, seconds)
        if _logger.isEnabledFor(logging.INFO):
            told = {"method": method, "route": _route(scope), "status": status, "milliseconds": round(seconds * 1e3, 2)}
            _logger.info("request", extra=told)


def _route(scope: Scope) -> str:
    found = getattr(scope.get("route"), "path", None)
    return str(found) if found else "none"


class JsonLines(logging.Formatter):
    """A log record as one line of JSON."""

    _PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage(),
            "process": record.process,
        }  # fmt: skip
        told |= {key: value for key, value in vars(record).items() if key not in self._PLAIN}
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str, ensure_ascii=False)


def log_to(level: str = "info") -> None:
    """Everything that is logged, as lines of JSON on stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("crowdrank", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
