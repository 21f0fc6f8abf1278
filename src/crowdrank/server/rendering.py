"""Pages from templates, with what every one of them needs; pages/CONTEXT.md says what each is given."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from crowdrank.server.assignments import image_hosts
from crowdrank.server.content import markdown
from crowdrank.server.errors import Problem
from crowdrank.server.headers import content_policy
from crowdrank.server.service import service_of

PAGES = Path(__file__).parent / "pages"
SAID = {
    "saved": "Saved.",
    "added": "Added.",
    "removed": "Removed.",
    "paused": "Paused: nobody is asked anything until you go on.",
    "resumed": "Running again.",
    "closed": "Closed: nobody is asked anything more.",
    "revoked": "The link works no longer.",
    "excluded": "Their votes count no longer.",
    "included": "Their votes count again.",
    "voided": "These votes count no longer.",
    "undone": "Taken back.",
}
"""Messages after a redirection, by the word in the address: nobody else's text gets onto a page."""


@lru_cache(maxsize=1)
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(PAGES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    try:
        from crowdrank.server.svg import GLOBALS
    except ImportError:
        return made
    made.globals.update(GLOBALS)
    return made


def page(
    request: Request, template: str, /, status_code: int = 200, *, admin: bool = False, csrf: str = "", **context: Any
) -> HTMLResponse:
    """A template filled in."""
    live = service_of(request).live
    made = (
        _environment()
        .get_template(template)
        .render(
            settings=live.settings,
            state=live.state,
            admin=admin,
            csrf=csrf,
            path=request.scope["path"],
            said=SAID.get(request.query_params.get("said", "")),
            **context,
        )
    )
    headers = {"Content-Security-Policy": content_policy(image_hosts(live))}
    return HTMLResponse(made, status_code, headers=headers)


def error_page(request: Request, problem: Problem) -> HTMLResponse:
    made = page(
        request, "error.html", problem.status, status=problem.status, code=problem.code, message=problem.message
    )
    made.headers.update(problem.headers)
    return made


@lru_cache(maxsize=16)
def instructions_html(text: str) -> str:
    return markdown(text) if text else ""
