"""The pages for admins about annotators: statistics, verdicts and personal links."""

from __future__ import annotations

import time
from itertools import groupby
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crowdrank.server import admin_actions, annotator_summaries, files, onboarding, quarantine
from crowdrank.server.errors import RequestError
from crowdrank.server.files import uploaded_table
from crowdrank.server.projection import Projection
from crowdrank.server.rendering import page
from crowdrank.server.routes import BOARD_WAIT, Form, SubmittedForm, is_checked, parse_integer, public_url, redirect
from crowdrank.server.routes.board import board_token
from crowdrank.server.service import Service, service_of
from crowdrank.storage import TASK_TYPES
from crowdrank.storage.judgments import OUTCOME_CODES, iso_time

router = APIRouter(include_in_schema=False)
_OUTCOMES = {code: name for name, code in OUTCOME_CODES.items()}
_MAX_VOTES = 200
_NOTICES = {
    "exclude": "excluded",
    "include": "included",
    "pause": "person_paused",
    "resume": "person_resumed",
    "void": "voided",
    "quota": "saved",
    "erase": "erased",
}


@router.get("/admin/annotators")
def annotators(request: Request) -> Response:
    service = service_of(request)
    session = service.authenticator.admin(request)
    board = service.boards.latest(BOARD_WAIT)
    rows = annotator_summaries.summarise(service.projection.catch_up(), board)
    held = any(row["quarantined"] for row in rows)
    effect = quarantine.boards_with_and_without(service) if held else None
    return page(
        request,
        "annotators.html",
        admin=True,
        csrf=session.csrf,
        annotators=rows,
        quarantine=effect,
        stuffing=quarantine.find_alarms(service, board),
    )


@router.get("/admin/annotators/{id_}")
def annotator(request: Request, id_: int) -> Response:
    service = service_of(request)
    session = service.authenticator.admin(request)
    name, board = admin_actions.get_annotator(service, id_).name, service.boards.latest(BOARD_WAIT)
    summary = next(row for row in annotator_summaries.summarise(service.projection, board) if row["id"] == id_)
    return page(
        request,
        "annotator.html",
        admin=True,
        csrf=session.csrf,
        annotator=summary,
        panel=admin_actions.get_annotator(service, id_).metadata.get("panel") if session.role != "viewer" else None,
        practice=onboarding.practice_summary(service, id_),
        ranks=annotator_summaries.ranks_without(board, name),
        votes=_latest_votes(service, id_),
    )


@router.post("/admin/annotators/{id_}/{action}")
def change_annotator(request: Request, id_: int, action: str, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf, needs="owner" if action == "erase" else None)
    if action in ("exclude", "include"):
        admin_actions.set_excluded(service, id_, action == "exclude", actor, form["reason"])
    elif action in ("pause", "resume"):
        admin_actions.set_paused(service, id_, form["reason"] if action == "pause" else None, actor)
    elif action == "void":
        admin_actions.void_all_votes(service, id_, actor, form["reason"])
    elif action == "quota":
        admin_actions.set_quota(service, id_, parse_integer(form["quota"], "The quota"), actor)
    elif action == "erase":
        admin_actions.erase_annotator(service, id_, actor, keep_votes=is_checked(form["keep_votes"]))
    else:
        raise RequestError(404, "This page does not exist.")
    path = f"/admin/annotators/{id_}" if form["return_to"] == "annotator" else "/admin/annotators"
    return redirect(path, _NOTICES[action])


@router.post("/admin/votes/{seq}/void")
def void_vote(request: Request, seq: int, form: Form) -> Response:
    service = service_of(request)
    admin_actions.void_votes(service, [seq], service.admin(request, form.csrf), form["reason"])
    id_ = parse_integer(form["annotator"], "The annotator")
    return redirect("/admin/annotators" if id_ is None else f"/admin/annotators/{id_}", "voided")


@router.get("/admin/links")
def links(request: Request) -> Response:
    session = service_of(request).authenticator.admin(request)
    return _links_page(request, session.csrf, {})


@router.post("/admin/links")
def create_links(request: Request, form: Form) -> Response:
    """Add annotators by name or from a table, and show their links, which cannot be read again later."""
    service = service_of(request)
    session = service.authenticator.admin(request, form.csrf)
    new = admin_actions.add_annotators(service, _names_and_quotas(form), session.actor)
    return _links_page(request, session.csrf, {one["id"]: one["token"] for one in new})


@router.post("/admin/links.csv")
def create_links_csv(request: Request, form: Form) -> Response:
    """Add annotators and return their links as a CSV file."""
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    new = admin_actions.add_annotators(service, _names_and_quotas(form), actor)
    rows = [{"annotator": one["name"], "link": public_url(request, f"/join/{one['token']}")} for one in new]
    headers = {"Content-Disposition": 'attachment; filename="links.csv"'}
    text = "".join(files.as_csv(rows, ("annotator", "link")))
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


@router.post("/admin/links/join")
def open_or_close_public_link(request: Request, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    admin_actions.change_settings(service, {"joining": {"open": is_checked(form["open"])}}, actor)
    return redirect("/admin/links", "saved")


@router.post("/admin/links/board")
def change_board_link(request: Request, form: Form) -> Response:
    """Create, replace or remove the read-only link to the board."""
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    # A new number for every link, so that a link that was removed never works again.
    newer = max(int(time.time()), service.projection.settings.board_link + 1)
    number = newer if is_checked(form["open"]) else 0
    admin_actions.change_settings(service, {"board_link": number}, actor)
    return redirect("/admin/links", "saved")


@router.post("/admin/links/{id_}/{action}")
def change_link(request: Request, id_: int, action: str, form: Form) -> Response:
    service = service_of(request)
    session = service.authenticator.admin(request, form.csrf)
    if action == "replace":
        token = admin_actions.replace_token(service, id_, session.actor)
        return _links_page(request, session.csrf, {id_: token})
    if action != "revoke":
        raise RequestError(404, "This page does not exist.")
    admin_actions.revoke_token(service, id_, session.actor)
    return redirect("/admin/links", "revoked")


def _links_page(request: Request, csrf: str, new_tokens: dict[int, str]) -> Response:
    service = service_of(request)
    projection = service.projection.catch_up()
    holders = service.collection.access.holders()
    rows: list[dict[str, Any]] = [
        {
            "id": one.id,
            "name": one.name,
            "url": public_url(request, f"/join/{new_tokens[one.id]}") if one.id in new_tokens else None,
            "revoked": one.id not in holders,
            "last_seen": iso_time(projection.vote_times[one.votes[-1]]) if one.votes else None,
        }
        for one in projection.annotators.values()
    ]
    return page(
        request,
        "links.html",
        admin=True,
        csrf=csrf,
        links=rows,
        join_url=public_url(request, "/join"),
        join_open=projection.settings.joining.open,
        board_url=None if (token := board_token(service)) is None else public_url(request, f"/board/{token}"),
    )


def _names_and_quotas(form: SubmittedForm) -> list[tuple[str, int | None]]:
    if form.file is None:
        names = list(dict.fromkeys(line.strip() for line in form["names"].splitlines() if line.strip()))
        if not names:
            raise RequestError(422, "Enter at least one name, one per line.")
        return [(name, None) for name in names]
    from crowdrank.io import read_annotators

    with uploaded_table(*form.file) as path:
        table = read_annotators(path)
    return [(name, table.quota.get(name)) for name in table.annotators]


def _latest_votes(service: Service, id_: int) -> list[dict[str, Any]]:
    """Return the last votes of an annotator, the latest first."""
    projection = service.projection
    return [
        {
            "seq": projection.vote_seqs[row],
            **_described(projection, row),
            "at": iso_time(projection.vote_times[row]),
            "response_ms": None if projection.response_ms[row] < 0 else projection.response_ms[row],
            "withdrawn": projection.is_withdrawn(row),
        }
        for row in reversed(projection.annotators[id_].votes[-_MAX_VOTES:])
    ]


def _described(projection: Projection, row: int) -> dict[str, str]:
    """Return the items of a vote and its answer as text."""
    votes, vote = projection.votes, projection.task_votes.get(row)
    if vote is None or vote.question.is_pair:
        left, right = (projection.items[projection.item_ids[side[row]]].label for side in (votes.left, votes.right))
        answer = _OUTCOMES[int(votes.outcome[row])]
        return {"items": f"{left} · {right}", "answer": {"left": left, "right": right}.get(answer, answer)}
    shown = " · ".join(projection.items[id_].label for id_ in vote.question.items)
    if vote.answer is None:
        return {"items": shown, "answer": "skip"}
    places = TASK_TYPES[vote.question.task].places(vote.answer["value"], vote.question)
    if vote.question.task == "rating":
        return {"items": shown, "answer": str(places[0][1])}
    by_place = groupby(sorted(places, key=lambda one: one[1]), key=lambda one: one[1])
    return {
        "items": shown,
        "answer": " > ".join(", ".join(projection.items[id_].label for id_, _ in tied) for _, tied in by_place),
    }
