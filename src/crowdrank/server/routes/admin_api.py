"""The API for admins: items, annotators, votes, settings, exports and the audit log."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import groupby, islice
from typing import Annotated, Any, Literal

from fastapi import APIRouter, File, Path, Query, UploadFile
from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from crowdrank.server import admin_actions, annotator_summaries, files, joining
from crowdrank.server.errors import RequestError
from crowdrank.server.files import parse_item
from crowdrank.server.privacy import study_versions
from crowdrank.server.routes import BOARD_WAIT
from crowdrank.server.routes.judging_api import RequestBody, bearer, error_responses
from crowdrank.server.service import Service, service_of
from crowdrank.storage import task_type

router = APIRouter(prefix="/api/v1", dependencies=[bearer], tags=["admin"])
_MAX_ID = 2**63 - 1
Id = Annotated[int, Path(ge=1, le=_MAX_ID)]
_Name = Annotated[str, Field(min_length=1, max_length=300)]
_Text = Annotated[str, Field(max_length=1_000_000)]
_ERRORS = error_responses(401, 403)
_ERRORS_BY_ID = error_responses(401, 403, 404)
_FORMATS = {".jsonl": "application/x-ndjson", ".csv": "text/csv; charset=utf-8"}


class NewItemBody(RequestBody):
    label: _Name
    query: Annotated[str, Field(max_length=300)] = ""
    body: _Text | None = None
    kind: Literal["text", "markdown", "image", "audio", "video", "html", "link"] | None = None
    context: _Text | None = None
    group: Annotated[str, Field(max_length=300)] | None = None
    owner: Annotated[str, Field(max_length=300)] | None = None


class NewItemsBody(RequestBody):
    items: Annotated[list[NewItemBody], Field(min_length=1, max_length=10_000)]


class ItemChangeBody(RequestBody):
    body: _Text | None = None
    kind: Literal["text", "markdown", "image", "audio", "video", "html", "link"] | None = None
    context: _Text | None = None
    group: Annotated[str, Field(max_length=300)] | None = None
    owner: Annotated[str, Field(max_length=300)] | None = None
    hidden: bool | None = None
    reason: Annotated[str, Field(max_length=500)] = ""


class NewAnnotatorBody(RequestBody):
    name: _Name
    quota: Annotated[int, Field(ge=0, le=10**9)] | None = None


class NewAnnotatorsBody(RequestBody):
    annotators: Annotated[list[NewAnnotatorBody], Field(min_length=1, max_length=10_000)]


class AnnotatorChangeBody(RequestBody):
    excluded: bool | None = None
    paused: bool | None = Field(None, description="Whether they get no questions for now. Their votes count.")
    reason: Annotated[str, Field(max_length=500)] = ""
    quota: Annotated[int, Field(ge=0, le=10**9)] | None = None
    revoke: bool = False
    reissue: bool = False


class VoidBody(RequestBody):
    votes: Annotated[list[Annotated[int, Field(ge=1, le=_MAX_ID)]], Field(max_length=100_000)] = Field(
        default_factory=list
    )
    annotator: Annotated[int, Field(ge=1, le=_MAX_ID)] | None = None
    reason: Annotated[str, Field(max_length=500)] = ""


class ErasureBody(RequestBody):
    keep_votes: bool = Field(False, description="Whether their votes go on counting, without a name.")


class StateBody(RequestBody):
    state: Literal["open", "paused", "closed"]


@router.get("/items", responses=_ERRORS)
def items(request: Request) -> Response:
    """Return all items, including hidden ones."""
    service = service_of(request)
    service.admin(request)
    return JSONResponse({"items": admin_actions.list_items(service)})


@router.post("/items", responses=_ERRORS)
def add_items(request: Request, given: NewItemsBody) -> Response:
    """Add items. Existing items with the same content are left as they are."""
    service = service_of(request)
    actor = service.admin(request)
    new = [parse_item(item.model_dump()) for item in given.items]
    ids = service.collection.items.add(new, actor=actor)
    service.projection.catch_up()
    return JSONResponse({"ids": ids})


@router.patch("/items/{id_}", responses=_ERRORS_BY_ID)
def change_item(request: Request, id_: Id, given: ItemChangeBody) -> Response:
    """Change the content of an item, hide it, or show it again."""
    service = service_of(request)
    actor = service.admin(request)
    admin_actions.edit_item(service, id_, given.model_dump(exclude_unset=True), actor)
    item = admin_actions.get_item(service, id_)
    return JSONResponse({"id": id_, "label": item.label, "hidden": item.hidden, "content": item.content})


@router.post("/media", responses=error_responses(400, 401, 403))
def upload_media(request: Request, file: Annotated[UploadFile, File()]) -> Response:
    """Upload an image, a sound or a video. Use the returned name as the `body` of an item."""
    service = service_of(request)
    actor = service.admin(request)
    return JSONResponse({"body": admin_actions.upload_media(service, file.filename or "", file.file.read(), actor)})


@router.get("/annotators", responses=_ERRORS)
def annotators(request: Request) -> Response:
    """Return all annotators with their statistics and verdicts."""
    service = service_of(request)
    service.admin(request)
    board = service.boards.latest(BOARD_WAIT)
    return JSONResponse({"annotators": annotator_summaries.summarise(service.projection.catch_up(), board)})


@router.post("/annotators", responses=_ERRORS)
def add_annotators(request: Request, given: NewAnnotatorsBody) -> Response:
    """Add annotators. Their tokens are in the response and cannot be read again later."""
    service = service_of(request)
    actor = service.admin(request)
    new = [(annotator.name, annotator.quota) for annotator in given.annotators]
    return JSONResponse({"annotators": admin_actions.add_annotators(service, new, actor)})


@router.patch("/annotators/{id_}", responses=_ERRORS_BY_ID)
def change_annotator(request: Request, id_: Id, given: AnnotatorChangeBody) -> Response:
    """Exclude or include an annotator, pause them, set their quota, revoke or replace their link."""
    service = service_of(request)
    actor = service.admin(request)
    admin_actions.get_annotator(service, id_)
    result: dict[str, Any] = {"id": id_}
    if given.excluded is not None:
        admin_actions.set_excluded(service, id_, given.excluded, actor, given.reason)
    if given.paused is not None:
        admin_actions.set_paused(service, id_, given.reason if given.paused else None, actor)
    if "quota" in given.model_fields_set:
        admin_actions.set_quota(service, id_, given.quota, actor)
    if given.reissue:
        result["token"] = admin_actions.replace_token(service, id_, actor)
    elif given.revoke:
        admin_actions.revoke_token(service, id_, actor)
    annotator = admin_actions.get_annotator(service, id_)
    return JSONResponse(result | {"name": annotator.name, "excluded": annotator.excluded, "quota": annotator.quota})


@router.get("/annotators/{id_}/data", responses=_ERRORS_BY_ID)
def annotator_data(request: Request, id_: Id) -> Response:
    """Return everything that is stored about an annotator, for them to read."""
    service = service_of(request)
    data = admin_actions.data_about(service, id_, service.admin(request, needs="editor"))
    headers = {"Content-Disposition": f'attachment; filename="annotator-{id_}.json"'}
    return JSONResponse(data, headers=headers)


@router.post("/annotators/{id_}/erase", responses=_ERRORS_BY_ID)
def erase_annotator(request: Request, id_: Id, given: ErasureBody) -> Response:
    """Erase what identifies an annotator. It cannot be reverted."""
    service = service_of(request)
    actor = service.admin(request, needs="owner")
    name = admin_actions.erase_annotator(service, id_, actor, keep_votes=given.keep_votes)
    return JSONResponse({"id": id_, "name": name})


@router.get("/annotators/{id_}/ranks-without", responses=_ERRORS_BY_ID)
def ranks_without(request: Request, id_: Id) -> Response:
    """Return the ranks of all items with and without one annotator."""
    service = service_of(request)
    service.admin(request)
    annotator = admin_actions.get_annotator(service, id_)
    board = service.boards.latest(BOARD_WAIT)
    return JSONResponse({"items": annotator_summaries.ranks_without(board, annotator.name)})


@router.get("/votes", responses=_ERRORS)
def votes(
    request: Request,
    after: Annotated[int, Query(ge=0, le=_MAX_ID)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Return votes in order, including those that do not count; `next` is the `after` of the next page."""
    service = service_of(request)
    service.admin(request)
    # A vote may have several rows, which are never split between pages.
    by_vote = groupby(service.collection.log.vote_rows(after=after), key=lambda row: row["seq"])
    page = [(seq, list(rows)) for seq, rows in islice(by_vote, limit + 1)]
    following = page[limit - 1][0] if len(page) > limit else None
    return JSONResponse({"votes": [row for _, rows in page[:limit] for row in rows], "next": following})


@router.get("/votes.{suffix}", responses=_ERRORS_BY_ID)
def stream_votes(
    request: Request,
    suffix: Literal["jsonl", "csv"],
    counting: Annotated[bool, Query(description="Only votes that count.")] = False,
    identities: Annotated[bool, Query(description="With the ids by which panels know people.")] = False,
) -> Response:
    """Stream all votes. In CSV, text that a spreadsheet would read as a formula gets a leading apostrophe."""
    service = service_of(request)
    actor = service.admin(request, needs="owner" if identities else None)
    asked_for = {"identities": True} if identities else {}
    service.collection.log.note("votes exported", actor=actor, detail={"format": suffix, **asked_for})
    rows: Iterator[dict[str, Any]] = service.collection.log.vote_rows()
    columns = _columns(service)
    if identities:
        ids, columns = joining.panel_ids(service), (*columns, "panel_id")
        rows = ({**row, "panel_id": ids.get(row["annotator"], "")} for row in rows)
    selected = files.counted(rows) if counting else rows
    lines = files.as_csv(selected, columns) if suffix == "csv" else files.as_jsonl(selected)
    headers = {"Content-Disposition": f'attachment; filename="votes.{suffix}"'}
    return StreamingResponse(lines, media_type=_FORMATS[f".{suffix}"], headers=headers)


def _columns(service: Service) -> tuple[str, ...]:
    return files.columns_of(task_type(service.projection.catch_up().settings.task.type).kind)


@router.get("/participants.csv", responses=error_responses(401, 403))
def export_participants(request: Request) -> Response:
    """Return who came from a recruitment panel, with the ids that it knows them by, for paying them."""
    service = service_of(request)
    actor = service.admin(request, needs="owner")
    service.collection.log.note("participants of panels exported", actor=actor)
    text = "".join(files.as_csv(joining.participants(service), joining.PARTICIPANT_COLUMNS))
    headers = {"Content-Disposition": 'attachment; filename="participants.csv"'}
    return Response(text, media_type=_FORMATS[".csv"], headers=headers)


@router.get("/export.parquet", responses=_ERRORS)
def parquet(request: Request, counting: bool = False) -> Response:
    """Return all votes as one Parquet file."""
    service = service_of(request)
    actor = service.admin(request)
    service.collection.log.note("votes exported", actor=actor, detail={"format": "parquet"})
    rows: Iterator[dict[str, Any]] = service.collection.log.vote_rows()
    out = io.BytesIO()
    kind = task_type(service.projection.catch_up().settings.task.type).kind
    files.to_frame(files.counted(rows) if counting else rows, kind).write_parquet(out)
    headers = {"Content-Disposition": 'attachment; filename="votes.parquet"'}
    return Response(out.getvalue(), media_type="application/vnd.apache.parquet", headers=headers)


@router.post("/void", responses=_ERRORS_BY_ID)
def void(request: Request, given: VoidBody) -> Response:
    """Withdraw votes: those listed, or all of one annotator so far."""
    service = service_of(request)
    actor = service.admin(request)
    if (given.annotator is None) == (not given.votes):
        raise RequestError(422, "Send either votes or an annotator.")
    if given.annotator is None:
        withdrawn = admin_actions.void_votes(service, given.votes, actor, given.reason)
    else:
        withdrawn = admin_actions.void_all_votes(service, given.annotator, actor, given.reason)
    return JSONResponse({"void": withdrawn})


@router.get("/settings", responses=_ERRORS)
def settings(request: Request) -> Response:
    service = service_of(request)
    service.admin(request)
    return JSONResponse(admin_actions.settings_without_secrets(service.projection.catch_up().settings))


@router.patch("/settings", responses=_ERRORS)
def change_settings(request: Request, given: dict[str, Any]) -> Response:
    """Replace some settings. Tables are merged key by key."""
    service = service_of(request)
    actor = service.admin(request, needs="owner" if "privacy" in given else None)
    admin_actions.change_settings(service, given, actor)
    return JSONResponse(admin_actions.settings_without_secrets(service.projection.settings))


@router.get("/versions", responses=_ERRORS)
def versions(request: Request) -> Response:
    """Return the versions of the study, the latest first: the texts, when they were in force, consents and votes."""
    service = service_of(request)
    service.admin(request)
    return JSONResponse({"versions": study_versions(service.collection, service.projection)})


@router.get("/state", responses=_ERRORS)
def state(request: Request) -> Response:
    service = service_of(request)
    service.admin(request)
    return JSONResponse({"state": service.projection.catch_up().state, "totals": admin_actions.totals(service)})


@router.post("/state", responses=_ERRORS)
def change_state(request: Request, given: StateBody) -> Response:
    """Pause, resume or close the collection."""
    service = service_of(request)
    admin_actions.set_state(service, given.state, service.admin(request))
    return JSONResponse({"state": service.projection.state})


@router.get("/audit", responses=_ERRORS)
def audit(
    request: Request,
    before: Annotated[int | None, Query(ge=1, le=_MAX_ID)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    by: Annotated[str, Query(max_length=300, description="Only events by this actor.")] = "",
) -> Response:
    """Return the audit log, the latest event first."""
    service = service_of(request)
    service.admin(request)
    events, next_page = admin_actions.audit_page(service, before, limit, by=by)
    return JSONResponse({"events": events, "next": next_page})


@router.get("/audit.{suffix}", responses=_ERRORS_BY_ID)
def export_audit(request: Request, suffix: Literal["jsonl", "csv"]) -> Response:
    """Stream the audit log, the earliest event first."""
    service = service_of(request)
    actor = service.admin(request)
    service.collection.log.note("audit log exported", actor=actor, detail={"format": suffix})
    rows, columns = admin_actions.audit_rows(service), ("seq", "at", "kind", "actor", "subject", "detail")
    lines = files.as_csv(rows, columns) if suffix == "csv" else files.as_jsonl(rows)
    headers = {"Content-Disposition": f'attachment; filename="audit.{suffix}"'}
    return StreamingResponse(lines, media_type=_FORMATS[f".{suffix}"], headers=headers)
