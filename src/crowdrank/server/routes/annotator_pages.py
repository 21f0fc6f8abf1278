"""The organiser's pages about annotators: how they answer, and the links they come in by."""

from __future__ import annotations

import shutil
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crowdrank.server import admin_actions, annotator_summaries, exports
from crowdrank.server.errors import Problem
from crowdrank.server.rendering import page
from crowdrank.server.routes import Form, Sent, see, whole
from crowdrank.server.routes.admin_pages import address
from crowdrank.server.routes.board import PATIENCE
from crowdrank.server.service import Service, service_of
from crowdrank.storage import SKIPPED
from crowdrank.storage.batches import CODES
from crowdrank.storage.log import iso

router = APIRouter(include_in_schema=False)
_OUTCOMES = {code: name for name, code in CODES.items()}
_LATEST = 200


@router.get("/admin/annotators")
def annotators(request: Request) -> Response:
    service = service_of(request)
    known = service.door.admin(request)
    told = annotator_summaries.figures(service.live.catch_up(), service.boards.look(PATIENCE))
    return page(request, "annotators.html", admin=True, csrf=known.csrf, people=told)


@router.get("/admin/annotators/{number}")
def annotator(request: Request, number: int) -> Response:
    service = service_of(request)
    known = service.door.admin(request)
    one, board = admin_actions.person_of(service, number), service.boards.look(PATIENCE)
    told = next(row for row in annotator_summaries.figures(service.live, board) if row["id"] == number)
    return page(
        request,
        "annotator.html",
        admin=True,
        csrf=known.csrf,
        person=told,
        without=annotator_summaries.without(board, one.name),
        votes=_latest(service, number),
    )


@router.post("/admin/annotators/{number}/{act}")
def change(request: Request, number: int, act: str, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    if act in ("exclude", "include"):
        admin_actions.exclude(service, number, act == "exclude", actor, form["reason"])
    elif act == "void":
        admin_actions.person_of(service, number)
        service.collection.questions.void_all(number, actor=actor, reason=form["reason"])
    elif act == "quota":
        admin_actions.set_quota(service, number, whole(form["quota"], "The quota"), actor)
    else:
        raise Problem(404, "There is nothing here.")
    said = {"exclude": "excluded", "include": "included", "void": "voided"}.get(act, "saved")
    return see(f"/admin/annotators/{number}" if form["back"] == "one" else "/admin/annotators", said)


@router.post("/admin/votes/{number}/void")
def void(request: Request, number: int, form: Form) -> Response:
    service = service_of(request)
    admin_actions.void(service, [number], service.admin(request, form.csrf), form["reason"])
    back = whole(form["annotator"], "The annotator")
    return see("/admin/annotators" if back is None else f"/admin/annotators/{back}", "voided")


@router.get("/admin/links")
def links(request: Request) -> Response:
    service = service_of(request)
    known = service.door.admin(request)
    return _links(request, known.csrf, {})


@router.post("/admin/links")
def issue(request: Request, form: Form) -> Response:
    """New people, by lines of names or a table: their links are on this page, and nowhere again."""
    service = service_of(request)
    known = service.door.admin(request, form.csrf)
    new = admin_actions.add_people(service, _people_of(form), f"admin {known.visitor.token}")
    return _links(request, known.csrf, {one["id"]: one["token"] for one in new})


@router.post("/admin/links.csv")
def issue_as_table(request: Request, form: Form) -> Response:
    """The same as a file."""
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    new = admin_actions.add_people(service, _people_of(form), actor)
    rows = [{"annotator": one["name"], "link": address(request, f"/join/{one['token']}")} for one in new]
    headers = {"Content-Disposition": 'attachment; filename="links.csv"'}
    text = "".join(exports.as_csv(rows, ("annotator", "link")))
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


@router.post("/admin/links/join")
def open_or_close(request: Request, form: Form) -> Response:
    service = service_of(request)
    actor = service.admin(request, form.csrf)
    service.change_settings({"joining": {"open": form["open"] in ("on", "true", "1", "yes")}}, actor)
    return see("/admin/links", "saved")


@router.post("/admin/links/{number}/{act}")
def change_link(request: Request, number: int, act: str, form: Form) -> Response:
    service = service_of(request)
    known = service.door.admin(request, form.csrf)
    actor = f"admin {known.visitor.token}"
    if act == "reissue":
        return _links(request, known.csrf, {number: admin_actions.reissue(service, number, actor)})
    if act != "revoke":
        raise Problem(404, "There is nothing here.")
    admin_actions.revoke(service, number, actor)
    return see("/admin/links", "revoked")


def _links(request: Request, csrf: str, fresh: dict[int, str]) -> Response:
    service = service_of(request)
    live = service.live.catch_up()
    held = service.collection.access.holders()
    rows: list[dict[str, Any]] = [
        {
            "id": one.id,
            "name": one.name,
            "url": address(request, f"/join/{fresh[one.id]}") if one.id in fresh else None,
            "revoked": one.id not in held,
            "last_seen": iso(live.at[one.votes[-1]]) if one.votes else None,
        }
        for one in live.people.values()
    ]
    return page(
        request,
        "links.html",
        admin=True,
        csrf=csrf,
        links=rows,
        join_url=address(request, "/join"),
        join_open=live.settings.joining.open,
    )


def _people_of(form: Sent) -> list[tuple[str, int | None]]:
    if form.file is None:
        names = list(dict.fromkeys(line.strip() for line in form["names"].splitlines() if line.strip()))
        if not names:
            raise Problem(422, "Name someone, one a line.")
        return [(name, None) for name in names]
    from crowdrank.io import read_annotators

    path = admin_actions.uploaded(*form.file)
    try:
        table = read_annotators(path)
    finally:
        shutil.rmtree(path.parent, ignore_errors=True)
    return [(name, table.quota.get(name)) for name in table.annotators]


def _latest(service: Service, number: int) -> list[dict[str, Any]]:
    """The last votes of one, the latest first."""
    live = service.live
    ids, folding = live.ids, live.folding
    return [
        {
            "seq": live.vote_seq[row],
            "left": live.items[ids[folding.left[row]]].label,
            "right": live.items[ids[folding.right[row]]].label,
            "outcome": _OUTCOMES[int(folding.outcome[row])],
            "at": iso(live.at[row]),
            "milliseconds": None if live.response_ms[row] < 0 else live.response_ms[row],
            "stands": live.stands(row),
            "skipped": int(folding.outcome[row]) == SKIPPED,
        }
        for row in reversed(live.people[number].votes[-_LATEST:])
    ]
