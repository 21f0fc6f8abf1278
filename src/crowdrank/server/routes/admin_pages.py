"""The pages for admins: overview, items, settings, audit log."""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from crowdrank.errors import CrowdrankError, SettingError
from crowdrank.server import admin_actions, annotator_summaries, quarantine
from crowdrank.server.authentication import ADMIN_COOKIE, ADMIN_SECONDS, ANNOTATOR_COOKIE, Session
from crowdrank.server.errors import RequestError
from crowdrank.server.files import CONTENT_FIELDS, parse_item, read_items_file, uploaded_table
from crowdrank.server.privacy import erasure_due, study_versions
from crowdrank.server.rendering import page
from crowdrank.server.routes import BOARD_WAIT, Form, SubmittedForm, is_checked, parse_integer, public_url, redirect
from crowdrank.server.service import service_of
from crowdrank.server.settings import WEBHOOK_EVENTS, setting_type
from crowdrank.storage.judgments import iso_time

router = APIRouter(include_in_schema=False)
_FLAGGED_VERDICTS = ("noisy", "random", "reversed", "one-sided", "hasty", "different taste")
_EVENTS_PER_PAGE = 100


@router.get("/admin")
def overview(request: Request) -> Response:
    service = service_of(request)
    session = service.authenticator.admin(request)
    board = service.boards.latest(BOARD_WAIT)
    annotators = annotator_summaries.summarise(service.projection, board)
    return page(
        request,
        "admin.html",
        admin=True,
        csrf=session.csrf,
        board=board.as_dict(),
        totals=admin_actions.totals(service),
        plots=annotator_summaries.dashboard(service.projection),
        decision=None if board.decision is None else board.decision.summary,
        join_url=public_url(request, "/join"),
        bursts=quarantine.find_bursts(service),
        stuffing=quarantine.find_alarms(service, board),
        flagged=[one for one in annotators if one["verdict"] in _FLAGGED_VERDICTS and not one["excluded"]],
    )


@router.post("/admin/state")
def change_state(request: Request, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    state = form["state"]
    if state not in ("open", "paused", "closed"):
        raise RequestError(422, f"The state must be open, paused or closed, got {state[:30]!r}.")
    admin_actions.set_state(service, state, actor)  # type: ignore[arg-type]
    return redirect("/admin", {"open": "resumed"}.get(state, state))


@router.post("/admin/budget")
def change_budget(request: Request, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    budget: dict[str, Any] = {
        "votes": parse_integer(form["votes"], "The number of votes"),
        "per_annotator": parse_integer(form["per_annotator"], "The number of answers per annotator"),
        "money": _parse_money(form["money"]),
    }
    admin_actions.change_settings(service, {"budget": budget}, actor)
    return redirect("/admin", "saved")


@router.post("/admin/preview")
def preview(request: Request, form: Form) -> Response:
    """Show the study as annotators see it, from the first page on."""
    service = service_of(request)
    session = admin_actions.start_preview(service, service.admin(request, form.csrf))
    response = redirect("/judge")
    service.authenticator.set_cookie(request, response, ANNOTATOR_COOKIE, session, admin_actions.PREVIEW_SECONDS)
    return response


@router.get("/admin/items")
def items(request: Request) -> Response:
    service = service_of(request)
    session = service.authenticator.admin(request)
    return page(request, "items.html", admin=True, csrf=session.csrf, items=admin_actions.list_items(service))


@router.post("/admin/items")
def add_item(request: Request, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    values = {name: form[name] for name in ("label", "query", *CONTENT_FIELDS)}
    if form.file is not None:
        values |= {"body": admin_actions.upload_media(service, *form.file, actor), "kind": ""}
    values["label"] = values["label"] or values["body"][:80]
    service.collection.items.add([parse_item(values)], actor=actor)
    return redirect("/admin/items", "added")


@router.post("/admin/items/files")
def add_files(request: Request, form: Form) -> Response:
    """Add one item per uploaded file."""
    service = service_of(request)
    admin_actions.add_files(service, form.files, form["query"], service.admin(request, form.csrf))
    return redirect("/admin/items", "added")


@router.post("/admin/items/upload")
def upload_items(request: Request, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    if form.file is None:
        raise RequestError(422, "Choose a file first.")
    with uploaded_table(*form.file) as path:
        service.collection.items.add(read_items_file(path), actor=actor)
    return redirect("/admin/items", "added")


@router.post("/admin/items/{id_}/{action}")
def change_item(request: Request, id_: int, action: str, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    changes: dict[str, dict[str, Any]] = {
        "hide": {"hidden": True, "reason": form["reason"]},
        "show": {"hidden": False},
        "edit": {name: form[name] for name in CONTENT_FIELDS if name in form.fields},
    }
    if action not in changes:
        raise RequestError(404, "This page does not exist.")
    admin_actions.edit_item(service, id_, changes[action], actor)
    return redirect("/admin/items", "saved")


@router.get("/admin/settings")
def settings(request: Request) -> Response:
    return _settings_page(request, service_of(request).authenticator.admin(request).csrf)


@router.post("/admin/settings")
def change_settings(request: Request, form: Form) -> Response:
    service = service_of(request)
    session = service.authenticator.admin(request, form.csrf)
    if any(name.startswith("privacy") for name in form.fields):
        service.authenticator.admin(request, form.csrf, needs="owner")
    try:
        admin_actions.change_settings(service, _parse_settings(form), session.actor)
    except CrowdrankError as error:
        return _settings_page(request, session.csrf, problem=str(error))
    return redirect("/admin/settings", "saved")


@router.get("/admin/settings/webhooks")
def webhooks() -> Response:
    """Redirect a browser that reloads the page with the secret."""
    return redirect("/admin/settings")


@router.post("/admin/settings/webhooks")
def add_webhook(request: Request, form: Form) -> Response:
    """Add a webhook. The response is a page instead of a redirect, because it shows the secret once."""
    service = service_of(request)
    session = service.authenticator.admin(request, form.csrf)
    events = [name for name in WEBHOOK_EVENTS if form[name] == "yes"]
    try:
        secret = admin_actions.add_webhook(service, form["url"], events, session.actor)
    except CrowdrankError as error:
        return _settings_page(request, session.csrf, problem=str(error))
    return _settings_page(request, session.csrf, new_webhook={"url": form["url"], "secret": secret})


@router.post("/admin/settings/webhooks/remove")
def remove_webhook(request: Request, form: Form) -> Response:
    service = service_of(request)
    admin_actions.remove_webhook(service, form["url"], service.admin(request, form.csrf))
    return redirect("/admin/settings", "removed")


@router.get("/admin/privacy")
def privacy(request: Request) -> Response:
    return _privacy_page(request, service_of(request).authenticator.admin(request))


@router.post("/admin/privacy")
def change_privacy(request: Request, form: Form) -> Response:
    service = service_of(request)
    session = service.authenticator.admin(request, form.csrf, needs="owner")
    days = parse_integer(form["retention_days"], "The number of days")
    try:
        admin_actions.change_settings(service, {"privacy": {"retention_days": days}}, session.actor)
    except CrowdrankError as error:
        return _privacy_page(request, session, str(error))
    return redirect("/admin/privacy", "saved")


@router.get("/admin/audit")
def audit(request: Request, before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None, by: str = "") -> Response:
    return audit_log_page(request, before, by)


@router.get("/admin/{token}")
def open_admin_link(request: Request, token: str) -> Response:
    """Exchange the token of the admin link for a cookie, so that it leaves the address bar."""
    authenticator = service_of(request).authenticator
    session = authenticator.exchange(request, token, "admin")
    response = redirect("/admin")
    authenticator.set_cookie(request, response, ADMIN_COOKIE, session, ADMIN_SECONDS)
    return response


def audit_log_page(request: Request, before: int | None, by: str) -> Response:
    """Return a page of the audit log: all events, or those of one person."""
    service = service_of(request)
    session = service.authenticator.admin(request)
    events, next_page = admin_actions.audit_page(service, before, _EVENTS_PER_PAGE, by=by)
    actors = admin_actions.actors(service)
    return page(
        request, "audit.html", admin=True, csrf=session.csrf, events=events, before=next_page, by=by, actors=actors
    )


def _privacy_page(request: Request, session: Session, problem: str | None = None) -> Response:
    service = service_of(request)
    collection, projection = service.collection, service.projection.catch_up()
    closed, due = collection.settings.closed_since(), erasure_due(collection)
    return page(
        request,
        "privacy.html",
        200 if problem is None else 422,
        admin=True,
        csrf=session.csrf,
        problem=problem,
        closed=None if closed is None else iso_time(closed)[:10],
        due=None if due is None else iso_time(due)[:10],
        identified=sum(not annotator.erased for annotator in projection.annotators.values()),
        erased=sum(annotator.erased for annotator in projection.annotators.values()),
        versions=study_versions(collection, projection),
    )


def _settings_page(
    request: Request, csrf: str, problem: str | None = None, new_webhook: dict[str, str] | None = None
) -> Response:
    values = admin_actions.settings_without_secrets(service_of(request).projection.catch_up().settings)
    return page(
        request,
        "settings.html",
        200 if problem is None else 422,
        admin=True,
        csrf=csrf,
        values=values,
        problem=problem,
        new_webhook=new_webhook,
        events=WEBHOOK_EVENTS,
        task_is_fixed=len(service_of(request).projection.votes) > 0,
    )


def _parse_money(text: str) -> float | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError as error:
        raise RequestError(422, f"The amount of money must be a number, got {text[:30]!r}.") from error


def _parse_settings(form: SubmittedForm) -> dict[str, Any]:
    """Return settings as nested tables from fields with dotted names."""
    settings: dict[str, Any] = {}
    for name, text in form.fields.items():
        if name != "csrf":
            *tables, key = name.split(".")
            table: Any = settings
            for part in tables:
                table = table.setdefault(part, {})
                if not isinstance(table, dict):
                    raise SettingError(f"{name} is not a setting.")
            table[key] = _parse_setting(name, text.strip())
    return settings


def _parse_setting(name: str, text: str) -> Any:
    """Convert a form field to the type of its setting. An empty field is None if the setting allows it."""
    hint = setting_type(name)
    kinds = get_args(hint) or (hint,)
    if hint is bool:
        return is_checked(text)
    if get_origin(hint) is tuple:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if name == "practice.questions":
            return [_parse_practice(line) for line in lines]
        return [[part.strip() for part in line.split(" > ")] for line in lines] if name == "gold" else lines
    if not text and type(None) in kinds:
        return None
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError as error:
                wanted = "a whole number" if kind is int else "a number"
                raise SettingError(f"{name} must be {wanted}, got {text[:30]!r}.") from error
    return text


def _parse_practice(line: str) -> dict[str, Any]:
    """Return the practice question in a line such as "Rome | Oslo = Rome | Rome has more inhabitants."."""
    shown, equals, rest = line.partition(" = ")
    if not equals:
        raise SettingError(f"practice.questions: write “item | item = answer | feedback”, got {line[:60]!r}.")
    answer, _, feedback = rest.partition(" | ")
    return {
        "items": [label.strip() for label in shown.split(" | ")],
        "answer": answer.strip(),
        "feedback": feedback.strip(),
    }
