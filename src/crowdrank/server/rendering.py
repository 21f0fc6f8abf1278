"""Render the templates in `pages/`. See pages/CONTEXT.md for the variables of each template."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from crowdrank.server.content import image_hosts, render_markdown
from crowdrank.server.errors import RequestError
from crowdrank.server.middleware import content_security_policy
from crowdrank.server.service import service_of

PAGES = Path(__file__).parent / "pages"
NOTICES = {
    "saved": "Saved.",
    "added": "Added.",
    "removed": "Removed.",
    "paused": "Paused. Nobody is asked anything until you resume.",
    "resumed": "Resumed.",
    "closed": "Closed. Nobody is asked anything any more.",
    "revoked": "The link no longer works.",
    "excluded": "Their votes no longer count.",
    "included": "Their votes count again.",
    "voided": "These votes no longer count.",
    "undone": "Your last answer was undone.",
}
"""Notices after a redirect, by the key in the URL. Text from a URL is never shown on a page."""


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from crowdrank.server.template_globals import GLOBALS

    environment = Environment(
        loader=FileSystemLoader(PAGES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(GLOBALS)
    return environment


def page(
    request: Request, template: str, /, status_code: int = 200, *, admin: bool = False, csrf: str = "", **context: Any
) -> HTMLResponse:
    """Render a template as a response."""
    projection = service_of(request).projection
    html = (
        _environment()
        .get_template(template)
        .render(
            settings=projection.settings,
            state=projection.state,
            admin=admin,
            csrf=csrf,
            path=request.scope["path"],
            notice=NOTICES.get(request.query_params.get("notice", "")),
            **context,
        )
    )
    headers = {"Content-Security-Policy": content_security_policy(image_hosts(projection.items.values()))}
    return HTMLResponse(html, status_code, headers=headers)


def error_page(request: Request, error: RequestError) -> HTMLResponse:
    """Render the page of an error."""
    response = page(request, "error.html", error.status, status=error.status, code=error.code, message=error.message)
    response.headers.update(error.headers)
    return response


@lru_cache(maxsize=16)
def instructions_html(text: str) -> str:
    """Return the instructions as safe HTML."""
    return render_markdown(text) if text else ""
