"""The application: one collection, served."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread
from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from crowdrank import __version__
from crowdrank.server import errors
from crowdrank.server.headers import Headers
from crowdrank.server.metrics import Watching
from crowdrank.server.routes import admin_api, admin_pages, annotator_pages, api, board, judging, operations
from crowdrank.server.service import Options, Service
from crowdrank.storage import Collection

THREADS = 64
"""Requests that are worked on at once: those who wait for the disk are stored together."""
_ABOUT = """Everything that the pages do.

Annotators send the token of their personal link, organisers the admin secret, as `Authorization: Bearer …`.
Every error is `{"error": {"code", "message", "detail"}}`."""


def create_app(database: str | Path | Collection, options: Options | None = None) -> FastAPI:
    """For a collection in a file of SQLite or a database of PostgreSQL; made where there is none."""
    told = options or Options()
    collection = (
        database
        if isinstance(database, Collection)
        else Collection.open(database, patience=told.patience, durable=told.durable)
    )
    service = Service(collection, told)

    @asynccontextmanager
    async def alive(_: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        service.start()
        yield
        await anyio.to_thread.run_sync(service.stop)

    app = FastAPI(
        title="crowdrank",
        version=__version__,
        description=_ABOUT,
        lifespan=alive,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
    )
    app.state.service = service
    errors.install(app)
    for room in (operations, api, admin_api, judging, board, annotator_pages, admin_pages):
        app.include_router(room.router)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static", check_dir=False), name="static")
    app.add_middleware(Watching)
    app.add_middleware(Headers)
    return app
