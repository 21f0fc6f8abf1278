"""Secrets: made here, given away once, and only their hash kept.

Who is let in: tokens that are given away once, sessions they are exchanged for, and how often anyone may try.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from sqlalchemy import Connection, Select, bindparam, delete, exists, insert, select, text

from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.storage.database import Database
from crowdrank.storage.schema import annotator, log, rate, session, token
from crowdrank.storage.validation import UnknownTokenError
from crowdrank.storage.writer import Clock, Writer, Writing


def new_token() -> str:
    """128 bits that nobody can guess, as 22 signs that need no quoting in an address."""
    return secrets.token_urlsafe(16)


def hashed(token: str) -> bytes:
    """What is stored of it. A guess at 128 bits is hopeless at any speed, so a fast hash will do."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


T = TypeVar("T")
Role = Literal["annotator", "admin", "join"]

_REVOKED = exists().where(log.c.subject == token.c.seq, log.c.kind == "token_revoked")
_BEARER = select(token.c.role, token.c.annotator, token.c.seq).where(token.c.hash == bindparam("hash"), ~_REVOKED)
_VISITOR = (
    select(token.c.role, token.c.annotator, token.c.seq)
    .select_from(session.join(token, session.c.token == token.c.seq))
    .where(session.c.hash == bindparam("hash"), session.c.expires_at > bindparam("now"), ~_REVOKED)
)
# The moment from which nothing is owed moves on by one step with each try, and may lie only so far ahead (GCRA).
_TRY = text(
    "INSERT INTO rate (key_hash, free_at) VALUES (:key, :now + :step) ON CONFLICT (key_hash) DO UPDATE "
    "SET free_at = CASE WHEN rate.free_at > :now THEN rate.free_at ELSE :now END + :step "
    "WHERE rate.free_at <= :now + :slack RETURNING free_at"
)


class Visitor(NamedTuple):
    """Who presented a token or a session, and what they may be."""

    role: Role
    annotator: int | None
    token: int
    """The row of the log that issued it, for revoking."""


class Access:
    """Tokens, sessions and limits. Of every secret only the hash is kept."""

    def __init__(self, database: Database, writer: Writer, clock: Clock) -> None:
        self._database, self._writer, self._clock = database, writer, clock

    def issue(self, annotators: Sequence[int], *, actor: str) -> list[str]:
        """A new token for each of these annotators: shown now, and never again."""
        fresh = [new_token() for _ in annotators]

        def work(writing: Writing) -> list[str]:
            known = set(writing.connection.scalars(select(annotator.c.id)))
            if missing := set(annotators) - known:
                raise UnknownNameError("annotator", min(missing), sorted(known)[:9])
            _issue(writing, "annotator", annotators, fresh, actor)
            return fresh

        return self._writer.run(work)

    def issue_role(self, role: Literal["admin", "join"], *, actor: str) -> str:
        """A new token for the organiser, or for whoever wants to join: shown now, and never again."""
        fresh = new_token()
        self._writer.run(lambda writing: _issue(writing, role, [None], [fresh], actor))
        return fresh

    def revoke(self, token: int, *, actor: str) -> None:
        """The token and its sessions are worth nothing from now on."""
        self._writer.run(lambda writing: _revoke(writing, [token], actor))

    def revoke_all(self, annotator: int | None = None, *, role: Role = "annotator", actor: str) -> int:
        """All tokens of an annotator, or of a role; gives how many there were."""

        def work(writing: Writing) -> int:
            held = select(token.c.seq).where(~_REVOKED, token.c.role == role)
            if annotator is not None:
                held = held.where(token.c.annotator == annotator)
            found = list(writing.connection.scalars(held.order_by(token.c.seq)))
            _revoke(writing, found, actor)
            return len(found)

        return self._writer.run(work)

    def holders(self) -> set[int]:
        """Annotators who hold a token that was not revoked."""
        held = select(token.c.annotator).where(~_REVOKED, token.c.role == "annotator")
        return self._database.read(lambda connection: set(connection.scalars(held)))

    def issued(self, role: Role) -> bool:
        """Whether a token of this role is out, and was not revoked."""
        found = select(token.c.seq).where(~_REVOKED, token.c.role == role).limit(1)
        return self._database.read(lambda connection: connection.scalar(found)) is not None

    def bearer(self, secret: str) -> Visitor | None:
        """Whose token this is, if anyone's."""
        return self._visitor(_BEARER, {"hash": hashed(secret)})

    def open_session(self, secret: str, *, seconds: float) -> str:
        """Exchange a token for a session: what a cookie holds."""
        fresh = new_token()

        def work(writing: Writing) -> str:
            found = writing.connection.execute(_BEARER, {"hash": hashed(secret)}).first()
            if found is None:
                raise UnknownTokenError("Nobody was given this token, or it was revoked.")
            writing.connection.execute(delete(session).where(session.c.expires_at <= writing.now))
            until = writing.now + round(seconds * 1e6)
            row = {"hash": hashed(fresh), "token": found.seq, "opened_at": writing.now, "expires_at": until}
            writing.connection.execute(insert(session), row)
            return fresh

        return self._writer.run(work)

    def visitor(self, secret: str) -> Visitor | None:
        """Whose session this is, if it still runs and its token was not revoked."""
        return self._visitor(_VISITOR, {"hash": hashed(secret), "now": self._clock()})

    def close_session(self, secret: str) -> None:
        gone = delete(session).where(session.c.hash == hashed(secret))
        self._writer.run(lambda writing: writing.do(gone))

    def wait(self, key: str, *, times: int, seconds: float) -> float:
        """Note one try of `key`; gives 0 if it may, or the seconds until it may, in which case it was not counted.

        At most `times` at once, and as many in every so many seconds, whichever process is asked.
        """
        if times < 1 or seconds <= 0:
            raise SettingError(f"A limit must allow something, got {times} times in {seconds} s.")
        step, now = max(1, round(seconds * 1e6 / times)), self._clock()
        tried = {"key": hashed(key), "now": now, "step": step, "slack": step * (times - 1)}

        def attempt(connection: Connection) -> float:
            if connection.execute(_TRY, tried).first() is not None:
                return 0.0
            free_at = connection.scalar(select(rate.c.free_at).where(rate.c.key_hash == tried["key"]))
            return max(int(free_at or 0) - now - step * (times - 1), 1) / 1e6

        return self._database.pass_by(attempt)

    def forget(self) -> None:
        """Drop what limits and sessions no longer need; now and then is enough."""
        now = self._clock()

        def sweep(connection: Connection) -> None:
            connection.execute(delete(rate).where(rate.c.free_at <= now))
            connection.execute(delete(session).where(session.c.expires_at <= now))

        self._database.pass_by(sweep)

    def _visitor(self, statement: Select[Any], told: dict[str, Any]) -> Visitor | None:
        row = self._database.read(lambda connection: connection.execute(statement, told).first())
        return None if row is None else Visitor(*row)


def _issue(writing: Writing, role: Role, annotators: Sequence[int | None], fresh: list[str], actor: str) -> None:
    told = ((who, {"role": role}) for who in annotators)
    numbers = writing.append_all("token_issued", actor, told)
    rows = [
        {"seq": seq, "hash": hashed(one), "role": role, "annotator": who}
        for seq, one, who in zip(numbers, fresh, annotators, strict=True)
    ]
    if rows:
        writing.connection.execute(insert(token), rows)


def _revoke(writing: Writing, tokens: list[int], actor: str) -> None:
    known = set(writing.connection.scalars(select(token.c.seq).where(token.c.seq.in_(tokens[:1]))))
    if tokens and not known:
        raise UnknownNameError("token", tokens[0], [])
    writing.append_all("token_revoked", actor, ((one, {}) for one in tokens))
    if tokens:
        writing.connection.execute(
            delete(session).where(session.c.token == bindparam("gone")), [{"gone": t} for t in tokens]
        )
