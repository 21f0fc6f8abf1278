"""Figures in the form that Prometheus reads. Those of requests are of the process that answers, and say which.

What was asked and how it went: a line of JSON a request, and its figures. Never an address: it may hold a secret.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from bisect import bisect_left
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crowdrank.server.errors import broken, log_broken

_EDGES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Metrics:
    """Requests by route and status, and how long they took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[method, route, status] += 1
            self._buckets.setdefault(route, [0] * (len(_EDGES) + 1))[bisect_left(_EDGES, seconds)] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]

    def text(self, service: Any) -> str:
        with self._lock:
            lines = [*self._of_requests(), *_of_collection(service)]
        return "\n".join(lines) + "\n"

    def _of_requests(self) -> list[str]:
        process = f'process="{os.getpid()}"'
        lines = ["# HELP crowdrank_requests_total Requests answered.", "# TYPE crowdrank_requests_total counter"]
        lines += [
            f'crowdrank_requests_total{{{process},method="{method}",route="{_quoted(route)}",status="{status}"}} '
            f"{count}"
            for (method, route, status), count in sorted(self._requests.items())
        ]
        lines += [
            "# HELP crowdrank_request_seconds How long requests took.",
            "# TYPE crowdrank_request_seconds histogram",
        ]
        for route, counts in sorted(self._buckets.items()):
            labels, total = f'{process},route="{_quoted(route)}"', 0
            for edge, count in zip((*_EDGES, "+Inf"), counts, strict=True):
                total += count
                lines.append(f'crowdrank_request_seconds_bucket{{{labels},le="{edge}"}} {total}')
            lines.append(f"crowdrank_request_seconds_sum{{{labels}}} {self._seconds[route]:.6f}")
            lines.append(f"crowdrank_request_seconds_count{{{labels}}} {total}")
        return lines


def _of_collection(service: Any) -> list[str]:
    live, board = service.live.catch_up(), service.boards.latest
    figures = {
        "log_rows": ("Rows of the log.", live.seq),
        "items": ("Items that are asked about.", sum(not one.hidden for one in live.items.values())),
        "annotators": ("Annotators who joined.", len(live.people)),
        "votes": ("Votes that count.", live.decided),
        "answers": ("Answers of all kinds, those taken back among them.", len(live.folding)),
        "open_questions": ("Questions that wait for an answer.", len(live.open)),
        "open": ("1 while questions are put.", int(live.state == "open")),
        "board_lag_rows": ("Rows that the board has not seen yet.", live.touched - (0 if board is None else board.seq)),
        "board_seconds": ("How long the last board took.", 0.0 if board is None else round(board.seconds, 4)),
        "webhook_lag_rows": ("Rows that webhooks have not told of yet.", service.webhooks.lag()),
    }
    return [
        line
        for name, (said, value) in figures.items()
        for line in (f"# HELP crowdrank_{name} {said}", f"# TYPE crowdrank_{name} gauge", f"crowdrank_{name} {value}")
    ]


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


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
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
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
