"""For those who keep it running."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from crowdrank import __version__
from crowdrank.server.service import service_of

router = APIRouter(include_in_schema=False)


@router.get("/healthz")
def health(request: Request) -> dict[str, Any]:
    """That the database answers; 503 where it does not."""
    return {"status": "ok", "version": __version__, **service_of(request).collection.health()}


@router.get("/metrics")
def metrics(request: Request) -> Response:
    service = service_of(request)
    service.admin(request)
    return PlainTextResponse(service.metrics.text(service), media_type="text/plain; version=0.0.4")
