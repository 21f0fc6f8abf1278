"""The organiser's pages: how it goes, items, settings, what was done."""

from __future__ import annotations

import shutil
from typing import Annotated, Any, get_args, get_origin

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from crowdrank.errors import CrowdrankError, SettingError
from crowdrank.server import admin_actions, annotator_summaries
from crowdrank.server.authentication import ADMIN_COOKIE, ADMIN_SECONDS
from crowdrank.server.errors import Problem
from crowdrank.server.rendering import page
from crowdrank.server.routes import Form, Sent, see, whole
from crowdrank.server.routes.board import PATIENCE
from crowdrank.server.service import service_of, shown_settings
from crowdrank.server.settings import EVENTS, kind_of_setting

router = APIRouter(include_in_schema=False)
_FLAGGED = ("noisy", "random", "reversed", "one-sided", "hasty", "different taste")
_ON_A_PAGE = 100


@router.get("/admin")
def admin(request: Request) -> Response:
    service = service_of(request)
    known = service.door.admin(request)
    board = service.boards.look(PATIENCE)
    told = annotator_summaries.figures(service.live, board)
    return page(
        request,
        "admin.html",
        admin=True,
        csrf=known.csrf,
        board=board.as_dict(),
        totals=admin_actions.totals(service),
        standing=None if board.standing is None else board.standing.sentence,
        join_url=address(request, "/join"),
        flagged=[one for one in told if one["verdict"] in _FLAGGED and not one["excluded"]],
    )


@router.post("/admin/state")
def state(request: Request, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    wanted = form["state"]
    if wanted not in ("open", "paused", "closed"):
        raise Problem(422, "The state must be open, paused or closed.")
    admin_actions.set_state(service, wanted, actor)  # type: ignore[arg-type]
    return see("/admin", {"open": "resumed"}.get(wanted, wanted))


@router.post("/admin/budget")
def budget(request: Request, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    told: dict[str, Any] = {name: whole(form[name], name) for name in ("votes", "per_annotator")}
    told["money"] = _money(form["money"])
    service.change_settings({"budget": told}, actor)
    return see("/admin", "saved")


@router.get("/admin/items")
def items(request: Request) -> Response:
    service = service_of(request)
    known = service.door.admin(request)
    return page(request, "items.html", admin=True, csrf=known.csrf, items=admin_actions.items_table(service))


@router.post("/admin/items")
def add_item(request: Request, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    told = {name: form[name] for name in ("label", "query", *admin_actions.ABOUT)}
    if form.file is not None:
        told |= {"body": admin_actions.keep_picture(service, *form.file, actor), "kind": "image"}
    told["label"] = told["label"] or told["body"][:80]
    service.collection.items.add([admin_actions.new_item(told)], actor=actor)
    return see("/admin/items", "added")


@router.post("/admin/items/upload")
def upload_items(request: Request, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    if form.file is None:
        raise Problem(422, "Choose a file first.")
    path = admin_actions.uploaded(*form.file)
    try:
        service.collection.items.add(admin_actions.items_of_file(path), actor=actor)
    finally:
        shutil.rmtree(path.parent, ignore_errors=True)
    return see("/admin/items", "added")


@router.post("/admin/items/{number}/{act}")
def change_item(request: Request, number: int, act: str, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    changes: dict[str, dict[str, Any]] = {
        "hide": {"hidden": True, "reason": form["reason"]},
        "show": {"hidden": False},
        "edit": {name: form[name] for name in admin_actions.ABOUT if name in form.fields},
    }
    if act not in changes:
        raise Problem(404, "There is nothing here.")
    admin_actions.edit_item(service, number, changes[act], actor)
    return see("/admin/items", "saved")


@router.get("/admin/settings")
def settings(request: Request) -> Response:
    return _settings_page(request, service_of(request).door.admin(request).csrf)


@router.post("/admin/settings")
def change_settings(request: Request, form: Form) -> Response:
    service = service_of(request)
    known = service.door.admin(request, form.csrf)
    try:
        service.change_settings(_settings_of(form), f"admin {known.visitor.token}")
    except CrowdrankError as error:
        return _settings_page(request, known.csrf, problem=str(error))
    return see("/admin/settings", "saved")


@router.get("/admin/settings/webhooks")
def webhooks() -> Response:
    """Where a browser comes that loads the page with the secret again."""
    return see("/admin/settings")


@router.post("/admin/settings/webhooks")
def add_webhook(request: Request, form: Form) -> Response:
    """Answered by a page, not by a redirection: the secret is shown this once."""
    service = service_of(request)
    known = service.door.admin(request, form.csrf)
    try:
        secret = admin_actions.add_webhook(
            service, form["url"], [name for name in EVENTS if form[name] == "yes"], f"admin {known.visitor.token}"
        )
    except CrowdrankError as error:
        return _settings_page(request, known.csrf, problem=str(error))
    return _settings_page(request, known.csrf, fresh={"url": form["url"], "secret": secret})


@router.post("/admin/settings/webhooks/remove")
def remove_webhook(request: Request, form: Form) -> Response:
    service = service_of(request)
    admin_actions.remove_webhook(service, form["url"], service.admin(request, form.csrf))
    return see("/admin/settings", "removed")


def _settings_page(
    request: Request, csrf: str, problem: str | None = None, fresh: dict[str, str] | None = None
) -> Response:
    """`fresh` is a webhook that was just added, with its secret."""
    values = shown_settings(service_of(request).live.catch_up().settings)
    return page(
        request,
        "settings.html",
        200 if problem is None else 422,
        admin=True,
        csrf=csrf,
        values=values,
        problem=problem,
        fresh=fresh,
        events=EVENTS,
    )


@router.get("/admin/audit")
def audit(request: Request, before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None) -> Response:
    service = service_of(request)
    known = service.door.admin(request)
    events, following = admin_actions.audit(service, before, _ON_A_PAGE)
    return page(request, "audit.html", admin=True, csrf=known.csrf, events=events, before=following)


@router.get("/admin/{secret}")
def enter(request: Request, secret: str) -> Response:
    """The admin link: exchanged for a cookie, and out of the address."""
    door = service_of(request).door
    session, _ = door.exchange(request, secret, "admin")
    response = see("/admin")
    door.give_cookie(request, response, ADMIN_COOKIE, session, ADMIN_SECONDS)
    return response


@router.post("/admin/leave")
def leave(request: Request, form: Form) -> Response:
    service = service_of(request)
    service.admin(request, form.csrf)
    session = request.cookies.get(ADMIN_COOKIE, "")
    service.collection.access.close_session(session)
    service.door.forget(session)
    response = see("/")
    response.delete_cookie(ADMIN_COOKIE, path="/")
    return response


def address(request: Request, path: str) -> str:
    """As people use it."""
    public = service_of(request).options.public_url
    return f"{(public or str(request.base_url)).rstrip('/')}{path}"


def _money(text: str) -> float | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError as error:
        raise Problem(422, f"money must be a number, got {text[:30]!r}.") from error


def _settings_of(form: Sent) -> dict[str, Any]:
    """Dotted names as tables, each value read as what the setting holds."""
    told: dict[str, Any] = {}
    for name, text in form.fields.items():
        if name != "csrf":
            table, _, key = name.rpartition(".")
            within = told.setdefault(table, {}) if table else told
            if not isinstance(within, dict):
                raise SettingError(f"{name} is not a setting.")
            within[key] = _value_of(name, text.strip())
    return told


def _value_of(name: str, text: str) -> Any:
    """A tick, a number, lines of a list, or text; nothing where nothing was filled in and the setting allows it."""
    hint = kind_of_setting(name)
    kinds = get_args(hint) or (hint,)
    if hint is bool:
        return text in ("on", "true", "1", "yes")
    if get_origin(hint) is tuple:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
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
