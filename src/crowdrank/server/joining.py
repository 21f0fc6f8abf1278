"""Coming in by the open link, alone or sent by a panel."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping

from crowdrank.server.authentication import SESSION_SECONDS
from crowdrank.server.errors import Problem
from crowdrank.server.rate_limits import JOINING
from crowdrank.server.service import Service

_LONGEST_NAME = 80


def join(service: Service, address: str, name: str, sent: Mapping[str, str], session: str) -> str | None:
    """A session for a new annotator; None where `session` is already theirs."""
    live = service.live.catch_up()
    joining = live.settings.joining
    if not joining.open or live.state == "closed":
        raise Problem(403, "This collection takes nobody in any more.", code="closed")
    service.limits.take(f"joining {address}", JOINING)
    panel = {key: sent[key][:300] for key in joining.panel_parameters if sent.get(key)}
    first = panel.get(joining.panel_parameters[0]) if joining.panel_parameters else None
    chosen = first or name
    if len(chosen) > _LONGEST_NAME:
        raise Problem(422, f"A name has at most {_LONGEST_NAME} signs.")
    taken = {person.name: person for person in live.people.values()}
    wanted = chosen or f"guest-{secrets.token_hex(4)}"
    if wanted in taken:
        return _again(service, taken[wanted].id, taken[wanted].about, panel, session)
    about = {"joined": "panel" if first else "open", **({"panel": panel} if panel else {})}
    number = service.collection.annotators.add([wanted], actor="join", about={wanted: about})[0]
    return _session(service, number)


def _again(
    service: Service, number: int, about: Mapping[str, object], panel: Mapping[str, str], session: str
) -> str | None:
    """An id in an address proves nothing: who comes back must have the cookie, or the panel's same session."""
    visitor = service.collection.access.visitor(session) if session else None
    if visitor is not None and visitor.annotator == number:
        return None
    before = about.get("panel")
    keys = service.live.settings.joining.panel_parameters
    proof = keys[-1] if len(keys) > 1 else ""
    known = isinstance(before, dict) and proof in panel and proof in before
    if known and hmac.compare_digest(str(before[proof]).encode(), panel[proof].encode()):  # type: ignore[index]
        return _session(service, number)
    raise Problem(
        409, "Someone takes part under this name already: choose another, or use your own link.", code="taken"
    )


def _session(service: Service, number: int) -> str:
    access = service.collection.access
    token = access.issue([number], actor="join")[0]
    return access.open_session(token, seconds=SESSION_SECONDS)
