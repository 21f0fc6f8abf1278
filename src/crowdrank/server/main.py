"""The server as a program: one process, or several that share a socket; each stops when its work is done."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from crowdrank.errors import SettingError
from crowdrank.server.service import Options

_TOLD = "CROWDRANK_SERVE"
"""What processes are told by those that start them."""
GRACE = 10
"""Seconds that requests have to end when the server is stopped."""


def serve(
    database: str,
    options: Options,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    processes: int = 1,
    log_level: str = "info",
) -> None:
    """Serve until told to stop."""
    import uvicorn

    if processes < 1:
        raise SettingError(f"processes must be at least 1, got {processes}.")
    check_free(host, port)
    told = asdict(options) | {"media": None if options.media is None else str(options.media)}
    os.environ[_TOLD] = json.dumps({"database": database, "options": told, "log_level": log_level})
    uvicorn.run(
        "crowdrank.server.main:application",
        factory=True,
        host=host,
        port=port,
        workers=processes,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=GRACE,
        ws="none",
    )


def application() -> FastAPI:
    """Called in each process."""
    from crowdrank.server.app import create_app
    from crowdrank.server.metrics import log_to

    told: dict[str, Any] = json.loads(os.environ[_TOLD])
    log_to(told["log_level"])
    options = told["options"]
    media = None if options["media"] is None else Path(options["media"])
    return create_app(told["database"], Options(**{**options, "media": media}))


def check_free(host: str, port: int) -> None:
    """Say it in plain words where someone else is there already."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(kind) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise SettingError(
                f"Port {port} of {host} cannot be used ({error.strerror}): try --port {port + 1}."
            ) from error
