"""The board page, public or for admins only; health check and metrics for operators."""

from __future__ import annotations

import hmac
from typing import Annotated, Any

from fastapi import APIRouter, Query
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


Category = Annotated[str, Query(max_length=300)]


@router.get("/")
def board(request: Request, category: Category = "") -> Response:
    service = service_of(request)
    return _board_page(request, check_board_access(service, request), category)


@router.get("/board/{token}")
def linked_board(request: Request, token: str, category: Category = "") -> Response:
    """Show the board to someone who has the read-only link."""
    check_board_access(service_of(request), request, token)
    return _board_page(request, None, category, token)


def _board_page(request: Request, csrf: str | None, category: str, link: str = "") -> Response:
    service = service_of(request)
    latest = service.boards.latest(routes.BOARD_WAIT)
    if category not in latest.categories:
        category = ""
    if csrf is not None:
        return _render(request, latest, csrf, category, link)
    # Readers without rights all see the same pages, which are rendered once.
    key = (latest, service.projection.settings, service.projection.state)
    if service.public_boards is None or service.public_boards[0] != key:
        service.public_boards = (key, {})
    pages = service.public_boards[1]
    if (category, link) not in pages:
        rendered = _render(request, latest, None, category, link)
        pages[category, link] = (bytes(rendered.body), rendered.headers["content-security-policy"])
    body, policy = pages[category, link]
    return HTMLResponse(body, headers={"Content-Security-Policy": policy})


def _render(request: Request, board: Board, csrf: str | None, category: str, link: str) -> Response:
    values = board.as_dict()
    history = values["history"]
    return page(
        request,
        "board.html",
        admin=csrf is not None,
        csrf=csrf or "",
        board=values,
        history=history,
        category=category,
        link=link,
    )


def check_board_access(service: Service, request: Request, link: str = "") -> str | None:
    """Return the CSRF token of an admin, None for other readers; raise RequestError if the board is private.

    `link` is the token of the read-only link, if the reader has one.
    """
    session = service.authenticator.admin_or_none(request)
    settings = service.projection.settings
    if link:
        token = board_token(service)
        if token is None or not hmac.compare_digest(token.encode(), link.encode("utf-8", "surrogatepass")):
            raise RequestError(404, "This link is not valid. It may have been replaced: ask for a new one.")
    elif session is None and not settings.board_public:
        raise RequestError(403, "The board of this study is not public.", code="private")
    return None if session is None else session.csrf


def board_token(service: Service) -> str | None:
    """Return the token of the read-only link to the board; None if there is none."""
    number = service.projection.settings.board_link
    return service.collection.keys.board_token(number) if number > 0 else None


@router.get("/api")
def api(request: Request) -> Response:
    """Show the description of the API as a page, without scripts."""
    description = request.app.openapi()
    return page(request, "api.html", endpoints=_endpoints(description), version=__version__)


def _endpoints(description: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the endpoints of an OpenAPI description, with their parameters and the fields of their bodies."""
    schemas = description.get("components", {}).get("schemas", {})
    found = []
    for path, methods in description["paths"].items():
        for method, one in methods.items():
            content = one.get("requestBody", {}).get("content", {})
            schema: dict[str, Any] = next((body.get("schema", {}) for body in content.values()), {})
            found.append(
                {
                    "method": method.upper(),
                    "path": path,
                    "tag": (one.get("tags") or ["other"])[0],
                    "text": one.get("description") or one.get("summary", ""),
                    "parameters": [
                        {
                            "name": each["name"],
                            "type": _type_name(each.get("schema", {}), schemas),
                            "required": each.get("required", False),
                            "text": each.get("description", ""),
                        }
                        for each in one.get("parameters", ())
                    ],
                    "fields": _fields(schema, schemas),
                    "responses": {status: each["description"] for status, each in one["responses"].items()},
                }
            )
    return found


def _fields(schema: dict[str, Any], schemas: dict[str, Any]) -> list[dict[str, Any]]:
    schema = _resolved(schema, schemas)
    required = schema.get("required", ())
    return [
        {
            "name": name,
            "type": _type_name(one, schemas),
            "required": name in required,
            "text": one.get("description", ""),
        }
        for name, one in schema.get("properties", {}).items()
    ]


def _resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    resolved: dict[str, Any] = schemas.get(str(schema.get("$ref", "")).rpartition("/")[2], schema)
    return resolved


def _type_name(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """Return the type of a value in words."""
    schema = _resolved(schema, schemas)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type_name(one, schemas) for one in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(str(value) for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type_name(schema.get('items', {}), schemas)}"
    if schema.get("properties"):
        return "{" + ", ".join(schema["properties"]) + "}"
    return str(schema.get("type", "any"))


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
