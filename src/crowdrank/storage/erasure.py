"""Erase what identifies an annotator, and collect what is stored about them.

Erasing is an event of the log. The rows about the annotator stay, so that the log remains complete, but their texts are
gone: name, metadata, reasons, comments. The database allows such changes only while the last row is that event.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, or_, select, text, update

from crowdrank.errors import DataError, UnknownNameError
from crowdrank.storage.database import Database
from crowdrank.storage.judgments import iso_time
from crowdrank.storage.schema import IS_EVENT, annotator, assignment, lease, log, session, token, visit, vote
from crowdrank.storage.writer import LogTransaction, Writer, to_json

ERASED = "annotator_erased"
_ABOUT_ANNOTATORS = ("annotator_added", "annotator_edited", "annotator_excluded", "annotator_included")
_REVOKED = select(log.c.subject).where(log.c.kind == "token_revoked", log.c.subject.is_not(None))


def erase(database: Database, writer: Writer, ids: Sequence[int], *, actor: str, keep_votes: bool = False) -> list[str]:
    """Erase annotators in one transaction, and return the names that replace theirs.

    Parameters
    ----------
    database : Database
    writer : Writer
    ids : sequence of int
        The annotators.
    actor : str
        Who erases them.
    keep_votes : bool, default False
        Whether their votes go on counting, without a name. By default they do not count any more.
    """
    names = writer.run(lambda transaction: _erase_all(transaction, ids, actor, keep_votes))
    database.purge(("annotator", "log", "vote"))
    return names


def identified(database: Database) -> list[int]:
    """Return the annotators who were not erased."""
    erased = select(log.c.subject).where(log.c.kind == ERASED, log.c.subject.is_not(None))
    query = select(annotator.c.id).where(annotator.c.id.not_in(erased)).order_by(annotator.c.id)
    return database.read(lambda connection: list(connection.scalars(query)))


def _erase_all(transaction: LogTransaction, ids: Sequence[int], actor: str, keep_votes: bool) -> list[str]:
    names = [_erase(transaction, id_, actor, keep_votes) for id_ in ids]
    _redact_log(transaction.connection, dict(zip(ids, names, strict=True)))
    return [new for _, new in names]


def _erase(transaction: LogTransaction, id_: int, actor: str, keep_votes: bool) -> tuple[str, str]:
    """Erase an annotator from all tables but the details of events; return the old name and the new one."""
    connection = transaction.connection
    old = connection.scalar(select(annotator.c.name).where(annotator.c.id == id_))
    if old is None:
        raise UnknownNameError("annotator", id_, connection.scalars(select(annotator.c.id).limit(9)).all())
    if connection.execute(select(log.c.seq).where(log.c.kind == ERASED, log.c.subject == id_)).first():
        raise DataError(f"Annotator {id_} was already erased.")
    new = _free_name(connection, f"erased-{id_}")
    tokens = select(token.c.seq).where(token.c.annotator == id_)
    open_ones = list(connection.scalars(tokens.where(token.c.seq.not_in(_REVOKED)).order_by(token.c.seq)))
    transaction.append_all("token_revoked", actor, ((number, {}) for number in open_ones))
    if not keep_votes:
        transaction.append("annotator_excluded", actor, id_, {"reason": "erased"})
    votes = connection.scalar(select(func.count()).select_from(vote).where(vote.c.annotator == id_))
    transaction.append(ERASED, actor, id_, {"name": new, "votes": votes, "votes_count": keep_votes})
    for table, condition in (
        (session, session.c.token.in_(tokens)),
        (visit, visit.c.annotator == id_),
        (lease, lease.c.annotator == id_),
    ):
        connection.execute(delete(table).where(condition))
    connection.execute(update(annotator).where(annotator.c.id == id_).values(name=new))
    connection.execute(update(vote).where(vote.c.annotator == id_).values(reason="", comment=""))
    return str(old), new


def _free_name(connection: Connection, wanted: str) -> str:
    taken = set(connection.scalars(select(annotator.c.name).where(annotator.c.name.startswith(wanted))))
    return next(name for name in (wanted, *(f"{wanted}-{n}" for n in range(2, 10**6))) if name not in taken)


def _redact_log(connection: Connection, names: Mapping[int, tuple[str, str]]) -> None:
    """Remove the names and metadata of annotators, and what was written about them, from the details of events."""
    rows = connection.execute(
        select(log.c.seq, log.c.kind, log.c.subject, log.c.detail).where(text(f"log.{IS_EVENT}"), log.c.detail != "{}")
    ).fetchall()
    their_votes = {
        seq for id_ in names for seq in connection.scalars(select(vote.c.seq).where(vote.c.annotator == id_))
    }
    new_by_old, changed = dict(names.values()), []
    for seq, kind, subject, stored in rows:
        person = names.get(seq if kind == "annotator_added" else subject) if kind in _ABOUT_ANNOTATORS else None
        about_vote = kind in ("undo", "void") and subject in their_votes
        detail = json.loads(stored)
        if person is not None or about_vote:
            redacted = to_json(_redact_whole(detail, kind, "" if person is None else person[1]))
        else:
            redacted = to_json(_redact_names(detail, kind, new_by_old))
        if redacted != stored:
            changed.append({"row": seq, "redacted": redacted})
    if changed:
        statement = update(log).where(log.c.seq == bindparam("row")).values(detail=bindparam("redacted"))
        connection.execute(statement, changed)


def _redact_whole(detail: Mapping[str, Any], kind: str, new: str) -> dict[str, Any]:
    """Return what stays of an event about an annotator, or about the withdrawal of their vote."""
    # Which text they agreed to identifies nobody, and proves that they did.
    kept = {key: value for key, value in detail.get("metadata", {}).items() if key == "consent"}
    if kind == "annotator_added":
        return {"name": new, "metadata": kept}
    if kind == "annotator_edited":
        return {"metadata": kept}
    return {**detail, "reason": "erased" if detail.get("reason") == "erased" else ""}


def _redact_names(detail: Mapping[str, Any], kind: str, new_by_old: Mapping[str, str]) -> dict[str, Any]:
    """Replace the names of annotators in an event about something else."""
    if kind.startswith("item_"):  # the text of an item is not about its owner
        content = detail.get("content", {})
        owner = content.get("owner")
        return {**detail, "content": {**content, "owner": new_by_old[owner]}} if owner in new_by_old else dict(detail)
    found = _replace(detail, new_by_old)
    assert isinstance(found, dict)
    return found


def _replace(value: Any, new_by_old: Mapping[str, str]) -> Any:
    """Replace names wherever they are a value."""
    if isinstance(value, Mapping):
        return {key: _replace(inner, new_by_old) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replace(inner, new_by_old) for inner in value]
    return new_by_old.get(value, value) if isinstance(value, str) else value


def data_about(database: Database, id_: int, vote_rows: Callable[[], Any]) -> dict[str, Any]:
    """Return everything that is stored about an annotator: events, sessions, questions and votes."""

    def read(connection: Connection) -> dict[str, Any]:
        name = connection.scalar(select(annotator.c.name).where(annotator.c.id == id_))
        if name is None:
            raise UnknownNameError("annotator", id_, connection.scalars(select(annotator.c.id).limit(9)).all())
        tokens = select(token.c.seq).where(token.c.annotator == id_)
        events = connection.execute(
            select(log.c.seq, log.c.at, log.c.kind, log.c.detail)
            .where(text(f"log.{IS_EVENT}"), or_(log.c.seq == id_, log.c.subject == id_, log.c.subject.in_(tokens)))
            .order_by(log.c.seq)
        ).fetchall()
        sessions = connection.execute(
            select(session.c.opened_at, session.c.expires_at).where(session.c.token.in_(tokens))
        ).fetchall()
        questions = connection.scalar(select(func.count()).select_from(assignment).where(assignment.c.annotator == id_))
        address = connection.scalar(select(visit.c.expires_at).where(visit.c.annotator == id_))
        return {
            "id": id_,
            "name": name,
            "events": [
                {"seq": seq, "time": iso_time(at), "kind": kind, "detail": json.loads(detail)}
                for seq, at, kind, detail in events
            ],
            "sessions": [{"opened": iso_time(start), "expires": iso_time(end)} for start, end in sessions],
            "address_hash_until": None if address is None else iso_time(address),
            "questions": questions,
        }

    found = database.read(read)
    votes = [row for row in vote_rows() if row["annotator"] == found["name"]]
    return {**found, "votes": votes}
