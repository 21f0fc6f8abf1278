"""The API that people who judge use: their questions, their answers, and the board."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Security
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from crowdrank.server.batching import Said
from crowdrank.server.routes.board import PATIENCE, allowed
from crowdrank.server.service import service_of

bearer = Security(HTTPBearer(auto_error=False, description="The token of a personal link, or the admin secret."))


class Fault(BaseModel):
    code: str
    message: str
    detail: Any = None


class Failure(BaseModel):
    """Every error has this shape."""

    error: Fault


def failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Failure} for status in (*statuses, 422, 429, 503)}


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Vote(Body):
    token: str = Field(min_length=1, max_length=200, description="Of the assignment that is answered.")
    outcome: Literal["left", "right", "tie", "skip"]
    reason: str = Field("", max_length=500, description="Why it was skipped.")
    milliseconds: int | None = Field(None, ge=0, le=604_800_000, description="How long the answer took.")


router = APIRouter(prefix="/api/v1", dependencies=[bearer], tags=["judging"])


@router.get("/question", responses=failures(401))
async def question(request: Request) -> Response:
    """The question to answer next: `assignment` with `progress`, or `finished`, or `paused`."""
    service = service_of(request)
    return JSONResponse((await service.queue.serve(service.turn(request))).question())


@router.post("/votes", responses=failures(400, 401, 403, 404, 409, 410))
async def vote(request: Request, vote: Vote) -> Response:
    """Answer a question. The same answer again changes nothing and is answered alike; another is refused (409)."""
    service = service_of(request)
    said = Said(vote.token, vote.outcome, vote.reason, vote.milliseconds)
    return JSONResponse((await service.queue.serve(service.turn(request, said))).answer())


@router.post("/undo", responses=failures(401, 403, 404, 409))
def undo(request: Request) -> Response:
    """Take back the last answer: its question is put again."""
    service = service_of(request)
    person, _ = service.annotator(request)
    return JSONResponse(service.desk.undo(person))


@router.get("/board", responses={**failures(401, 403), 204: {"description": "Nothing newer than `after`."}})
def board(request: Request, after: Annotated[int | None, Query(ge=0, le=2**63 - 1)] = None) -> Response:
    """The board: order with intervals, tie groups, reliability and how near a decision is."""
    service = service_of(request)
    allowed(service, request)
    shown = service.boards.look(PATIENCE)
    return Response(status_code=204) if after is not None and shown.seq <= after else JSONResponse(shown.as_dict())


@router.get("/board/why", responses=failures(401, 403))
def why(
    request: Request,
    above: Annotated[str, Query(max_length=300)],
    below: Annotated[str, Query(max_length=300)],
    query: Annotated[str, Query(max_length=300)] = "",
) -> Response:
    """In a sentence, why one item stands above another, or does not."""
    service = service_of(request)
    allowed(service, request)
    return JSONResponse({"why": service.boards.look(PATIENCE).why(above, below, query)})
