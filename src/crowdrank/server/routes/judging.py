"""Where people answer: they come in by a link, judge, and are done."""

from __future__ import annotations

import secrets
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from crowdrank.server.authentication import ANNOTATOR_COOKIE, FORM_COOKIE, SESSION_SECONDS, csrf
from crowdrank.server.batching import Said
from crowdrank.server.errors import Problem
from crowdrank.server.joining import join
from crowdrank.server.rendering import instructions_html, page
from crowdrank.server.routes import Form, see, whole
from crowdrank.server.service import service_of

router = APIRouter(include_in_schema=False)
_LONGEST = 300


@router.get("/join/{token}")
def enter(request: Request, token: str) -> Response:
    """A personal link: exchanged for a cookie, and out of the address."""
    door = service_of(request).door
    session, _ = door.exchange(request, token, "annotator")
    response = see("/judge")
    door.give_cookie(request, response, ANNOTATOR_COOKIE, session, SESSION_SECONDS)
    return response


@router.get("/join")
def joining(request: Request) -> Response:
    """The open link: a form, with what a panel sent along."""
    service = service_of(request)
    live = service.live.catch_up()
    hidden = {
        name: request.query_params[name][:_LONGEST]
        for name in live.settings.joining.panel_parameters
        if name in request.query_params
    }
    secret = request.cookies.get(FORM_COOKIE) or secrets.token_urlsafe(16)
    closed = not live.settings.joining.open or live.state == "closed"
    response = page(
        request,
        "join.html",
        csrf=csrf(secret),
        instructions=instructions_html(live.settings.instructions),
        hidden=hidden,
        closed=closed,
    )
    service.door.give_cookie(request, response, FORM_COOKIE, secret, None)
    return response


@router.post("/join")
def joined(request: Request, form: Form) -> Response:
    service = service_of(request)
    service.door.check_form(request, form.csrf, request.cookies.get(FORM_COOKIE, ""))
    known = request.cookies.get(ANNOTATOR_COOKIE, "")
    session = join(service, service.door.address(request), form["name"], form.fields, known)
    response = see("/judge")
    if session is not None:
        service.door.give_cookie(request, response, ANNOTATOR_COOKIE, session, SESSION_SECONDS)
    return response


@router.get("/judge")
def judge(request: Request) -> Response:
    service = service_of(request)
    person, known = service.annotator(request)
    question = service.desk.question(person)
    if question.get("finished"):
        return see("/finished")
    settings, done = service.live.settings, question["progress"]["done"]
    return page(
        request,
        "judge.html",
        csrf=known.csrf,
        question=question,
        first=done == 0,
        name=person.name,
        instructions=instructions_html(settings.instructions),
        can_undo=settings.undo and done > 0,
    )


@router.post("/judge")
def answered(request: Request, form: Form) -> Response:
    """The same as the API, for browsers without scripts."""
    service = service_of(request)
    person, _ = service.annotator(request, form.csrf)
    outcome = form["outcome"]
    if outcome not in ("left", "right", "tie", "skip"):
        raise Problem(422, "Choose one of the answers.")
    milliseconds = whole(form["milliseconds"], "The response time")
    said = Said(form["token"], outcome, form["reason"][:500], milliseconds)  # type: ignore[arg-type]
    service.desk.vote(person, said)
    return see("/judge", "saved")


@router.post("/judge/undo")
def undone(request: Request, form: Form) -> Response:
    service = service_of(request)
    person, _ = service.annotator(request, form.csrf)
    service.desk.undo(person)
    return see("/judge", "undone")


@router.get("/finished")
def finished(request: Request) -> Response:
    service = service_of(request)
    person, known = service.annotator(request)
    question = service.desk.question(person)
    if not question.get("finished"):
        return see("/judge")
    return page(
        request,
        "finished.html",
        csrf=known.csrf,
        progress=question["progress"],
        reason=question["reason"],
        completion_code=question["completion_code"],
        completion_url=question["completion_url"],
        can_undo=service.live.settings.undo and question["progress"]["done"] > 0,
    )


@router.get("/media/{name:path}")
def media(request: Request, name: str, v: Annotated[str | None, Query()] = None) -> Response:
    from starlette.responses import FileResponse

    from crowdrank.server.content import IMAGE_TYPES, media_file

    folder = service_of(request).options.media
    path = None if folder is None else media_file(folder, name)
    if path is None:
        raise Problem(404, "There is no such picture.")
    return FileResponse(path, media_type=IMAGE_TYPES[path.suffix.lower()])
