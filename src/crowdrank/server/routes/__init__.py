"""The routes of the server, one module per audience; forms and redirects that they share."""

from __future__ import annotations

import secrets
from typing import Annotated

from fastapi import Depends
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse

from crowdrank.server.authentication import FORM_COOKIE, csrf_token
from crowdrank.server.errors import RequestError
from crowdrank.server.service import service_of

MAX_FILES = 200
"""Files in one form, at most."""
BOARD_WAIT = 3.0
"""Seconds that a page waits for a new board before it shows the last one."""


class SubmittedForm:
    """The fields of a submitted form, and the uploaded files with their names."""

    def __init__(self, fields: dict[str, str], files: list[tuple[str, bytes]]) -> None:
        self.fields, self.files = fields, files

    @property
    def file(self) -> tuple[str, bytes] | None:
        """The uploaded file, of a form that has one; None if none was chosen."""
        return self.files[0] if self.files else None

    def __getitem__(self, name: str) -> str:
        return self.fields.get(name, "").strip()

    @property
    def csrf(self) -> str:
        return self["csrf"]


async def _read_form(request: Request) -> SubmittedForm:
    # Read here, because the routes run in threads and cannot await.
    form = await request.form(max_files=MAX_FILES, max_fields=200, max_part_size=1 << 20)
    fields, files = {}, []
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            if value.filename:
                files.append((value.filename, await value.read()))
        else:
            fields[name] = value
    await form.close()
    return SubmittedForm(fields, files)


Form = Annotated[SubmittedForm, Depends(_read_form)]


def redirect(path: str, notice: str | None = None) -> RedirectResponse:
    """Redirect to another page, which shows a notice of `rendering.NOTICES`."""
    return RedirectResponse(path if notice is None else f"{path}?notice={notice}", 303)


def parse_integer(text: str, name: str, *, minimum: int = 0) -> int | None:
    """Return the number in a form field; None if it is empty."""
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 15 or int(text) < minimum:
        raise RequestError(422, f"{name} must be a whole number of at least {minimum}, got {text[:30]!r}.")
    return int(text)


def form_secret(request: Request) -> tuple[str, str]:
    """Return the CSRF token of a form for people who are not signed in, and the secret that their cookie must hold."""
    secret = service_of(request).authenticator.cookie(request, FORM_COOKIE) or secrets.token_urlsafe(16)
    return csrf_token(secret), secret


def is_checked(text: str) -> bool:
    """Return the value of a checkbox."""
    return text in ("on", "true", "1", "yes")


def public_url(request: Request, path: str) -> str:
    """Return the URL of a path as people use it, behind a proxy or not."""
    options = service_of(request).options
    base = options.public_url or str(request.base_url)
    return f"{base.rstrip('/')}{options.prefix}{path}"
