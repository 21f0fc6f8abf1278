"""A chat endpoint on this machine that answers as it is told: well, badly, late, or not at all."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Response(NamedTuple):
    """What the endpoint does with a request."""

    status: int = 200
    content: bytes = b""
    headers: Mapping[str, str] = {}
    delay: float = 0.0
    closes: bool = False


def completion(text: str | None, tokens_in: int = 100, tokens_out: int = 10, **more: Any) -> Response:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}
    return Response(content=json.dumps({"choices": [choice], "usage": usage, **more}).encode())


def verdict(winner: str, **more: Any) -> Response:
    return completion(json.dumps({"winner": winner}), **more)


def error(status: int, message: str = "no", **headers: str) -> Response:
    return Response(status, json.dumps({"error": {"message": message}}).encode(), headers)


class Request(NamedTuple):
    body: dict[str, Any]
    headers: dict[str, str]
    time: float

    @property
    def prompt(self) -> str:
        return self.body["messages"][0]["content"]


Behaviour = Callable[[int, dict[str, Any]], Response]


class FakeEndpoint:
    """Counts requests, and answers each by a function of its number (from 0) and its body.

    A request counts as answered when its answer is ready to be sent, whether or not the client is still there: that
    is when a vendor charges for it.
    """

    def __init__(self, behaviour: Behaviour = lambda number, body: verdict("A")):
        self.behaviour = behaviour
        self.requests: list[Request] = []
        self.answered: list[str] = []
        self.in_flight = self.most_in_flight = 0
        self._lock, self._gone = threading.Lock(), threading.Event()

    def __enter__(self) -> FakeEndpoint:
        handler = type("Handler", (_Handler,), {"endpoint": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.go_away()

    def go_away(self) -> None:
        self._gone.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def prompts(self) -> list[str]:
        return [request.prompt for request in self.requests]

    def respond(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Response:
        assert path == "/v1/chat/completions"
        with self._lock:
            number = len(self.requests)
            self.requests.append(Request(body, headers, time.monotonic()))
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        response = self.behaviour(number, body)
        self._gone.wait(response.delay)
        with self._lock:
            self.in_flight -= 1
            if response.status == 200 and not response.closes:
                self.answered.append(body["messages"][0]["content"])
        return response


class _Handler(BaseHTTPRequestHandler):
    endpoint: FakeEndpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        response = self.endpoint.respond(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
        if response.closes:
            self.close_connection = True
            self.connection.close()
            return
        try:
            self.send_response(response.status)
            for name, value in {"Content-Length": str(len(response.content)), **response.headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(response.content)
        except OSError:
            pass

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""
