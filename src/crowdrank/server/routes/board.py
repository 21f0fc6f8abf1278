"""The board page, public or for admins only; health check and metrics for operators."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from crowdrank import __version__
from crowdrank.errors import CrowdrankError
from crowdrank.server import routes
from crowdrank.server.boards import Board
from crowdrank.server.errors import RequestError, log_internal_error
from crowdrank.server.rendering import page
from crowdrank.server.service import Service, service_of

router = APIRouter(include_in_schema=False)


@router.get("/")
def board(request: Request) -> Response:
    service = service_of(request)
    csrf = check_board_access(service, request)
    latest = service.boards.latest(routes.BOARD_WAIT)
    if csrf is not None or request.query_params:
        return _board_page(request, latest, csrf)
    # Readers without rights all see the same page, which is rendered once.
    key = (latest, service.projection.settings, service.projection.state)
    cached = service.public_board
    if cached is None or cached[0] != key:
        rendered = _board_page(request, latest, None)
        cached = service.public_board = (key, bytes(rendered.body), rendered.headers["content-security-policy"])
    return HTMLResponse(cached[1], headers={"Content-Security-Policy": cached[2]})


def _board_page(request: Request, board: Board, csrf: str | None) -> Response:
    values = board.as_dict()
    return page(request, "board.html", admin=csrf is not None, csrf=csrf or "", board=values, history=values["history"])


def check_board_access(service: Service, request: Request) -> str | None:
    """Return the CSRF token of an admin, None for others; raise RequestError (403) if the board is private."""
    session = service.authenticator.admin_or_none(request)
    if session is None and not service.projection.settings.board_public:
        raise RequestError(403, "The board of this study is not public.", code="private")
    return None if session is None else session.csrf


@router.get("/healthz")
def health(request: Request) -> Response:
    """Return the state of the database; 503 if it does not respond, or cannot be written."""
    try:
        return JSONResponse({"status": "ok", "version": __version__, **service_of(request).collection.health()})
    except Exception as error:
        message = str(error) if isinstance(error, CrowdrankError) else "The database failed: see the server log."
        log_internal_error("/healthz", error)
        return JSONResponse({"status": "unhealthy", "version": __version__, "message": message}, 503)


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """Return metrics of this process and of the collection in the text format of Prometheus."""
    service = service_of(request)
    service.admin(request)
    lines = [*service.metrics.lines(), *_collection_metrics(service)]
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def _collection_metrics(service: Service) -> list[str]:
    projection, board = service.projection.catch_up(), service.boards.latest_built
    board_seq, board_seconds = (0, 0.0) if board is None else (board.seq, round(board.seconds, 4))
    gauges = {
        "log_rows": ("Rows of the log.", projection.seq),
        "items": ("Items that are not hidden.", sum(not item.hidden for item in projection.items.values())),
        "annotators": ("Annotators.", len(projection.annotators)),
        "votes": ("Votes that count.", projection.n_counted),
        "answers": ("All answers, including skips and withdrawn votes.", len(projection.votes)),
        "open_questions": ("Questions that are not answered yet.", len(projection.open_assignments)),
        "open": ("1 while questions are asked.", int(projection.state == "open")),
        "board_lag_rows": ("Rows that are not on the board yet.", projection.board_seq - board_seq),
        "board_seconds": ("Duration of the last board build.", board_seconds),
        "webhook_lag_rows": ("Rows that webhooks have not processed yet.", service.webhooks.lag()),
    }
    return [
        line
        for name, (help_text, value) in gauges.items()
        for line in (
            f"# HELP crowdrank_{name} {help_text}",
            f"# TYPE crowdrank_{name} gauge",
            f"crowdrank_{name} {value}",
        )
    ]
