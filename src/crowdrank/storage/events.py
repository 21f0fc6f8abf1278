"""Rows of the log that are neither questions nor answers: few, and each with a detail of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, select, text

from crowdrank.storage.schema import log

# As the index of them says it, or it would not be used.
_IS_EVENT = text("log.kind NOT IN ('assignment', 'vote')")
_ROWS = select(log.c.seq, log.c.at, log.c.kind, log.c.actor, log.c.subject, log.c.detail).where(_IS_EVENT)


class Event(NamedTuple):
    """One thing that was done."""

    seq: int
    at: int
    """Microseconds since 1970."""
    kind: str
    actor: str
    subject: int
    """The row that it is about; 0 where it is about none."""
    detail: Mapping[str, Any]


def events(
    connection: Connection, kinds: Iterable[str] | None = None, *, after: int = 0, up_to: int | None = None
) -> list[Event]:
    """In their order."""
    rows = _ROWS.where(log.c.seq > after).order_by(log.c.seq)
    if up_to is not None:
        rows = rows.where(log.c.seq <= up_to)
    if kinds is not None:
        rows = rows.where(log.c.kind.in_(list(kinds)))
    return [
        Event(seq, at, kind, actor, subject or 0, json.loads(detail))
        for seq, at, kind, actor, subject, detail in connection.execute(rows)
    ]
