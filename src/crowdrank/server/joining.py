"""How people take part: with the public link, from a recruitment panel, or coming back."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from crowdrank.server.authentication import JOIN_LIMIT, SESSION_SECONDS, RateLimit
from crowdrank.server.errors import RequestError
from crowdrank.server.panels import Arrival, arrival, find_participant, id_on_panel
from crowdrank.server.projection import Projection
from crowdrank.server.records import Annotator
from crowdrank.server.service import Service

Json = dict[str, Any]
MAX_NAME_LENGTH = 80
ADDRESS_SECONDS = 7 * 86_400
"""How long the hash of the address of a participant is stored, to notice bursts of votes from one address."""
_GUEST = re.compile(r"guest-[0-9a-f]{8}")


def join(service: Service, address: str, name: str, fields: Mapping[str, str], current: str) -> str | None:
    """Add an annotator, or let them go on, and open their session; None if the `current` session is already theirs."""
    projection = service.projection.catch_up()
    who = arrival(fields, projection.settings.joining)
    known = None if who is None else find_participant(projection, who)
    if who is not None and known is not None:
        return _resume(service, known, who, current)
    _check_open(projection)
    if who is not None and who.only_looks:
        raise RequestError(403, "Accept the task on the panel first, then open the link again.", code="not_accepted")
    service.limiter.take(f"joining {address}", JOIN_LIMIT)
    return _join_anew(service, address, name, who, current)


def _check_open(projection: Projection) -> None:
    joining = projection.settings.joining
    if not joining.open or projection.state == "closed":
        raise RequestError(403, "This study is closed to new participants.", code="closed")
    if is_full(projection):
        raise RequestError(403, "This study has enough participants.", code="full")


def is_full(projection: Projection) -> bool:
    """Return whether as many people joined with the public link as the settings allow."""
    most = projection.settings.joining.max_participants
    joined = (one.metadata.get("joined") for one in projection.annotators.values())
    return most is not None and sum(how in ("open", "panel") for how in joined) >= most


def _join_anew(service: Service, address: str, name: str, who: Arrival | None, current: str) -> str | None:
    annotators, joining = service.collection.annotators, service.projection.settings.joining
    wanted = name or f"guest-{secrets.token_hex(4)}" if who is None else pseudonym(service, who)
    if len(wanted) > MAX_NAME_LENGTH:
        raise RequestError(422, f"The name is too long: use at most {MAX_NAME_LENGTH} characters.")
    taken = {annotator.name: annotator.id for annotator in service.projection.annotators.values()}
    if wanted in taken and who is None:
        principal = service.collection.access.find_session(current) if current else None
        if principal is not None and principal.annotator == taken[wanted]:
            return None
        raise RequestError(409, "This name is taken. Choose another name, or use your personal link.", code="taken")
    if wanted in taken:  # someone typed it
        wanted = f"{wanted}-{secrets.token_hex(4)}"
    _limit_guests(service, address)
    metadata: Json = {"joined": "open"}
    if who is not None:
        metadata = {"joined": "panel", "panel_name": who.panel.name, "panel": who.values}
    (id_,) = annotators.add([wanted], actor="join", metadata={wanted: metadata})
    service.collection.access.remember_address(id_, address, seconds=ADDRESS_SECONDS)
    if joining.approval:
        annotators.exclude(id_, actor="join", reason="awaits approval", quarantine=True)
    return open_session(service, id_)


def pseudonym(service: Service, who: Arrival) -> str:
    """Return the name of a participant in exports, from which only the holder of the secret key can tell the id."""
    return f"{who.panel.name}-{service.collection.keys.sign(f'panel {who.panel.name} {who.id}')[:10]}"


def _limit_guests(service: Service, address: str) -> None:
    most = service.projection.settings.joining.guests_per_address
    if most is None:
        return
    try:
        service.limiter.take(f"guests {address}", RateLimit(most, 3600))
    except RequestError as error:
        raise RequestError(
            429,
            f"{most} people from your network have joined already: try again later, or ask for a personal link.",
            detail=error.detail,
            headers=error.headers,
        ) from error


def _resume(service: Service, annotator: Annotator, who: Arrival, current: str) -> str | None:
    """Let a participant of a panel go on. Their sessions elsewhere end, so that one person answers at a time."""
    values = {**annotator.metadata.get("panel", {}), **who.values}
    if values != annotator.metadata.get("panel") or "panel_name" not in annotator.metadata:
        metadata = {**annotator.metadata, "panel_name": who.panel.name, "panel": values}
        service.collection.annotators.edit(annotator.id, metadata, actor="join")
        service.projection.catch_up()
    principal = service.collection.access.find_session(current) if current else None
    if principal is not None and principal.annotator == annotator.id:
        return None
    service.collection.access.revoke_all(annotator.id, actor="join")
    return open_session(service, annotator.id)


def open_session(service: Service, id_: int) -> str:
    access = service.collection.access
    token = access.issue([id_], actor="join")[0]
    return access.open_session(token, seconds=SESSION_SECONDS)


def shown_name(annotator: Annotator) -> str:
    """Return the name by which an annotator knows themselves; empty if we made it up."""
    made_up = annotator.metadata.get("joined") == "panel" or _GUEST.fullmatch(annotator.name) is not None
    return "" if made_up else annotator.name


PARTICIPANT_COLUMNS = ("annotator", "panel", "id", "parameters", "status", "reason", "answered", "skipped")
"""The columns of `participants`."""


def panel_ids(service: Service) -> dict[str, str]:
    """Return the ids by which panels know people, by the names of the annotators."""
    projection = service.projection.catch_up()
    joining = projection.settings.joining
    found = {annotator.name: id_on_panel(annotator, joining) for annotator in projection.annotators.values()}
    return {name: id_ for name, id_ in found.items() if id_}


def participants(service: Service) -> list[Json]:
    """Return who came from a panel, with the ids that the panel knows them by, for paying them."""
    rows = []
    projection = service.projection.catch_up()
    for annotator in projection.annotators.values():
        values = annotator.metadata.get("panel")
        if not isinstance(values, dict):
            continue
        progress = service.assignments.progress(annotator)
        finished = progress["remaining"] == 0
        rows.append(
            {
                "annotator": annotator.name,
                "panel": annotator.metadata.get("panel_name", "panel"),
                "id": id_on_panel(annotator, projection.settings.joining),
                "parameters": "&".join(f"{key}={quote(str(value))}" for key, value in values.items()),
                "status": "excluded" if annotator.is_shut_out else "finished" if finished else "not finished",
                "reason": annotator.excluded_because,
                "answered": progress["decided"],
                "skipped": progress["skipped"],
            }
        )
    return rows
