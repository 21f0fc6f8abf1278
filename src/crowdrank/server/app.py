"""Create the web application for one collection, and run it as one process or several that share a socket."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import socket
import ssl
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

import anyio.to_thread
from fastapi import FastAPI
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from crowdrank import __version__
from crowdrank.errors import SettingError
from crowdrank.server import errors
from crowdrank.server.middleware import AccessLogMiddleware, PrefixMiddleware, SecurityHeadersMiddleware
from crowdrank.server.routes import (
    accounts,
    admin_annotator_pages,
    admin_api,
    admin_pages,
    board,
    judging_api,
    judging_pages,
    quarantine,
)
from crowdrank.server.service import BackupSchedule, Options, Service
from crowdrank.storage import Collection

# The HTTP protocol of the server: connections that do not finish their headers in time are closed.

HEADER_SECONDS = 20.0
"""How long a client may take to send the headers of a request, from its first byte on."""


class TimedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's protocol with a time limit for headers. The time limit for bodies is in `middleware.py`."""

    _header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._start_timer()  # not restarted by every byte, or a slow client would hold the connection for ever
        else:
            self._stop_timer()

    def shutdown(self) -> None:
        """Finish the running request, unless its body has not arrived: the server would wait for its client."""
        super().shutdown()
        if self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(HEADER_SECONDS, self._close_if_waiting)

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _close_if_waiting(self) -> None:
        self._header_timer = None
        if (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing():
            self.transport.close()


THREADS = 64
"""Requests handled at the same time. Most of them wait for the disk, and are written in one transaction."""
_DESCRIPTION = """Everything that the pages can do.

Send the token of a personal link, or of the admin link, as `Authorization: Bearer …`.
Every error has the form `{"error": {"code", "message", "detail"}}`."""
_DETAIL = re.compile(r"\nDETAIL:.*?(?=\n\[SQL: |\n\nThe above exception|\n\nDuring handling|\Z)", re.DOTALL)
"""What PostgreSQL adds to its errors: the values of the row, which may be about people."""
_ENVIRONMENT = "CROWDRANK_SERVE"
"""The environment variable that passes the options to the worker processes."""
SHUTDOWN_SECONDS = 10
"""How long running requests have to finish when the server stops."""
WORKER_SECONDS = 60
"""How long a process may take to start or to respond before it is replaced: on a busy machine, a start takes long."""


class CollectionApp(FastAPI):
    """The application of one collection. Votes take a shorter way than all other requests."""

    def __init__(self, *, prefix: str, **options: Any) -> None:
        super().__init__(**options)
        self._prefix, self._judging = prefix, judging_api.DirectJudging()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            short = {**scope, "app": self, "path": scope["path"].removeprefix(self._prefix)}
            if self._judging.accepts(short):
                await self._judging(short, receive, send)
                return
        await super().__call__(scope, receive, send)


def create_app(database: str | Path | Collection, options: Options | None = None) -> FastAPI:
    """Create the application.

    Parameters
    ----------
    database : str, Path or Collection
        An SQLite file, a postgresql:// URL, or an open collection. A missing database is created.
    options : Options, optional

    Returns
    -------
    FastAPI
    """
    options = options or Options()
    collection = (
        database
        if isinstance(database, Collection)
        else Collection.open(database, timeout=options.timeout, durable=options.durable)
    )
    service = Service(collection, options)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        service.start()
        yield
        await anyio.to_thread.run_sync(service.stop)

    app = CollectionApp(
        prefix=options.prefix,
        title="crowdrank",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
    )
    app.state.service = service
    errors.install_handlers(app)
    # The last one has the route /admin/{token}, which must not shadow the other pages.
    for module in (board, judging_api, admin_api, quarantine, judging_pages, admin_annotator_pages, accounts):
        app.include_router(module.router)
    for router in (quarantine.pages, admin_pages.router):
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static", check_dir=False), name="static")
    add_middleware(app, options)
    return app


def add_middleware(app: FastAPI, options: Options) -> None:
    app.add_middleware(AccessLogMiddleware)
    app.add_middleware(SecurityHeadersMiddleware)
    if options.prefix:
        app.add_middleware(PrefixMiddleware, prefix=options.prefix)


def serve(
    database: str,
    options: Options,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    processes: int = 1,
    log_level: str = "info",
    when_ready: Callable[[], None] | None = None,
    studies: bool = False,
    certificate: tuple[str, str | None] | None = None,
) -> None:
    """Serve a collection until the process receives a signal to stop.

    Parameters
    ----------
    database : str
        An SQLite file or a postgresql:// URL.
    options : Options
    host, port : str, int
        Where to listen.
    processes : int, default 1
        The number of worker processes.
    log_level : str, default "info"
        "debug", "info", "warning" or "error".
    when_ready : callable, optional
        Called once, from another thread, when the server answers.
    studies : bool, default False
        Whether `database` is a folder of studies.
    certificate : tuple of str, optional
        The files of the TLS certificate and of its key, for HTTPS; None if the key is in the same file.
    """
    import uvicorn

    if processes < 1:
        raise SettingError(f"processes must be at least 1, got {processes}.")
    check_port(host, port)
    values = asdict(options) | {"media": None if options.media is None else str(options.media)}
    if options.backups is not None:
        values["backups"] = asdict(options.backups) | {"folder": str(options.backups.folder)}
    os.environ[_ENVIRONMENT] = json.dumps(
        {"database": database, "options": values, "log_level": log_level, "studies": studies}
    )
    if when_ready is not None:
        scheme = "http" if certificate is None else "https"
        threading.Thread(target=_wait_until_ready, args=(scheme, host, port, when_ready), daemon=True).start()
    uvicorn.run(
        "crowdrank.server.app:application",
        factory=True,
        host=host,
        port=port,
        workers=processes,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_worker_healthcheck=WORKER_SECONDS,
        ws="none",
        http=TimedProtocol,
        ssl_certfile=None if certificate is None else certificate[0],
        ssl_keyfile=None if certificate is None else certificate[1],
    )


def _wait_until_ready(scheme: str, host: str, port: int, when_ready: Callable[[], None]) -> None:
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    address = f"{scheme}://{f'[{local}]' if ':' in local else local}:{port}/healthz"
    # The certificate is for the public name, and this asks whether the own process answers.
    own = HTTPSHandler(context=ssl._create_unverified_context())
    direct = build_opener(ProxyHandler({}), own)
    while True:
        try:
            with direct.open(address, timeout=5):
                break
        except OSError:
            time.sleep(0.05)
    when_ready()


def application() -> ASGIApp:
    """Create the app of one worker process."""
    values: dict[str, Any] = json.loads(os.environ[_ENVIRONMENT])
    configure_logging(values["log_level"])
    given = values["options"]
    if given["media"] is not None:
        given["media"] = Path(given["media"])
    if given["backups"] is not None:
        given["backups"] = BackupSchedule(**{**given["backups"], "folder": Path(given["backups"]["folder"])})
    options = Options(**given)
    if values["studies"]:
        from crowdrank.server.studies import create_studies_app

        return create_studies_app(Path(values["database"]), options)
    return create_app(values["database"], options)


def check_port(host: str, port: int) -> None:
    """Raise SettingError if the port cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise SettingError(
                f"Port {port} on {host} cannot be used ({error.strerror}): try --port {port + 1}."
            ) from error


class JsonFormatter(logging.Formatter):
    """Formats a log record as one line of JSON."""

    _STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        fields |= {key: value for key, value in vars(record).items() if key not in self._STANDARD}
        if record.exc_info:
            fields["exception"] = _DETAIL.sub("", self.formatException(record.exc_info))
        return json.dumps(fields, default=str, ensure_ascii=False)


def configure_logging(level: str = "info") -> None:
    """Write all logs to standard error as lines of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("crowdrank", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
