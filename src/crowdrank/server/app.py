"""Create the web application for one collection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread
from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from crowdrank import __version__
from crowdrank.server import errors
from crowdrank.server.middleware import AccessLogMiddleware, SecurityHeadersMiddleware
from crowdrank.server.routes import (
    admin_annotator_pages,
    admin_api,
    admin_pages,
    board,
    judging_api,
    judging_pages,
    operations,
)
from crowdrank.server.service import Options, Service
from crowdrank.storage import Collection

THREADS = 64
"""Requests handled at the same time. Most of them wait for the disk, and are written in one transaction."""
_DESCRIPTION = """Everything that the pages can do.

Send the token of a personal link, or of the admin link, as `Authorization: Bearer …`.
Every error has the form `{"error": {"code", "message", "detail"}}`."""


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

    app = FastAPI(
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
    for module in (operations, judging_api, admin_api, judging_pages, board, admin_annotator_pages, admin_pages):
        app.include_router(module.router)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static", check_dir=False), name="static")
    app.add_middleware(AccessLogMiddleware)
    app.add_middleware(SecurityHeadersMiddleware)
    return app
