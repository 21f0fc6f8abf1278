"""The API for annotators: questions, votes and the board."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Annotated, Any, ClassVar, Literal, Self

from fastapi import APIRouter, Query, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from crowdrank.server import middleware
from crowdrank.server.assignments import Answer
from crowdrank.server.errors import RequestError, response_to
from crowdrank.server.middleware import MAX_PUBLIC_BODY, add_security_headers, content_length, record_request
from crowdrank.server.routes import BOARD_WAIT
from crowdrank.server.routes.board import check_board_access
from crowdrank.server.service import service_of

bearer = Security(HTTPBearer(auto_error=False, description="The token of a personal link or of the admin link."))


class ErrorBody(BaseModel):
    code: str
    message: str
    detail: Any = None


class ErrorResponse(BaseModel):
    """The form of every error."""

    error: ErrorBody


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of the errors that an endpoint may return."""
    return {status: {"model": ErrorResponse} for status in (*statuses, 422, 429, 503)}


class RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid")


class BestWorstBody(RequestBody):
    best: int = Field(ge=1, le=2**63 - 1)
    worst: int = Field(ge=1, le=2**63 - 1)


AnswerValue = (
    Annotated[int, Field(ge=1, le=2**63 - 1)]
    | Annotated[list[Annotated[int, Field(ge=1, le=2**63 - 1)]], Field(max_length=20)]
    | BestWorstBody
)


class VoteBody(RequestBody):
    token: str = Field(min_length=1, max_length=200, description="The token of the assignment.")
    outcome: Literal["left", "right", "tie", "both_bad", "skip", "answered"] = Field(
        "answered", description="The answer to a pair, or skip. Other tasks have an answer instead."
    )
    answer: AnswerValue | None = Field(
        None, description="A grade, the id of the chosen item, the best and the worst, or all ids in order."
    )
    criteria: dict[str, str | int] = Field(
        default_factory=dict, max_length=10, description="Answers to the criteria of the question, in the same form."
    )
    comment: str = Field("", max_length=5000)
    reason: str = Field("", max_length=500, description="Why the question was skipped.")
    response_ms: int | None = Field(None, ge=0, le=604_800_000, description="The response time in milliseconds.")

    @model_validator(mode="after")
    def _has_answer(self) -> Self:
        if self.outcome == "answered" and self.answer is None:
            raise ValueError("send an outcome, or an answer")
        return self


router = APIRouter(prefix="/api/v1", dependencies=[bearer], tags=["annotators"])


async def _next_question(request: Request) -> dict[str, Any]:
    service = service_of(request)
    handled = await service.batcher.submit(service.judging_request(request))
    return handled.question()


async def _store_vote(request: Request, vote: VoteBody) -> dict[str, Any]:
    service = service_of(request)
    value = vote.answer.model_dump() if isinstance(vote.answer, BestWorstBody) else vote.answer
    answer = Answer(vote.token, vote.outcome, vote.reason, vote.response_ms, value, vote.criteria, vote.comment)
    handled = await service.batcher.submit(service.judging_request(request, answer))
    return handled.result()


@router.get("/question", responses=error_responses(401))
async def question(request: Request) -> Response:
    """Return the next question: `assignment` with `progress`, or `finished`, or `paused`."""
    return JSONResponse(await _next_question(request))


@router.post("/votes", responses=error_responses(400, 401, 403, 404, 409, 410))
async def vote(request: Request, vote: VoteBody) -> Response:
    """Store a vote and return the next question. Repeating a vote is safe; a different answer is a conflict (409)."""
    return JSONResponse(await _store_vote(request, vote))


class DirectJudging:
    """Answers the two requests of every vote without FastAPI, whose layers take longer than the vote itself.

    The routes above describe these requests, and answer those that need more care: bodies that are large, or of
    unknown length.
    """

    routes: ClassVar[dict[tuple[str, str], Route]] = {
        ("GET", "/api/v1/question"): Route("/api/v1/question", question, methods=["GET"]),
        ("POST", "/api/v1/votes"): Route("/api/v1/votes", vote, methods=["POST"]),
    }

    def accepts(self, scope: Scope) -> bool:
        """Return whether a request with this scope, without the prefix of the server, is answered here."""
        if (scope["method"], scope["path"]) not in self.routes:
            return False
        length = content_length(scope)
        return length is not None and length <= MAX_PUBLIC_BODY

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start, request = time.perf_counter(), Request(scope, receive)
        scope["route"] = self.routes[scope["method"], scope["path"]]
        try:
            body, status = await self._answer(request), 200
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        except ClientDisconnect:
            return
        except Exception as error:
            response = response_to(request, error)
            body, status, headers = bytes(response.body), response.status_code, response.raw_headers
        record_request(scope, status, time.perf_counter() - start)
        add_security_headers(scope, headers)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, request: Request) -> bytes:
        if request.method == "GET":
            return _json(await _next_question(request))
        try:
            async with asyncio.timeout(middleware.BODY_SECONDS):
                body: Any = await request.body()
        except TimeoutError:
            message, headers = "The request took too long to arrive.", {"Connection": "close"}
            raise RequestError(408, message, code="timeout", headers=headers) from None
        is_json = request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
        try:
            parsed = VoteBody.model_validate_json(body) if is_json else VoteBody.model_validate(body)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_context=False)
            raise RequestValidationError([{**fault, "loc": ("body", *fault["loc"])} for fault in faults]) from error
        return _json(await _store_vote(request, parsed))


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


@router.post("/undo", responses=error_responses(401, 403, 404, 409))
def undo(request: Request) -> Response:
    """Undo the last vote and return its question again."""
    service = service_of(request)
    annotator, _ = service.annotator(request)
    return JSONResponse(service.assignments.undo(annotator))


@router.get("/board", responses={**error_responses(401, 403, 404), 204: {"description": "Nothing newer than `after`."}})
def board(
    request: Request,
    after: Annotated[int | None, Query(ge=0, le=2**63 - 1)] = None,
    link: Annotated[str, Query(max_length=100, description="The token of the read-only link to the board.")] = "",
) -> Response:
    """Return the board: ranking with intervals, tie groups, reliability and decision status."""
    service = service_of(request)
    check_board_access(service, request, link)
    latest = service.boards.latest(BOARD_WAIT)
    if after is not None and latest.seq <= after:
        return Response(status_code=204)
    return Response(latest.json, media_type="application/json")


@router.get("/board/explanation", responses=error_responses(401, 403))
def explanation(
    request: Request,
    above: Annotated[str, Query(max_length=300)],
    below: Annotated[str, Query(max_length=300)],
    query: Annotated[str, Query(max_length=300)] = "",
) -> Response:
    """Explain in one sentence why one item is above another, or is not."""
    service = service_of(request)
    check_board_access(service, request)
    return JSONResponse({"explanation": service.boards.latest(BOARD_WAIT).explain(above, below, query)})
