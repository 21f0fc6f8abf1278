"""The board page, public or for admins only."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crowdrank.server import routes
from crowdrank.server.errors import RequestError
from crowdrank.server.rendering import page
from crowdrank.server.service import Service, service_of

router = APIRouter(include_in_schema=False)


@router.get("/")
def board(request: Request) -> Response:
    service = service_of(request)
    csrf = check_board_access(service, request)
    latest = service.boards.latest(routes.BOARD_WAIT).as_dict()
    return page(request, "board.html", admin=csrf is not None, csrf=csrf or "", board=latest, history=latest["history"])


def check_board_access(service: Service, request: Request) -> str | None:
    """Return the CSRF token of an admin, None for others; raise RequestError (403) if the board is private."""
    session = service.authenticator.admin_or_none(request)
    if session is None and not service.projection.settings.board_public:
        raise RequestError(403, "The board of this study is not public.", code="private")
    return None if session is None else session.csrf
