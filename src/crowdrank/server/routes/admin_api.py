"""The API of the organiser: items, annotators, votes, settings, and everything out at any time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import APIRouter, File, Path, Query, UploadFile
from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from crowdrank.server import admin_actions, annotator_summaries, exports
from crowdrank.server.errors import Problem
from crowdrank.server.routes.api import Body, bearer, failures
from crowdrank.server.service import service_of, shown_settings

router = APIRouter(prefix="/api/v1", dependencies=[bearer], tags=["organiser"])
_LARGEST = 2**63 - 1
Number = Annotated[int, Path(ge=1, le=_LARGEST)]
_Name = Annotated[str, Field(min_length=1, max_length=300)]
_Text = Annotated[str, Field(max_length=1_000_000)]
_OPEN = failures(401, 403)
_ONE = failures(401, 403, 404)
_FORMATS = {".jsonl": "application/x-ndjson", ".csv": "text/csv; charset=utf-8"}


class ItemIn(Body):
    label: _Name
    query: Annotated[str, Field(max_length=300)] = ""
    body: _Text | None = None
    kind: Literal["text", "markdown", "image", "link"] | None = None
    context: _Text | None = None
    group: Annotated[str, Field(max_length=300)] | None = None
    owner: Annotated[str, Field(max_length=300)] | None = None


class ItemsIn(Body):
    items: Annotated[list[ItemIn], Field(min_length=1, max_length=10_000)]


class ItemChange(Body):
    body: _Text | None = None
    kind: Literal["text", "markdown", "image", "link"] | None = None
    context: _Text | None = None
    group: Annotated[str, Field(max_length=300)] | None = None
    owner: Annotated[str, Field(max_length=300)] | None = None
    hidden: bool | None = None
    reason: Annotated[str, Field(max_length=500)] = ""


class AnnotatorIn(Body):
    name: _Name
    quota: Annotated[int, Field(ge=0, le=10**9)] | None = None


class AnnotatorsIn(Body):
    annotators: Annotated[list[AnnotatorIn], Field(min_length=1, max_length=10_000)]


class AnnotatorChange(Body):
    excluded: bool | None = None
    reason: Annotated[str, Field(max_length=500)] = ""
    quota: Annotated[int, Field(ge=0, le=10**9)] | None = None
    revoke: bool = False
    reissue: bool = False


class VoidIn(Body):
    votes: Annotated[list[Annotated[int, Field(ge=1, le=_LARGEST)]], Field(max_length=100_000)] = Field(
        default_factory=list
    )
    annotator: Annotated[int, Field(ge=1, le=_LARGEST)] | None = None
    reason: Annotated[str, Field(max_length=500)] = ""


class StateIn(Body):
    state: Literal["open", "paused", "closed"]


@router.get("/items", responses=_OPEN)
def items(request: Request) -> Response:
    """All items, hidden ones too."""
    service = service_of(request)
    service.admin(request)
    return JSONResponse({"items": admin_actions.items_table(service)})


@router.post("/items", responses=_OPEN)
def add_items(request: Request, given: ItemsIn) -> Response:
    """Add items; those that are there already, alike, stay as they are."""
    service = service_of(request)
    actor = service.admin(request)
    numbers = service.collection.items.add(
        [admin_actions.new_item(one.model_dump()) for one in given.items], actor=actor
    )
    service.live.catch_up()
    return JSONResponse({"ids": numbers})


@router.patch("/items/{number}", responses=_ONE)
def change_item(request: Request, number: Number, given: ItemChange) -> Response:
    """Change what is shown of an item, hide it, or show it again."""
    service = service_of(request)
    actor = service.admin(request)
    admin_actions.edit_item(service, number, given.model_dump(exclude_unset=True), actor)
    thing = admin_actions.thing_of(service, number)
    return JSONResponse({"id": number, "label": thing.label, "hidden": thing.hidden, "content": thing.content})


@router.post("/media", responses=failures(400, 401, 403))
def add_picture(request: Request, file: Annotated[UploadFile, File()]) -> Response:
    """Upload a picture (PNG, JPEG, GIF, WebP); the `body` of an image item is the name that is given back."""
    service = service_of(request)
    actor = service.admin(request)
    return JSONResponse({"body": admin_actions.keep_picture(service, file.filename or "", file.file.read(), actor)})


@router.get("/annotators", responses=_OPEN)
def annotators(request: Request) -> Response:
    """All annotators with their figures and the verdict on them."""
    service = service_of(request)
    service.admin(request)
    return JSONResponse({"annotators": annotator_summaries.figures(service.live.catch_up(), service.boards.look(3.0))})


@router.post("/annotators", responses=_OPEN)
def add_annotators(request: Request, given: AnnotatorsIn) -> Response:
    """Add annotators. Their tokens are in the answer, and are never shown again."""
    service = service_of(request)
    actor = service.admin(request)
    told = [(one.name, one.quota) for one in given.annotators]
    return JSONResponse({"annotators": admin_actions.add_people(service, told, actor)})


@router.patch("/annotators/{number}", responses=_ONE)
def change_annotator(request: Request, number: Number, given: AnnotatorChange) -> Response:
    """Exclude or include someone, set their quota, revoke or replace their link."""
    service = service_of(request)
    actor = service.admin(request)
    admin_actions.person_of(service, number)
    answer: dict[str, Any] = {"id": number}
    if given.excluded is not None:
        admin_actions.exclude(service, number, given.excluded, actor, given.reason)
    if "quota" in given.model_fields_set:
        admin_actions.set_quota(service, number, given.quota, actor)
    if given.reissue:
        answer["token"] = admin_actions.reissue(service, number, actor)
    elif given.revoke:
        admin_actions.revoke(service, number, actor)
    person = admin_actions.person_of(service, number)
    return JSONResponse(answer | {"name": person.name, "excluded": person.excluded, "quota": person.quota})


@router.get("/annotators/{number}/without", responses=_ONE)
def without(request: Request, number: Number) -> Response:
    """The order as it would be without one annotator."""
    service = service_of(request)
    service.admin(request)
    person = admin_actions.person_of(service, number)
    return JSONResponse({"items": annotator_summaries.without(service.boards.look(3.0), person.name)})


@router.get("/votes", responses=_OPEN)
def votes(
    request: Request,
    after: Annotated[int, Query(ge=0, le=_LARGEST)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Votes in order, those that do not count too; `next` is the `after` of the next page, null at the end."""
    service = service_of(request)
    service.admin(request)
    rows = list(islice(service.collection.log.votes(after=after), limit + 1))
    more = len(rows) > limit
    return JSONResponse({"votes": rows[:limit], "next": rows[limit - 1]["seq"] if more else None})


@router.get("/votes.{ending}", responses=_ONE)
def stream_votes(
    request: Request,
    ending: Literal["jsonl", "csv"],
    counting: Annotated[bool, Query(description="Only those that count.")] = False,
) -> Response:
    """All votes, streamed. In CSV, text that a spreadsheet would take for a formula begins with an apostrophe."""
    service = service_of(request)
    actor = service.admin(request)
    service.collection.log.note("votes exported", actor=actor, detail={"format": ending})
    rows: Iterator[dict[str, Any]] = service.collection.log.votes()
    chosen = exports.counting(rows) if counting else rows
    lines = exports.as_csv(chosen) if ending == "csv" else exports.as_jsonl(chosen)
    headers = {"Content-Disposition": f'attachment; filename="votes.{ending}"'}
    return StreamingResponse(lines, media_type=_FORMATS[f".{ending}"], headers=headers)


@router.get("/export.parquet", responses=_OPEN)
def parquet(request: Request, counting: bool = False) -> Response:
    """All votes as one Parquet file."""
    service = service_of(request)
    actor = service.admin(request)
    service.collection.log.note("votes exported", actor=actor, detail={"format": "parquet"})
    rows: Iterator[dict[str, Any]] = service.collection.log.votes()
    out = io.BytesIO()
    exports.frame(exports.counting(rows) if counting else rows).write_parquet(out)
    headers = {"Content-Disposition": 'attachment; filename="votes.parquet"'}
    return Response(out.getvalue(), media_type="application/vnd.apache.parquet", headers=headers)


@router.post("/void", responses=_ONE)
def void(request: Request, given: VoidIn) -> Response:
    """Votes count no longer: those named, or all of one annotator so far."""
    service = service_of(request)
    actor = service.admin(request)
    if (given.annotator is None) == (not given.votes):
        raise Problem(422, "Name votes, or an annotator.")
    if given.annotator is None:
        return JSONResponse({"void": admin_actions.void(service, given.votes, actor, given.reason)})
    admin_actions.person_of(service, given.annotator)
    done = service.collection.questions.void_all(given.annotator, actor=actor, reason=given.reason)
    service.live.catch_up()
    return JSONResponse({"void": done})


@router.get("/settings", responses=_OPEN)
def settings(request: Request) -> Response:
    service = service_of(request)
    service.admin(request)
    return JSONResponse(shown_settings(service.live.catch_up().settings))


@router.patch("/settings", responses=_OPEN)
def change_settings(request: Request, given: dict[str, Any]) -> Response:
    """Replace some settings; those of a table one by one."""
    service = service_of(request)
    service.change_settings(given, service.admin(request))
    return JSONResponse(shown_settings(service.live.settings))


@router.get("/state", responses=_OPEN)
def state(request: Request) -> Response:
    service = service_of(request)
    service.admin(request)
    return JSONResponse({"state": service.live.catch_up().state, "totals": admin_actions.totals(service)})


@router.post("/state", responses=_OPEN)
def change_state(request: Request, given: StateIn) -> Response:
    """Pause, go on, or close."""
    service = service_of(request)
    admin_actions.set_state(service, given.state, service.admin(request))
    return JSONResponse({"state": service.live.state})


@router.get("/audit", responses=_OPEN)
def audit(
    request: Request,
    before: Annotated[int | None, Query(ge=1, le=_LARGEST)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """What was done, by whom, the latest first."""
    service = service_of(request)
    service.admin(request)
    events, following = admin_actions.audit(service, before, limit)
    return JSONResponse({"events": events, "next": following})
