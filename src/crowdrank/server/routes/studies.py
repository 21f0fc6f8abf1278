"""The studies of a server: pages of the organiser, and the same actions as an API."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from crowdrank import __version__
from crowdrank.server.authentication import ADMIN_COOKIE, ADMIN_SECONDS
from crowdrank.server.errors import RequestError
from crowdrank.server.files import read_items_file, uploaded_table
from crowdrank.server.rendering import page
from crowdrank.server.routes import Form, redirect
from crowdrank.server.routes.admin_pages import audit_log_page
from crowdrank.server.routes.judging_api import RequestBody, bearer, error_responses
from crowdrank.server.service import Service, service_of
from crowdrank.server.studies import ORGANISER, Studies, studies_of
from crowdrank.storage import Collection

router = APIRouter(prefix="/api/v1", dependencies=[bearer], tags=["studies"])
pages = APIRouter(include_in_schema=False)


class StudyBody(RequestBody):
    name: str = Field(min_length=1, max_length=40, description="Lower-case letters, digits and hyphens.")
    copy_of: str | None = Field(None, max_length=40, description="Copy the settings and items of this study.")
    settings: dict[str, Any] = Field(default_factory=dict, description="Settings that differ from the defaults.")


class StudyStateBody(RequestBody):
    archived: bool


@router.get("/studies", responses=error_responses(401))
def list_studies(request: Request) -> Response:
    """Return all studies, archived ones included."""
    service_of(request).admin(request)
    return JSONResponse({"studies": _overview(studies_of(request))})


@router.post("/studies", responses=error_responses(401))
def create_study(request: Request, body: StudyBody) -> Response:
    """Create a study and return the token of its admin, which cannot be read again later."""
    service = service_of(request)
    actor = service.admin(request)
    _create(request, actor, body.name, body.settings, body.copy_of)
    token = studies_of(request).service(body.name).collection.access.issue_role("admin", actor=actor)
    return JSONResponse({"name": body.name, "path": f"/s/{body.name}", "admin_token": token})


@router.patch("/studies/{name}", responses=error_responses(401, 404))
def change_study(request: Request, name: str, body: StudyStateBody) -> Response:
    """Archive a study, or bring it back."""
    actor = service_of(request).admin(request)
    _set_archived(request, name, body.archived, actor)
    return JSONResponse({"studies": _overview(studies_of(request))})


@pages.get("/healthz")
def health(request: Request) -> Response:
    """Return whether the server and its database work."""
    return JSONResponse({"status": "ok", "version": __version__, **service_of(request).collection.health()})


@pages.get("/")
def overview(request: Request) -> Response:
    session = service_of(request).authenticator.admin_or_none(request)
    if session is None:
        raise RequestError(401, "Organisers only: sign in, or open the link that the server printed first.")
    return page(request, "studies.html", admin=True, csrf=session.csrf, studies=_overview(studies_of(request)))


@pages.post("/studies")
def create(request: Request, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    values = {key: form[key] for key in ("title", "question") if form[key]}
    _create(request, actor, form["name"], values, form["copy_of"] or None, form.file)
    return redirect("/", "added")


@pages.post("/studies/{name}/{action}")
def act(request: Request, name: str, action: str, form: Form) -> Response:
    """Archive a study, or bring it back."""
    actor = service_of(request).admin(request, form.csrf)
    if action not in ("archive", "restore"):
        raise RequestError(404, "This page does not exist.")
    _set_archived(request, name, action == "archive", actor)
    return redirect("/", "saved")


@pages.get("/admin/audit")
def audit(request: Request, before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None, by: str = "") -> Response:
    return audit_log_page(request, before, by)


@pages.get("/admin/{token}")
def open_organiser_link(request: Request, token: str) -> Response:
    """Exchange the token of the organiser's link for a cookie, so that it leaves the address bar."""
    authenticator = service_of(request).authenticator
    session = authenticator.exchange(request, token, "admin")
    response = redirect("/")
    authenticator.set_cookie(request, response, ADMIN_COOKIE, session, ADMIN_SECONDS)
    return response


def _create(
    request: Request,
    actor: str,
    name: str,
    values: dict[str, Any],
    copy_of: str | None,
    file: tuple[str, bytes] | None = None,
) -> None:
    studies = studies_of(request)
    items = []
    if file is not None:  # read before the study is created: a file that cannot be read creates none
        with uploaded_table(*file) as path:
            items = read_items_file(path)
    studies.create(name, values, copy_of=copy_of)
    service = studies.service(name)
    if items:
        service.collection.items.add(items, actor=actor)
    _log(service_of(request), f"study {name} created", actor)


def _set_archived(request: Request, name: str, archived: bool, actor: str) -> None:
    studies = studies_of(request)
    if archived:
        studies.archive(name)
    else:
        studies.restore(name)
    _log(service_of(request), f"study {name} {'archived' if archived else 'restored'}", actor)


def _log(service: Service, message: str, actor: str) -> None:
    service.collection.log.note(message, actor=actor)
    service.projection.catch_up()


def _overview(studies: Studies) -> list[dict[str, Any]]:
    return [_describe(studies, name) for name in studies.names()]


def _describe(studies: Studies, name: str) -> dict[str, Any]:
    if studies.is_archived(name):
        return {"name": name, "path": f"/s/{name}", "archived": True}
    service = studies.service(name)
    projection = service.projection.catch_up()
    return {
        "name": name,
        "path": f"/s/{name}",
        "archived": False,
        "title": projection.settings.title,
        "state": projection.state,
        "items": sum(not item.hidden for item in projection.items.values()),
        "annotators": len(projection.annotators),
        "votes": projection.n_counted,
    }


def ensure_organiser(folder: Any, *, new: bool) -> str | None:
    """Return a new token of the organiser if there is none yet or `new`; None otherwise."""
    with Collection.open(folder / f"{ORGANISER}.db") as collection:
        if new:
            collection.access.revoke_all(role="admin", actor="serve")
        elif collection.access.issued("admin"):
            return None
        return collection.access.issue_role("admin", actor="serve")
