"""Signs of vote stuffing, and votes that are set aside: API and forms for admins."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from crowdrank.server import quarantine
from crowdrank.server.errors import RequestError
from crowdrank.server.routes import BOARD_WAIT, Form, SubmittedForm, redirect
from crowdrank.server.routes.judging_api import RequestBody, bearer, error_responses
from crowdrank.server.service import service_of

router = APIRouter(prefix="/api/v1", dependencies=[bearer], tags=["admin"])
pages = APIRouter(include_in_schema=False)
_ERRORS = error_responses(401, 403)
_Ids = Annotated[list[Annotated[int, Field(ge=1, le=2**63 - 1)]], Field(max_length=100_000)]


class SetAsideBody(RequestBody):
    annotators: _Ids
    reason: Annotated[str, Field(max_length=500)] = ""


class ReleaseBody(RequestBody):
    annotators: _Ids | None = None


@router.get("/bursts", responses=_ERRORS)
def bursts(request: Request) -> Response:
    """Return the addresses from which several participants of the public link cast many votes."""
    service = service_of(request)
    service.admin(request)
    return JSONResponse({"bursts": quarantine.find_bursts(service)})


@router.get("/stuffing", responses=_ERRORS)
def stuffing(request: Request) -> Response:
    """Return what the tests for vote stuffing found: campaigns, near-copies, bursts in time, newcomers."""
    service = service_of(request)
    service.admin(request)
    return JSONResponse(quarantine.find_alarms(service, service.boards.latest(BOARD_WAIT)))


@router.get("/quarantine", responses=_ERRORS)
def with_and_without(request: Request) -> Response:
    """Return whose votes are set aside, and the ranks of all items with these votes and without them."""
    service = service_of(request)
    service.admin(request)
    return JSONResponse(quarantine.boards_with_and_without(service))


@router.post("/quarantine", responses=_ERRORS)
def set_aside(request: Request, given: SetAsideBody) -> Response:
    """Set the votes of annotators aside: they do not count, and nobody is stopped from answering."""
    service = service_of(request)
    changed = quarantine.set_aside(service, given.annotators, service.admin(request), given.reason)
    return JSONResponse({"set_aside": changed})


@router.post("/quarantine/release", responses=_ERRORS)
def release(request: Request, given: ReleaseBody) -> Response:
    """Count votes again that were set aside, of some annotators or of all."""
    service = service_of(request)
    return JSONResponse({"released": quarantine.release(service, given.annotators, service.admin(request))})


@pages.post("/admin/quarantine")
def set_aside_by_form(request: Request, form: Form) -> Response:
    """Set the votes of one burst aside, or those of the annotators of an alarm."""
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    if form["annotators"]:
        if not quarantine.set_aside(service, _annotator_ids(form), actor, form["reason"][:500]):
            raise RequestError(404, "These votes are set aside already.")
        return redirect("/admin/annotators", "set_aside")
    found = [burst for burst in quarantine.find_bursts(service) if burst["key"] == form["burst"]]
    if not found:
        raise RequestError(404, "These votes are set aside already, or their address is no longer stored.")
    quarantine.set_aside(service, found[0]["annotators"], actor, "burst of votes from one address")
    return redirect("/admin/annotators", "set_aside")


def _annotator_ids(form: SubmittedForm) -> list[int]:
    words = form["annotators"].split(",")
    if not all(word.isascii() and word.isdigit() and len(word) <= 18 for word in words):
        raise RequestError(422, "The annotators must be numbers, separated by commas.")
    return [int(word) for word in words]


@pages.post("/admin/quarantine/release")
def release_all(request: Request, form: Form) -> Response:
    service = service_of(request)
    quarantine.release(service, None, service.admin(request, form.csrf))
    return redirect("/admin/annotators", "included")
