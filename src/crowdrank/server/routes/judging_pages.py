"""The pages for annotators: join, judge, finished."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from crowdrank.server.assignments import Answer
from crowdrank.server.authentication import (
    ANNOTATOR_COOKIE,
    FORM_COOKIE,
    JOIN_LIMIT,
    SESSION_SECONDS,
    RateLimit,
    csrf_token,
)
from crowdrank.server.errors import RequestError
from crowdrank.server.files import IMAGE_TYPES, media_file
from crowdrank.server.records import Annotator
from crowdrank.server.rendering import instructions_html, page
from crowdrank.server.routes import Form, SubmittedForm, parse_integer, redirect
from crowdrank.server.service import Service, service_of
from crowdrank.server.translation import translator
from crowdrank.storage import StudyClosedError, StudyPausedError

router = APIRouter(include_in_schema=False)
_MAX_NAME_LENGTH = 80
_MAX_PARAMETER_LENGTH = 300
_ADDRESS_SECONDS = 7 * 86_400
"""How long the hash of the address of a participant is stored, to notice bursts of votes from one address."""


@router.get("/join/{token}")
def open_personal_link(request: Request, token: str) -> Response:
    """Exchange the token of a personal link for a cookie, so that it leaves the address bar."""
    authenticator = service_of(request).authenticator
    session = authenticator.exchange(request, token, "annotator")
    response = redirect("/judge")
    authenticator.set_cookie(request, response, ANNOTATOR_COOKIE, session, SESSION_SECONDS)
    return response


@router.get("/join")
def join_page(request: Request) -> Response:
    """Show the form of the public link. Parameters that a panel added become hidden fields."""
    service = service_of(request)
    projection = service.projection.catch_up()
    hidden = {
        name: request.query_params[name][:_MAX_PARAMETER_LENGTH]
        for name in projection.settings.joining.panel_parameters
        if name in request.query_params
    }
    secret = service.authenticator.cookie(request, FORM_COOKIE) or secrets.token_urlsafe(16)
    response = page(
        request,
        "join.html",
        csrf=csrf_token(secret),
        instructions=instructions_html(projection.settings.instructions),
        hidden=hidden,
        closed=not projection.settings.joining.open or projection.state == "closed",
    )
    service.authenticator.set_cookie(request, response, FORM_COOKIE, secret, None)
    return response


@router.post("/join")
def join(request: Request, form: Form) -> Response:
    service = service_of(request)
    service.authenticator.check_form(request, form.csrf, service.authenticator.cookie(request, FORM_COOKIE))
    current = service.authenticator.cookie(request, ANNOTATOR_COOKIE)
    session = _join(service, service.authenticator.client_address(request), form["name"], form.fields, current)
    response = redirect("/judge")
    if session is not None:
        service.authenticator.set_cookie(request, response, ANNOTATOR_COOKIE, session, SESSION_SECONDS)
    return response


@router.get("/judge")
def judge_page(request: Request) -> Response:
    service = service_of(request)
    annotator, session = service.annotator(request)
    if not has_consented(service, annotator):
        return redirect("/consent")
    question = service.assignments.question(annotator)
    if question.get("finished"):
        return redirect("/finished")
    settings, done = service.projection.settings, question["progress"]["done"]
    asked = question.get("assignment")
    is_plain = asked is None or (asked["task"] == "pair" and not asked.get("criteria"))
    return page(
        request,
        "judge.html" if is_plain else "task.html",
        csrf=session.csrf,
        assignment=asked,
        progress=question["progress"],
        first=done == 0,
        name=annotator.name,
        instructions=instructions_html(settings.instructions),
        can_undo=settings.undo and done > 0,
    )


@router.get("/consent")
def consent_page(request: Request) -> Response:
    """Show what an annotator must agree to before the first question."""
    service = service_of(request)
    annotator, session = service.annotator(request)
    if has_consented(service, annotator):
        return redirect("/judge")
    text = instructions_html(service.projection.settings.consent)
    return page(request, "consent.html", csrf=session.csrf, text=text, version=consent_version(service))


@router.post("/consent")
def consent(request: Request, form: Form) -> Response:
    """Record which text the annotator agreed to, and when: the time is that of the row of the log."""
    service = service_of(request)
    annotator, _ = service.annotator(request, form.csrf)
    if form["agree"] != "yes":
        raise RequestError(422, translator(service.projection.settings.language)("consent_needed"))
    if form["version"] == consent_version(service):  # else the text has changed, and is shown again
        metadata = {**annotator.metadata, "consent": form["version"]}
        service.collection.annotators.edit(annotator.id, metadata, actor="annotator")
        service.projection.catch_up()
    return redirect("/judge")


@router.post("/judge")
def vote(request: Request, form: Form) -> Response:
    """Store a vote of a browser without JavaScript."""
    service = service_of(request)
    annotator, _ = service.annotator(request, form.csrf)
    service.limit_votes(annotator)
    answer = _form_answer(form, service.projection.settings.task.criteria)
    try:
        service.assignments.vote(annotator, answer)
    except (StudyClosedError, StudyPausedError):
        return redirect("/judge", "not_stored")
    return redirect("/judge", "saved")


@router.post("/judge/undo")
def undo(request: Request, form: Form) -> Response:
    service = service_of(request)
    annotator, _ = service.annotator(request, form.csrf)
    service.assignments.undo(annotator)
    return redirect("/judge", "undone")


@router.get("/finished")
def finished_page(request: Request) -> Response:
    service = service_of(request)
    annotator, session = service.annotator(request)
    question = service.assignments.question(annotator)
    if not question.get("finished"):
        return redirect("/judge")
    return page(
        request,
        "finished.html",
        csrf=session.csrf,
        progress=question["progress"],
        reason=question["reason"],
        completion_code=question["completion_code"],
        completion_url=question["completion_url"],
        completion_withheld=question["completion_withheld"],
        can_undo=_can_undo(service, annotator) and question["progress"]["done"] > 0,
    )


@router.get("/media/{name:path}")
def media(request: Request, name: str, v: Annotated[str | None, Query()] = None) -> Response:
    """Return an image of the media folder."""
    folder = service_of(request).options.media
    path = None if folder is None else media_file(folder, name)
    if path is None:
        raise RequestError(404, "This image does not exist.")
    return FileResponse(path, media_type=IMAGE_TYPES[path.suffix.lower()])


def consent_version(service: Service) -> str:
    """Return a short hash of the text that annotators must agree to; empty if there is none."""
    text = service.projection.settings.consent.strip()
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""


def has_consented(service: Service, annotator: Annotator) -> bool:
    """Return whether an annotator has agreed to the present text."""
    version = consent_version(service)
    return not version or annotator.metadata.get("consent") == version


def _form_answer(form: SubmittedForm, criteria: Sequence[str]) -> Answer:
    """Return the answer in the form of a browser without JavaScript. Storage checks whether it fits the question."""
    task, outcome = form["task"] or "pair", form["outcome"]
    if outcome not in ("left", "right", "tie", "both_bad", "skip") and (outcome or task == "pair"):
        raise RequestError(422, "Choose one of the answers.")
    value, read = None, str if task == "pair" else _number
    if not outcome:
        outcome, value = "answered", _form_value(task, form)
    names = {name: f"criterion-{n}" for n, name in enumerate(criteria)}
    answers = {} if outcome == "skip" else {name: read(form[key]) for name, key in names.items() if form[key]}
    response_ms = parse_integer(form["response_ms"], "The response time")
    reason, comment = form["reason"][:500], form["comment"]
    return Answer(form["token"], outcome, reason, response_ms, value, answers, comment)  # type: ignore[arg-type]


def _form_value(task: str, form: SubmittedForm) -> Any:
    if task == "best-worst":
        return {"best": _number(form["best"]), "worst": _number(form["worst"])}
    if task == "ranking":
        places = [(form[name], name) for name in form.fields if name.startswith("place-")]
        if len({place for place, _ in places}) < len(places):
            raise RequestError(422, "Give every item a different position.")
        return [_number(name.removeprefix("place-")) for _, name in sorted(places, key=lambda one: _number(one[0]))]
    return _number(form["answer"])


def _number(text: str) -> int:
    found = parse_integer(text, "The answer")
    if found is None:
        raise RequestError(422, "Answer every question, then submit.")
    return found


def _can_undo(service: Service, annotator: Annotator) -> bool:
    return service.projection.settings.undo and service.projection.state == "open" and not annotator.is_shut_out


def _join(service: Service, address: str, name: str, fields: Mapping[str, str], current: str) -> str | None:
    """Add an annotator and open their session; None if the `current` session is already theirs."""
    projection = service.projection.catch_up()
    joining = projection.settings.joining
    if not joining.open or projection.state == "closed":
        raise RequestError(403, "This study is closed to new participants.", code="closed")
    service.limiter.take(f"joining {address}", JOIN_LIMIT)
    panel = {key: fields[key][:_MAX_PARAMETER_LENGTH] for key in joining.panel_parameters if fields.get(key)}
    panel_id = panel.get(joining.panel_parameters[0]) if joining.panel_parameters else None
    wanted = panel_id or name or f"guest-{secrets.token_hex(4)}"
    if len(wanted) > _MAX_NAME_LENGTH:
        raise RequestError(422, f"The name is too long: use at most {_MAX_NAME_LENGTH} characters.")
    existing = {annotator.name: annotator for annotator in projection.annotators.values()}
    if wanted in existing:
        return _rejoin(service, existing[wanted], panel, current)
    _limit_guests(service, address)
    metadata = {"joined": "panel" if panel_id else "open", **({"panel": panel} if panel else {})}
    (id_,) = service.collection.annotators.add([wanted], actor="join", metadata={wanted: metadata})
    service.collection.access.remember_address(id_, address, seconds=_ADDRESS_SECONDS)
    if joining.approval:
        service.collection.annotators.exclude(id_, actor="join", reason="awaits approval", quarantine=True)
    return _open_session(service, id_)


def _limit_guests(service: Service, address: str) -> None:
    most = service.projection.settings.joining.guests_per_address
    if most is None:
        return
    try:
        service.limiter.take(f"guests {address}", RateLimit(most, 3600))
    except RequestError as error:
        raise RequestError(
            429,
            f"{most} people from your network have joined already: try again later, or ask for a personal link.",
            detail=error.detail,
            headers=error.headers,
        ) from error


def _rejoin(service: Service, annotator: Annotator, panel: Mapping[str, str], current: str) -> str | None:
    # An id in a URL does not prove identity. A returning participant needs the cookie, or the same panel session id.
    principal = service.collection.access.find_session(current) if current else None
    if principal is not None and principal.annotator == annotator.id:
        return None
    before = annotator.metadata.get("panel")
    keys = service.projection.settings.joining.panel_parameters
    proof = keys[-1] if len(keys) > 1 else ""
    expected = str(before[proof]) if isinstance(before, dict) and proof in before else None
    if expected is not None and proof in panel and hmac.compare_digest(expected.encode(), panel[proof].encode()):
        return _open_session(service, annotator.id)
    raise RequestError(409, "This name is taken. Choose another name, or use your personal link.", code="taken")


def _open_session(service: Service, id_: int) -> str:
    access = service.collection.access
    token = access.issue([id_], actor="join")[0]
    return access.open_session(token, seconds=SESSION_SECONDS)
