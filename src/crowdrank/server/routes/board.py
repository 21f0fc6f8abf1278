"""The board, for everyone or for the organiser alone."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crowdrank.server.errors import Problem
from crowdrank.server.rendering import page
from crowdrank.server.service import Service, service_of

router = APIRouter(include_in_schema=False)
PATIENCE = 3.0
"""Seconds that a page waits for a new board before it shows the last one."""


@router.get("/")
def board(request: Request) -> Response:
    service = service_of(request)
    known = allowed(service, request)
    shown = service.boards.look(PATIENCE).as_dict()
    return page(request, "board.html", admin=known is not None, csrf=known or "", board=shown, history=shown["history"])


def allowed(service: Service, request: Request) -> str | None:
    """What forms of the organiser hold, or None for everyone else; raises a Problem where the board is not theirs."""
    known = service.door.maybe_admin(request)
    if known is None and not service.live.settings.board_public:
        raise Problem(403, "The board of this collection is for the organiser alone.", code="private")
    return None if known is None else known.csrf
