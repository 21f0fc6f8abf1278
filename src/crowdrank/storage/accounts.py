"""Accounts of organisers, and their sessions. Credentials change in place; the log says who changed what, and when."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, update

from crowdrank.errors import DataError, UnknownNameError
from crowdrank.storage.database import Database, UnknownTokenError, check_text, hash_token, new_token
from crowdrank.storage.schema import ACCOUNT_ROLES, MAX_ACCOUNT_NAME, account, account_session
from crowdrank.storage.writer import Clock, LogTransaction, Writer

AccountRole = Literal["owner", "editor", "viewer"]
INVITATION_SECONDS = 7 * 86_400
"""How long the link that sets a password works."""
_SEEN_INTERVAL = 300 * 1_000_000
"""Microseconds after which the time of the last request of a session is stored again."""


class Account(NamedTuple):
    """An organiser.

    Parameters
    ----------
    id : int
        The row of the log that added the account.
    name : str
        The name that they sign in with.
    role : {"owner", "editor", "viewer"}
    password : str or None
        The hash of the password; None before the invitation is accepted.
    totp : str or None
        The sealed secret of one-time codes; None if none are used.
    invited_until : int or None
        Until when the link works that sets a new password; None if there is none.
    """

    id: int
    name: str
    role: AccountRole
    password: str | None
    totp: str | None
    invited_until: int | None


class AccountSession(NamedTuple):
    """A session of an organiser.

    Parameters
    ----------
    key : str
        A name of the session that reveals nothing about its secret.
    account : int
        Whose session it is.
    name : str
    role : {"owner", "editor", "viewer"}
    opened_at, seen_at, expires_at : int
        Microseconds since 1970.
    client : str
        The browser, as it describes itself.
    """

    key: str
    account: int
    name: str
    role: AccountRole
    opened_at: int
    seen_at: int
    expires_at: int
    client: str


_ACCOUNTS = select(*(account.c[name] for name in Account._fields))
_SESSIONS = select(
    account_session.c.hash,
    account.c.id,
    account.c.name,
    account.c.role,
    account_session.c.opened_at,
    account_session.c.seen_at,
    account_session.c.expires_at,
    account_session.c.client,
).select_from(account_session.join(account, account_session.c.account == account.c.id))


def normalise_name(name: str) -> str:
    """Return the name of an account in the form in which it is stored: names are equal whatever their case."""
    normal = unicodedata.normalize("NFKC", check_text(name, "The name of an account")).strip().casefold()
    if not 1 <= len(normal) <= MAX_ACCOUNT_NAME or not normal.isprintable():
        raise DataError(f"The name of an account must have 1 to {MAX_ACCOUNT_NAME} printable characters.")
    return normal


class Accounts:
    """The accounts of a collection."""

    def __init__(self, database: Database, writer: Writer, clock: Clock) -> None:
        self._database, self._writer, self._clock = database, writer, clock

    def all(self) -> list[Account]:
        """Return all accounts, in the order in which they were added."""
        return self._select(_ACCOUNTS.order_by(account.c.id))

    def get(self, id: int) -> Account:  # noqa: A002
        """Return an account; raise UnknownNameError if there is none with this id."""
        return self._database.read(lambda connection: _get(connection, id))

    def by_name(self, name: str) -> Account | None:
        """Return the account with this name; None if there is none."""
        try:
            normal = normalise_name(name)
        except DataError:
            return None
        return next(iter(self._select(_ACCOUNTS.where(account.c.name == normal))), None)

    def by_invitation(self, secret: str) -> Account | None:
        """Return the account that an invitation is for; None if it does not exist, was used, or has expired."""
        return self._database.read(lambda connection: self._invited(connection, secret))

    def add(self, name: str, role: AccountRole, *, actor: str) -> tuple[int, str]:
        """Add an account, and return its id and the secret of the link that sets its password."""
        normal, secret = normalise_name(name), new_token()
        _check_role(role)

        def work(transaction: LogTransaction) -> tuple[int, str]:
            connection = transaction.connection
            if connection.scalar(select(account.c.id).where(account.c.name == normal)) is not None:
                raise DataError(f"There is an account {normal!r} already: choose another name.")
            id_ = _note(transaction, "account added", actor, {"account": normal, "role": role})
            row = {"id": id_, "name": normal, "role": role, **self._invitation(transaction, secret)}
            connection.execute(insert(account), [row])
            return id_, secret

        return self._writer.run(work)

    def invite(self, id: int, *, actor: str) -> str:  # noqa: A002
        """Return the secret of a new link that sets the password. An earlier link stops working."""
        secret = new_token()

        def work(transaction: LogTransaction) -> str:
            name = _get(transaction.connection, id).name
            _note(transaction, "link for a new password made", actor, {"account": name})
            _update(transaction, id, **self._invitation(transaction, secret))
            return secret

        return self._writer.run(work)

    def accept(self, secret: str, password: str) -> Account:
        """Set the password of an invited account. It ends its sessions, and removes its one-time codes.

        `password` is its hash. Raise UnknownTokenError if the invitation does not exist any more.
        """

        def work(transaction: LogTransaction) -> Account:
            invited = self._invited(transaction.connection, secret)
            if invited is None:
                raise UnknownTokenError("This link was used already, or has expired: ask an owner for a new one.")
            _close_sessions(transaction, invited.id)
            _note(transaction, "password set", f"organiser {invited.name}", {"account": invited.name})
            _update(transaction, invited.id, password=password, totp=None, invitation=None, invited_until=None)
            return invited

        return self._writer.run(work)

    def set_password(self, id: int, password: str, *, actor: str, keep: str = "") -> None:  # noqa: A002
        """Replace the hash of the password, and end all sessions except the one with the secret `keep`."""

        def work(transaction: LogTransaction) -> None:
            name = _get(transaction.connection, id).name
            _close_sessions(transaction, id, keep=keep)
            _note(transaction, "password changed", actor, {"account": name})
            _update(transaction, id, password=password, invitation=None, invited_until=None)

        self._writer.run(work)

    def rehash(self, id: int, password: str) -> None:  # noqa: A002
        """Replace the hash of the same password, because its parameters are outdated."""
        self._writer.run(lambda transaction: _update(transaction, id, password=password))

    def set_totp(self, id: int, sealed: str | None, *, actor: str, step: int = 0) -> None:  # noqa: A002
        """Set the sealed secret of one-time codes; None to sign in without them."""

        def work(transaction: LogTransaction) -> None:
            name = _get(transaction.connection, id).name
            _note(transaction, f"one-time codes {'removed' if sealed is None else 'set up'}", actor, {"account": name})
            _update(transaction, id, totp=sealed, totp_step=step)

        self._writer.run(work)

    def use_totp_step(self, id: int, step: int) -> bool:  # noqa: A002
        """Remember that the code of a time step was used; False if it, or a later one, was used before."""
        used = update(account).where(account.c.id == id, account.c.totp_step < step).values(totp_step=step)
        return self._writer.run(lambda transaction: transaction.connection.execute(used).rowcount == 1)

    def set_role(self, id: int, role: AccountRole, *, actor: str) -> None:  # noqa: A002
        """Change the role of an account. One owner must be left."""
        _check_role(role)

        def work(transaction: LogTransaction) -> None:
            old = _get(transaction.connection, id)
            if old.role == role:
                return
            _check_owner_left(transaction, old, may_be_last=False)
            _note(transaction, "role changed", actor, {"account": old.name, "role": role, "before": old.role})
            _update(transaction, id, role=role)

        self._writer.run(work)

    def remove(self, id: int, *, actor: str) -> None:  # noqa: A002
        """Remove an account and end its sessions. What its owner did stays in the log."""

        def work(transaction: LogTransaction) -> None:
            old = _get(transaction.connection, id)
            _check_owner_left(transaction, old, may_be_last=True)
            _close_sessions(transaction, id)
            _note(transaction, "account removed", actor, {"account": old.name})
            transaction.connection.execute(delete(account).where(account.c.id == id))

        self._writer.run(work)

    def open_session(self, id: int, *, client: str, seconds: float) -> str:  # noqa: A002
        """Open a session and return its secret, which a cookie holds."""
        secret = new_token()

        def work(transaction: LogTransaction) -> str:
            name, now = _get(transaction.connection, id).name, transaction.now
            _note(transaction, "signed in", f"organiser {name}", {"account": name}, changes_access=False)
            transaction.execute(delete(account_session).where(account_session.c.expires_at <= now))
            row = {"hash": hash_token(secret), "account": id, "opened_at": now, "seen_at": now, "client": client}
            transaction.connection.execute(insert(account_session), [row | {"expires_at": now + round(seconds * 1e6)}])
            return secret

        return self._writer.run(work)

    def find_session(self, secret: str) -> AccountSession | None:
        """Return the session with this secret; None if it was closed or has expired."""
        now, hashed = self._clock(), hash_token(secret)
        query = _SESSIONS.where(account_session.c.hash == hashed, account_session.c.expires_at > now)
        found = next(iter(self._sessions(query)), None)
        if found is not None and now - found.seen_at > _SEEN_INTERVAL:
            seen = update(account_session).where(account_session.c.hash == hashed).values(seen_at=now)
            self._database.write_temporary(lambda connection: connection.execute(seen))
        return found

    def sessions(self, id: int) -> list[AccountSession]:  # noqa: A002
        """Return the sessions of an account that have not expired, the latest first."""
        query = _SESSIONS.where(account_session.c.account == id, account_session.c.expires_at > self._clock())
        return self._sessions(query.order_by(account_session.c.opened_at.desc()))

    def close_session(self, secret: str) -> None:
        """End the session with this secret."""
        closed = delete(account_session).where(account_session.c.hash == hash_token(secret))
        self._writer.run(lambda transaction: transaction.execute(closed))

    def revoke_session(self, id: int, key: str | None, *, actor: str, keep: str = "") -> None:  # noqa: A002
        """End one session of an account, or all except the one with the secret `keep` if `key` is None."""
        chosen = [bytes.fromhex(one.key) for one in self.sessions(id) if key is None or one.key == key]

        def work(transaction: LogTransaction) -> None:
            name = _get(transaction.connection, id).name
            rows = transaction.connection.execute(
                select(account_session.c.hash).where(account_session.c.account == id)
            ).fetchall()
            hashes = [bytes(row.hash) for row in rows if _key(row.hash) in chosen]
            hashes = [one for one in hashes if not keep or one != hash_token(keep)]
            if hashes:
                transaction.execute(delete(account_session).where(account_session.c.hash.in_(hashes)))
                _note(transaction, "sessions ended", actor, {"account": name, "sessions": len(hashes)})

        self._writer.run(work)

    def delete_expired(self) -> None:
        """Delete expired sessions."""
        expired = delete(account_session).where(account_session.c.expires_at <= self._clock())
        self._database.write_temporary(lambda connection: connection.execute(expired))

    def _select(self, query: Any) -> list[Account]:
        rows = self._database.read(lambda connection: connection.execute(query).fetchall())
        return [Account(*row) for row in rows]

    def _sessions(self, query: Any) -> list[AccountSession]:
        rows = self._database.read(lambda connection: connection.execute(query).fetchall())
        return [AccountSession(_key(row[0]).hex(), *row[1:]) for row in rows]

    def _invited(self, connection: Connection, secret: str) -> Account | None:
        query = _ACCOUNTS.where(account.c.invitation == hash_token(secret), account.c.invited_until > self._clock())
        row = connection.execute(query).first()
        return None if row is None else Account(*row)

    def _invitation(self, transaction: LogTransaction, secret: str) -> dict[str, Any]:
        until = transaction.now + INVITATION_SECONDS * 1_000_000
        return {"invitation": hash_token(secret), "invited_until": until}


def _key(hashed: Any) -> bytes:
    """Return a name of a session: a part of the hash of its secret, which is as good as random."""
    return bytes(hashed)[:8]


def _check_role(role: str) -> None:
    if role not in ACCOUNT_ROLES:
        raise DataError(f"The role must be one of {', '.join(ACCOUNT_ROLES)}, got {role!r}.")


def _get(connection: Connection, id_: int) -> Account:
    row = connection.execute(_ACCOUNTS.where(account.c.id == id_)).first()
    if row is None:
        known: Sequence[int] = connection.scalars(select(account.c.id).limit(9)).all()
        raise UnknownNameError("account", id_, list(known))
    return Account(*row)


def _update(transaction: LogTransaction, id_: int, **values: Any) -> None:
    transaction.connection.execute(update(account).where(account.c.id == id_).values(**values))


def _check_owner_left(transaction: LogTransaction, old: Account, *, may_be_last: bool) -> None:
    """Raise DataError if no owner would be left; with `may_be_last`, the last account of all may go."""
    others = account.c.id != old.id
    owners = select(func.count()).select_from(account).where(others, account.c.role == "owner")
    if old.role != "owner" or transaction.connection.scalar(owners):
        return
    if not (
        may_be_last and transaction.connection.scalar(select(func.count()).select_from(account).where(others)) == 0
    ):
        raise DataError("This is the only owner: make someone else an owner first.")


def _close_sessions(transaction: LogTransaction, id_: int, keep: str = "") -> None:
    closed = delete(account_session).where(account_session.c.account == id_)
    transaction.execute(closed.where(account_session.c.hash != hash_token(keep)) if keep else closed)


def _note(
    transaction: LogTransaction, what: str, actor: str, detail: dict[str, Any], *, changes_access: bool = True
) -> int:
    """Append an event about an account. `access` tells all processes to look up sessions again."""
    event = {"text": what, **detail, **({"access": True} if changes_access else {})}
    return transaction.append("noted", actor, detail=event)
