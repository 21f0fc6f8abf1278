"""The organiser's pages: how it goes, items, settings, what was done."""

from __future__ import annotations

import shutil
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from crowdrank.errors import CrowdrankError
from crowdrank.server import organising, people
from crowdrank.server.access import ADMIN_COOKIE, ADMIN_SECONDS
from crowdrank.server.problems import Problem
from crowdrank.server.rendering import page
from crowdrank.server.routes import Form, Sent, see, whole
from crowdrank.server.routes.board import PATIENCE
from crowdrank.server.service import service_of, shown_settings

router = APIRouter(include_in_schema=False)
_FLAGGED = ("noisy", "random", "reversed", "one-sided", "hasty", "different taste")
_ON_A_PAGE = 100


@router.get("/admin")
def admin(request: Request) -> Response:
    service = service_of(request)
    known = service.door.admin(request)
    board = service.boards.look(PATIENCE)
    told = people.figures(service.live, board)
    return page(
        request, "admin.html", admin=True, csrf=known.csrf, board=board.as_dict(), totals=organising.totals(service),
        standing=None if board.standing is None else board.standing.sentence, join_url=address(request, "/join"),
        flagged=[one for one in told if one["verdict"] in _FLAGGED and not one["excluded"]],
    )  # fmt: skip


@router.post("/admin/state")
def state(request: Request, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    wanted = form["state"]
    if wanted not in ("open", "paused", "closed"):
        raise Problem(422, "The state must be open, paused or closed.")
    organising.set_state(service, wanted, actor)  # type: ignore[arg-type]
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
    return page(request, "items.html", admin=True, csrf=known.csrf, items=organising.items_table(service))


@router.post("/admin/items")
def add_item(request: Request, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    told = {name: form[name] for name in ("label", "query", *organising.ABOUT)}
    if form.file is not None:
        told |= {"body": organising.keep_picture(service, *form.file, actor), "kind": "image"}
    told["label"] = told["label"] or told["body"][:80]
    service.collection.items.add([organising.new_item(told)], actor=actor)
    return see("/admin/items", "added")


@router.post("/admin/items/upload")
def upload_items(request: Request, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    if form.file is None:
        raise Problem(422, "Choose a file first.")
    path = organising.uploaded(*form.file)
    try:
        service.collection.items.add(organising.items_of_file(path), actor=actor)
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
        "edit": {name: form[name] for name in organising.ABOUT if name in form.fields},
    }
    if act not in changes:
        raise Problem(404, "There is nothing here.")
    organising.edit_item(service, number, changes[act], actor)
    return see("/admin/items", "saved")


@router.get("/admin/settings")
def settings(request: Request) -> Response:
    service = service_of(request)
    known = service.door.admin(request)
    values = shown_settings(service.live.catch_up().settings)
    return page(request, "settings.html", admin=True, csrf=known.csrf, values=values, problem=None)


@router.post("/admin/settings")
def change_settings(request: Request, form: Form) -> Response:
    service = service_of(request)
    known = service.door.admin(request, form.csrf)
    try:
        service.change_settings(
            _settings_of(form, shown_settings(service.live.settings)), f"admin {known.visitor.token}"
        )
    except CrowdrankError as error:
        values = shown_settings(service.live.settings)
        return page(
            request, "settings.html", 422, admin=True, csrf=known.csrf, values=values, problem=str(error)
        )  # fmt: skip
    return see("/admin/settings", "saved")


@router.get("/admin/audit")
def audit(request: Request, before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None) -> Response:
    service = service_of(request)
    known = service.door.admin(request)
    events, following = organising.audit(service, before, _ON_A_PAGE)
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


def _settings_of(form: Sent, old: dict[str, Any]) -> dict[str, Any]:
    """Dotted names as tables; each value read as what it was before: a tick, a number, lines of a list, or text."""
    told: dict[str, Any] = {}
    for name, text in form.fields.items():
        if name == "csrf":
            continue
        table, _, key = name.rpartition(".")
        before = (old.get(table, {}) if table else old).get(key)
        value = _value_of(name, text.strip(), before)
        (told.setdefault(table, {}) if table else told)[key] = value
    return told


def _value_of(name: str, text: str, before: Any) -> Any:
    if isinstance(before, bool):
        return text in ("on", "true", "1", "yes")
    if isinstance(before, tuple | list):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return [[part.strip() for part in line.split(" > ")] for line in lines] if name == "gold" else lines
    if isinstance(before, int | float) or (
        before is None and text.replace(".", "", 1).isdigit() and "complet" not in name
    ):
        try:
            return float(text) if isinstance(before, float) or "." in text or name == "budget.money" else int(text)
        except ValueError as error:
            raise Problem(422, f"{name} must be a number, got {text[:30]!r}.") from error
    if not text and (before is None or name in _MAY_BE_NOTHING):
        return None
    return text


_MAY_BE_NOTHING = ("budget.decision", "joining.completion_code", "joining.completion_url")
