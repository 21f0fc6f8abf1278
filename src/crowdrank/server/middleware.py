"""ASGI middleware around every request: security headers, body size limits, access log and request metrics."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

import anyio.to_thread
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crowdrank.server.errors import internal_error_response, log_internal_error

MAX_PUBLIC_BODY = 64 << 10
"""Bytes that anyone may send: a vote, or the form of the public link. More are only read from admins."""
MAX_BODY = 1 << 20
MAX_UPLOAD = 32 << 20
BODY_SECONDS = 30.0
UPLOAD_SECONDS = 600.0
"""How long a client may take to send the body of a request, and an admin to send a file."""
_UPLOAD_PATHS = ("/api/v1/items", "/api/v1/annotators", "/api/v1/media", "/admin/items", "/admin/links", "/studies")
_HEADERS = {
    # Not "no-referrer": browsers would then send "Origin: null" with our own forms, which we reject.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
_REFUSALS = {
    status: json.dumps({"error": {"code": code, "message": message, "detail": None}}).encode()
    for status, code, message in (
        (401, "unauthorized", "Only admins may send this much: open the admin link, or send its token."),
        (408, "timeout", "The request took too long to arrive."),
        (413, "too_large", "The request is too large."),
    )
}
_METHODS = {"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"}
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_logger = logging.getLogger("crowdrank.requests")


def content_security_policy(media_hosts: Iterable[str] = (), form_host: str | None = None) -> str:
    """Allow everything from this server only; images, sound and video also from the hosts that items use."""
    hosts = sorted(media_hosts)
    images, media = " ".join(["'self'", "data:", *hosts]), " ".join(["'self'", *hosts])
    forms = "'self'" if form_host is None else f"'self' https://{form_host}"
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src {images}; media-src {media}; "
        f"frame-src 'self'; connect-src 'self'; font-src 'self'; manifest-src 'self'; form-action {forms}; "
        "base-uri 'none'; frame-ancestors 'none'"
    )


def add_security_headers(scope: Scope, headers: list[tuple[bytes, bytes]]) -> None:
    """Add the security headers that a response does not have yet."""
    present = {name.lower() for name, _ in headers}
    headers += [header for header in _RAW_HEADERS if header[0] not in present]
    if b"content-security-policy" not in present:
        headers.append((b"content-security-policy", _POLICY))
    if b"cache-control" not in present:
        is_static = scope["path"].startswith(("/static/", "/media/"))
        headers.append((b"cache-control", b"public, max-age=3600" if is_static else b"no-store"))
    if scope.get("scheme") == "https":
        headers.append((b"strict-transport-security", b"max-age=31536000"))


_POLICY = content_security_policy().encode()


class SecurityHeadersMiddleware:
    """Adds security headers to every response and refuses bodies that are too large or too slow. Buffers nothing.

    A body that only admins may send is not read, let alone parsed, before the admin is authenticated.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most, length = MAX_UPLOAD if scope["path"].startswith(_UPLOAD_PATHS) else MAX_BODY, content_length(scope)
        large = length is None or MAX_PUBLIC_BODY < length <= most
        admin = large and scope["method"] not in ("GET", "HEAD") and await _is_admin(scope)
        limit = most if admin else MAX_PUBLIC_BODY
        body = _LimitedBody(receive, limit, UPLOAD_SECONDS if admin else BODY_SECONDS)
        refused = False

        async def send_with_headers(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start":
                if body.refusal is not None and message["status"] != body.refusal:
                    refused = True
                    await _refuse(send_with_headers, body.refusal)
                    return
                message["headers"] = list(message.get("headers", ()))
                add_security_headers(scope, message["headers"])
            elif refused and message.get("body") not in _REFUSALS.values():
                return  # the app's own response to the truncated body
            await send(message)

        if length is not None and length > limit:
            await _refuse(send_with_headers, 401 if most > MAX_BODY and length <= most else 413)
            return
        await self._app(scope, body, send_with_headers)


class PrefixMiddleware:
    """Serves an application under a path. Requests may have the prefix, or a proxy may have removed it.

    The application itself sees paths without it. Pages and redirects get it back.
    """

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app, self._prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(f"{self._prefix}/"):
            path = scope["path"].removeprefix(self._prefix)
            scope = {**scope, "path": path, "raw_path": path.encode()}

        async def send_with_prefix(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [self._located(*header) for header in message.get("headers", ())]
            await send(message)

        await self._app(scope, receive, send_with_prefix)

    def _located(self, name: bytes, value: bytes) -> tuple[bytes, bytes]:
        is_path = name.lower() == b"location" and value.startswith(b"/") and not value.startswith(b"//")
        return name, self._prefix.encode() + value if is_path else value


class _LimitedBody:
    """Receives a body up to a size and a time limit; beyond them, pretends that the client disconnected.

    Attributes
    ----------
    refusal : int or None
        The HTTP status of the limit that was exceeded.
    """

    def __init__(self, receive: Receive, limit: int, seconds: float) -> None:
        self._receive, self._left = receive, limit
        self._deadline, self._complete = asyncio.get_running_loop().time() + seconds, False
        self.refusal: int | None = None

    async def __call__(self) -> Message:
        if self._complete:
            return await self._receive()  # waits for the client to disconnect, as long as the response takes
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            self.refusal = 408
            return {"type": "http.disconnect"}
        if message["type"] == "http.request":
            self._complete = not message.get("more_body", False)
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                self.refusal = 413
                return {"type": "http.disconnect"}
        return message


def content_length(scope: Scope) -> int | None:
    """Return the announced length of the body; None if it is sent in pieces of unknown number."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    if b"transfer-encoding" in headers:
        return None
    length = headers.get(b"content-length", b"0")
    return int(length) if length.isdigit() and len(length) < 19 else MAX_UPLOAD + 1


async def _is_admin(scope: Scope) -> bool:
    authenticator = scope["app"].state.service.authenticator
    found: bool = await anyio.to_thread.run_sync(authenticator.is_admin, Request(scope))
    return found


async def _refuse(send: Send, status: int) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(_REFUSALS[status])).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": _REFUSALS[status]})


class AccessLogMiddleware:
    """Logs and counts every request by the pattern of its route. URLs are not logged, they may contain secrets."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except Exception as error:
            log_internal_error(route_of(scope), error)
            if not status:
                await internal_error_response(scope)(scope, receive, send_and_note)
        finally:
            record_request(scope, status or 500, time.perf_counter() - start)


def route_of(scope: Scope) -> str:
    """Return the pattern of the route that a request matched."""
    path = getattr(scope.get("route"), "path", None)
    return str(path) if path else "none"


def record_request(scope: Scope, status: int, seconds: float) -> None:
    """Count a request, and log it if the level is "info"."""
    method, route = scope["method"] if scope["method"] in _METHODS else "other", route_of(scope)
    metrics: RequestMetrics = scope["app"].state.service.metrics
    metrics.record(method, route, status, seconds)
    if _logger.isEnabledFor(logging.INFO):
        fields = {"method": method, "route": route, "status": status, "milliseconds": round(seconds * 1e3, 2)}
        _logger.info("request", extra=fields)


class RequestMetrics:
    """Counts and durations of requests by route, in the text format of Prometheus."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str, int]] = Counter()
        self._histograms: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def record(self, method: str, route: str, status: int, seconds: float) -> None:
        with self._lock:
            self._counts[method, route, status] += 1
            self._histograms.setdefault(route, [0] * (len(_BUCKETS) + 1))[bisect_left(_BUCKETS, seconds)] += 1
            self._seconds[route] = self._seconds.get(route, 0.0) + seconds

    def lines(self) -> list[str]:
        """Return the metrics of this process, one line each."""
        process = f'process="{os.getpid()}"'
        lines = ["# HELP crowdrank_requests_total Requests answered.", "# TYPE crowdrank_requests_total counter"]
        with self._lock:
            for (method, route, status), count in sorted(self._counts.items()):
                labels = f'{process},method="{method}",route="{_escape(route)}",status="{status}"'
                lines.append(f"crowdrank_requests_total{{{labels}}} {count}")
            lines.append("# HELP crowdrank_request_seconds Duration of requests.")
            lines.append("# TYPE crowdrank_request_seconds histogram")
            for route, counts in sorted(self._histograms.items()):
                labels, total = f'{process},route="{_escape(route)}"', 0
                for bound, count in zip((*_BUCKETS, "+Inf"), counts, strict=True):
                    total += count
                    lines.append(f'crowdrank_request_seconds_bucket{{{labels},le="{bound}"}} {total}')
                lines.append(f"crowdrank_request_seconds_sum{{{labels}}} {self._seconds[route]:.6f}")
                lines.append(f"crowdrank_request_seconds_count{{{labels}}} {total}")
        return lines


def _escape(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
