"""What every response says to browsers, and how much a request may hold. Plain ASGI: nothing is buffered."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 1 << 20
LARGEST_UPLOAD = 32 << 20
_UPLOADS = ("/api/v1/items", "/api/v1/annotators", "/api/v1/media", "/admin/items", "/admin/links")
_ALWAYS = {
    # not "no-referrer": with it browsers say "Origin: null" of our own forms, which are then refused
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


def content_policy(image_hosts: Iterable[str] = ()) -> str:
    """Scripts, styles and everything else from here alone; pictures also from where items have theirs."""
    images = " ".join(["'self'", "data:", *sorted(image_hosts)])
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src {images}; connect-src 'self'; "
        "font-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


class Headers:
    """Adds what is missing to every response, and refuses bodies that are too large."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._policy = app, content_policy()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = LARGEST_UPLOAD if scope["path"].startswith(_UPLOADS) else LARGEST_BODY
        body = _Body(receive, most)

        refused = False

        async def sent(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start":
                if body.over and message["status"] != 413:
                    refused = True
                    await _refuse(sent)
                    return
                self._add(scope, MutableHeaders(scope=message))
            elif refused and message.get("body") != _TOO_LARGE:
                return  # what would have been said of a body that ended too soon
            await send(message)

        if _announced(scope) > most:
            await _refuse(sent)
            return
        await self._app(scope, body, sent)

    def _add(self, scope: Scope, headers: MutableHeaders) -> None:
        for name, value in _ALWAYS.items():
            headers.setdefault(name, value)
        headers.setdefault("Content-Security-Policy", self._policy)
        static = scope["path"].startswith(("/static/", "/media/"))
        headers.setdefault("Cache-Control", "public, max-age=3600" if static else "no-store")
        if scope.get("scheme") == "https":
            headers.setdefault("Strict-Transport-Security", "max-age=31536000")


class _Body:
    """What is received, up to a limit: then as if the sender had gone away."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._left = receive, most
        self.over = False

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                self.over = True
                return {"type": "http.disconnect"}
        return message


def _announced(scope: Scope) -> int:
    said: Any = dict(scope["headers"]).get(b"content-length", b"0")
    return int(said) if said.isdigit() and len(said) < 19 else 0 if said == b"0" else LARGEST_UPLOAD + 1


async def _refuse(send: Send) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(_TOO_LARGE)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": _TOO_LARGE})


_TOO_LARGE = json.dumps(
    {"error": {"code": "too_large", "message": "This is more than can be sent at once.", "detail": None}}
).encode()
