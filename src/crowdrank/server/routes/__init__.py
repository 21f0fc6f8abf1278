"""What can be asked of the server, by whom it is for."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse

from crowdrank.server.errors import Problem


class Sent:
    """The fields of a form, and the file that came with it."""

    def __init__(self, fields: dict[str, str], file: tuple[str, bytes] | None) -> None:
        self.fields, self.file = fields, file

    def __getitem__(self, name: str) -> str:
        return self.fields.get(name, "").strip()

    @property
    def csrf(self) -> str:
        return self["csrf"]


async def _sent(request: Request) -> Sent:
    """Read before the work begins, which is done in a thread."""
    form = await request.form(max_files=1, max_fields=200, max_part_size=1 << 20)
    fields, file = {}, None
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            if value.filename:
                file = (value.filename, await value.read())
        else:
            fields[name] = value
    return Sent(fields, file)


Form = Annotated[Sent, Depends(_sent)]


def see(where: str, said: str | None = None) -> RedirectResponse:
    """Off to another page, with a word of SAID."""
    return RedirectResponse(where if said is None else f"{where}?said={said}", 303)


def whole(text: str, what: str, *, least: int = 0) -> int | None:
    """A number from a form; None where nothing was filled in."""
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 15 or int(text) < least:
        raise Problem(422, f"{what} must be a whole number of at least {least}, got {text[:30]!r}.")
    return int(text)
