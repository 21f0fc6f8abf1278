"""The pages for annotators: join, judge, finished."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response

from crowdrank.server import joining, onboarding
from crowdrank.server.assignments import Answer
from crowdrank.server.authentication import ANNOTATOR_COOKIE, FORM_COOKIE, SESSION_SECONDS
from crowdrank.server.errors import RequestError
from crowdrank.server.files import (
    HTML_POLICY,
    MEDIA_TYPES,
    content_kind,
    instructions_html,
    item_body,
    media_file,
    question_view,
)
from crowdrank.server.joining import is_full, shown_name
from crowdrank.server.onboarding import consent_version, has_consented, next_step
from crowdrank.server.panels import arrival, find_participant
from crowdrank.server.records import Annotator
from crowdrank.server.rendering import page
from crowdrank.server.routes import Form, SubmittedForm, form_secret, parse_integer, redirect
from crowdrank.server.service import Service, service_of
from crowdrank.server.translation import translator
from crowdrank.storage import StudyClosedError, StudyPausedError

router = APIRouter(include_in_schema=False)


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
    """Show the form of the public link, or to those who have joined how to go on.

    Parameters that a panel added become hidden fields.
    """
    service = service_of(request)
    projection = service.projection.catch_up()
    who = arrival(request.query_params, projection.settings.joining)
    session = None if who is not None else service.authenticator.annotator_or_none(request)
    if session is not None:
        annotator = service.assignments.annotator(session.principal.annotator)
        done = annotator.decided + annotator.skipped
        return page(request, "return.html", csrf=session.csrf, name=shown_name(annotator), done=done)
    csrf, secret = form_secret(request)
    known = who is not None and find_participant(projection, who) is not None
    response = page(
        request,
        "join.html",
        csrf=csrf,
        instructions=instructions_html(projection.settings.instructions),
        hidden={} if who is None else who.values,
        closed=not known and (not projection.settings.joining.open or projection.state == "closed"),
        full=not known and is_full(projection),
        only_looks=who is not None and who.only_looks,
    )
    service.authenticator.set_cookie(request, response, FORM_COOKIE, secret, None)
    return response


@router.post("/join")
def join(request: Request, form: Form) -> Response:
    service = service_of(request)
    service.authenticator.check_form(request, form.csrf, service.authenticator.cookie(request, FORM_COOKIE))
    current = service.authenticator.cookie(request, ANNOTATOR_COOKIE)
    address = service.authenticator.client_address(request)
    session = joining.join(service, address, form["name"], form.fields, current)
    response = redirect("/judge")
    if session is not None:
        service.authenticator.set_cookie(request, response, ANNOTATOR_COOKIE, session, SESSION_SECONDS)
    return response


@router.post("/join/leave")
def leave(request: Request, form: Form) -> Response:
    """End the session of someone who is not the person whose session it is."""
    service = service_of(request)
    authenticator = service.authenticator
    authenticator.close(authenticator.annotator(request, form.csrf))
    response = redirect("/join")
    response.delete_cookie(authenticator.cookie_name(ANNOTATOR_COOKIE), path="/")
    return response


@router.get("/judge")
def judge_page(request: Request) -> Response:
    service = service_of(request)
    annotator, session = service.annotator(request)
    if (step := next_step(service.projection.settings, annotator)) is not None:
        return redirect(step)
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
        preview=annotator.is_preview,
    )


@router.get("/consent")
def consent_page(request: Request) -> Response:
    """Show what an annotator must agree to before the first question."""
    service = service_of(request)
    annotator, session = service.annotator(request)
    settings = service.projection.settings
    if has_consented(settings, annotator):
        return redirect("/judge")
    text, version = instructions_html(settings.consent), consent_version(settings.consent)
    return page(request, "consent.html", csrf=session.csrf, text=text, version=version)


@router.post("/consent")
def consent(request: Request, form: Form) -> Response:
    service = service_of(request)
    annotator, _ = service.annotator(request, form.csrf)
    settings = service.projection.settings
    if form["agree"] != "yes":
        raise RequestError(422, translator(settings.language)("consent_needed"))
    if form["version"] == consent_version(settings.consent):  # else the text has changed, and is shown again
        onboarding.agree(service, annotator, form["version"])
    return redirect("/judge")


@router.get("/practice")
def practice_page(
    request: Request, shown: Annotated[int | None, Query(ge=0, le=20, description="Feedback to this question.")] = None
) -> Response:
    """Show the next practice question, the feedback to an answer, or how to practise again."""
    service = service_of(request)
    annotator, session = service.annotator(request)
    settings = service.projection.settings
    if not has_consented(settings, annotator):
        return redirect("/consent")
    given, asked = onboarding.practice_answers(settings, annotator), settings.practice.questions
    number = shown if shown is not None and shown < len(given) else len(given)
    if number == len(given) and onboarding.has_practised(settings, annotator):
        return redirect("/judge")
    question = asked[number] if number < len(asked) else None
    items = [] if question is None else onboarding.practice_items(service, question)
    return page(
        request,
        "practice.html",
        csrf=session.csrf,
        number=number,
        total=len(asked),
        question=question,
        shown=[question_view(item, service.collection.keys, service.options.prefix) for item in items],
        options=[] if question is None else onboarding.options(settings, question),
        given=given[number] if number < len(given) else None,
        feedback=instructions_html(question.feedback) if question is not None else "",
        correct=onboarding.n_correct(settings.practice, given),
        instructions=instructions_html(settings.instructions),
    )


@router.post("/practice")
def practise(request: Request, form: Form) -> Response:
    service = service_of(request)
    annotator, _ = service.annotator(request, form.csrf)
    number = parse_integer(form["number"], "The number of the question") or 0
    onboarding.answer_practice(service, annotator, number, form["answer"])
    return redirect(f"/practice?shown={number}")


@router.post("/practice/again")
def practise_again(request: Request, form: Form) -> Response:
    service = service_of(request)
    annotator, _ = service.annotator(request, form.csrf)
    onboarding.practise_again(service, annotator)
    return redirect("/practice")


@router.post("/judge")
def vote(request: Request, form: Form) -> Response:
    """Store a vote of a browser without JavaScript."""
    service = service_of(request)
    annotator, _ = service.annotator(request, form.csrf)
    onboarding.check_ready(service.projection.settings, annotator)
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
        completion_form=question["completion_form"],
        form_host=None
        if question["completion_form"] is None
        else urlsplit(question["completion_form"]["action"]).hostname,
        completion_withheld=question["completion_withheld"],
        can_undo=_can_undo(service, annotator) and question["progress"]["done"] > 0,
    )


@router.get("/media/{name:path}")
def media(request: Request, name: str, v: Annotated[str | None, Query()] = None) -> Response:
    """Return an image or a recording of the media folder, by its name or by the one that annotators get."""
    service = service_of(request)
    folder, concealed = service.options.media, Path(name).stem
    path = None if folder is None else media_file(folder, service.collection.keys.reveal(concealed) or name)
    if path is None:
        raise RequestError(404, "This file does not exist.")
    return FileResponse(path, media_type=MEDIA_TYPES[path.suffix.lower()])


@router.get("/items/{id_}.html")
def html_item(request: Request, id_: int) -> Response:
    """Return an item that is HTML, for the frame in which it is shown. It may not run scripts or load anything."""
    service = service_of(request)
    authenticator = service.authenticator
    if authenticator.annotator_or_none(request) is None and authenticator.admin_or_none(request) is None:
        raise RequestError(401, "Open your personal link first.")
    item = service.projection.items.get(id_)
    if item is None or content_kind(item_body(item), item.content.get("kind")) != "html":
        raise RequestError(404, "This item does not exist.")
    headers = {"Content-Security-Policy": HTML_POLICY, "X-Frame-Options": "SAMEORIGIN"}
    return HTMLResponse(item_body(item), headers=headers)


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
