"""Tokens, sessions, rate limits and recent addresses. Only hashes of secrets and addresses are stored."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, Select, bindparam, delete, exists, insert, select, text

from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.storage.database import Database, UnknownTokenError, hash_token, new_token
from crowdrank.storage.schema import annotator, identity, log, rate_limit, session, token, visit
from crowdrank.storage.writer import Clock, LogTransaction, Writer

# The secret key of a collection, which is not in its database.
#
# The key makes the tokens of open questions, hashes IP addresses and encrypts the secrets of webhooks. Whoever reads
# the database, or a backup of it, cannot recover them without the key. It is the environment variable CROWDRANK_KEY,
# or a file beside the SQLite database. For PostgreSQL without CROWDRANK_KEY it is stored in the database.

ENVIRONMENT = "CROWDRANK_KEY"
_SEALED = "sealed:"
_MIN_LENGTH = 16
_INSERT = text("INSERT INTO identity (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING")


class Keys:
    """Functions of the secret key.

    Parameters
    ----------
    key : bytes
        The secret key.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def question_token(self, nonce: str) -> str:
        """Return the token of an open question, of which the database has the nonce and a hash."""
        return base64.urlsafe_b64encode(self._derive(b"question", nonce.encode())[:16]).decode().rstrip("=")

    def board_token(self, number: int) -> str:
        """Return the token of a read-only link to the board."""
        return base64.urlsafe_b64encode(self._derive(b"board", str(number).encode())[:16]).decode().rstrip("=")

    def hash_address(self, key: str) -> bytes:
        """Return a hash from which an IP address cannot be recovered by trying all of them."""
        return self._derive(b"address", key.encode("utf-8", "surrogatepass"))

    def sign(self, text: str) -> str:
        """Return a signature of a text, which nobody without the key can make."""
        return self._derive(b"signature", text.encode("utf-8", "surrogatepass")).hex()[:32]

    def seal(self, secret: str) -> str:
        """Encrypt a secret that has to be used again. A sealed secret is returned as it is."""
        if secret.startswith(_SEALED):
            return secret
        nonce = secrets.token_bytes(16)
        hidden = self._apply_stream(nonce, secret.encode())
        return _SEALED + base64.urlsafe_b64encode(nonce + hidden + self._tag(nonce, hidden)).decode()

    def open(self, sealed: str) -> str | None:
        """Decrypt a secret; None if it was sealed with another key. Text that is not sealed is returned as it is."""
        if not sealed.startswith(_SEALED):
            return sealed
        try:
            raw = base64.urlsafe_b64decode(sealed.removeprefix(_SEALED))
        except ValueError:
            return None
        nonce, hidden, tag = raw[:16], raw[16:-16], raw[-16:]
        if not hmac.compare_digest(tag, self._tag(nonce, hidden)):
            return None
        return self._apply_stream(nonce, hidden).decode()

    def conceal(self, name: str) -> str:
        """Return a name for a URL that does not show what it is, always the same for the same name."""
        raw = name.encode("utf-8", "surrogatepass")
        nonce = self._derive(b"name", raw)[:16]  # derived from the name, and so its tag as well
        return base64.urlsafe_b64encode(nonce + self._apply_stream(nonce, raw)).decode().rstrip("=")

    def reveal(self, concealed: str) -> str | None:
        """Return the name that was concealed; None if it was not concealed with this key."""
        try:
            raw = base64.urlsafe_b64decode(concealed + "=" * (-len(concealed) % 4))
            name = self._apply_stream(raw[:16], raw[16:])
            found = name.decode("utf-8", "surrogatepass")
        except ValueError:
            return None
        return found if hmac.compare_digest(self._derive(b"name", name)[:16], raw[:16]) else None

    def _derive(self, purpose: bytes, value: bytes) -> bytes:
        return hmac.new(self._key, purpose + b"\0" + value, hashlib.sha256).digest()

    def _tag(self, nonce: bytes, hidden: bytes) -> bytes:
        return self._derive(b"tag", nonce + hidden)[:16]

    def _apply_stream(self, nonce: bytes, value: bytes) -> bytes:
        # A keyed hash in counter mode, with a tag over the result (encrypt-then-MAC): needs nothing but hmac.
        stream = b""
        for block in count():
            if len(stream) >= len(value):
                break
            stream += self._derive(b"stream", nonce + block.to_bytes(8, "big"))
        return bytes(a ^ b for a, b in zip(value, stream, strict=False))


def load_keys(database: Database) -> Keys:
    """Return the key of a collection, and create it if there is none."""
    if given := os.environ.get(ENVIRONMENT):
        if len(given) < _MIN_LENGTH:
            raise SettingError(f"{ENVIRONMENT} must have at least {_MIN_LENGTH} characters, got {len(given)}.")
        return Keys(hashlib.sha256(given.encode()).digest())
    if not database.is_sqlite:
        return Keys(load_identity(database, "key", 32))
    return Keys(_read_or_create(Path(f"{database.url.database}.key")))


def key_of(database: Database) -> bytes | None:
    """Return the secret key of a collection as it is stored; None if there is none, or if the environment has it."""
    if os.environ.get(ENVIRONMENT):
        return None
    if database.is_sqlite:
        path = Path(f"{database.url.database}.key")
        return _read_or_create(path) if path.exists() else None
    query = select(identity.c.value).where(identity.c.name == "key")
    found = database.read(lambda connection: connection.scalar(query))
    return None if found is None else bytes(found)


def store_key(database: Database, key: bytes) -> None:
    """Store the secret key of a collection that has none yet."""
    if database.is_sqlite:
        handle = os.open(f"{database.url.database}.key", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(key.hex() + "\n")
    else:
        new = {"name": "key", "value": key}
        database.write_temporary(lambda connection: connection.execute(_INSERT, new))


def load_identity(database: Database, name: str, size: int) -> bytes:
    """Return random bytes that belong to a collection, and create them if there are none."""
    query = select(identity.c.value).where(identity.c.name == name)

    def find(connection: Connection) -> bytes | None:
        return connection.scalar(query)

    found = database.read(find)
    if found is None:
        new = {"name": name, "value": secrets.token_bytes(size)}
        database.write_temporary(lambda connection: connection.execute(_INSERT, new))
        found = database.read(find)
    assert found is not None
    return bytes(found)


def _read_or_create(path: Path) -> bytes:
    try:
        if not path.exists():
            # Written under another name first: a process that finds the file must find all of it.
            handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=path.name)  # readable by the owner only
            with os.fdopen(handle, "w") as file:
                file.write(secrets.token_hex(32) + "\n")
            with suppress(FileExistsError):
                os.link(unfinished, path)
            os.unlink(unfinished)
        return bytes.fromhex(path.read_text(encoding="ascii").strip())
    except OSError as error:
        raise SettingError(
            f"The key file {path} cannot be used ({error.strerror}): set {ENVIRONMENT}, or make the folder writable."
        ) from error
    except ValueError as error:
        raise SettingError(f"{path} is not the key file of a collection: restore it, or remove it.") from error


Role = Literal["annotator", "admin", "join"]

_REVOKED = exists().where(log.c.subject == token.c.seq, log.c.kind == "token_revoked")
_BY_TOKEN = select(token.c.role, token.c.annotator, token.c.seq).where(token.c.hash == bindparam("hash"), ~_REVOKED)
_BY_SESSION = (
    select(token.c.role, token.c.annotator, token.c.seq)
    .select_from(session.join(token, session.c.token == token.c.seq))
    .where(session.c.hash == bindparam("hash"), session.c.expires_at > bindparam("now"), ~_REVOKED)
)
# Generic cell rate algorithm (GCRA): each request moves the time from which the full limit is available again by one
# interval, and a request is refused if that time lies too far ahead. It is never more than one period ahead: if it is
# more than two, the clock was set back, and the row says nothing.
_TAKE_PERMIT = text(
    "INSERT INTO rate_limit (key_hash, free_at) VALUES (:key, :now + :interval) ON CONFLICT (key_hash) DO UPDATE "
    "SET free_at = CASE WHEN rate_limit.free_at BETWEEN :now AND :latest THEN rate_limit.free_at ELSE :now END "
    "+ :interval WHERE rate_limit.free_at <= :now + :burst OR rate_limit.free_at > :latest RETURNING free_at"
)


class Principal(NamedTuple):
    """Who presented a token or a session.

    Parameters
    ----------
    role : {"annotator", "admin", "join"}
        The role of the holder, which determines their rights.
    annotator : int or None
        The id of the annotator; None for other roles.
    token : int
        The row of the log that issued the token, for revoking it.
    """

    role: Role
    annotator: int | None
    token: int


class Access:
    """Issue, check and revoke tokens; open sessions; limit request rates."""

    def __init__(self, database: Database, writer: Writer, clock: Clock, keys: Keys) -> None:
        self._database, self._writer, self._clock, self._keys = database, writer, clock, keys

    def issue(self, annotators: Sequence[int], *, actor: str) -> list[str]:
        """Issue one new token per annotator. The tokens cannot be read again later."""
        tokens = [new_token() for _ in annotators]

        def work(transaction: LogTransaction) -> list[str]:
            known = set(transaction.connection.scalars(select(annotator.c.id)))
            if missing := set(annotators) - known:
                raise UnknownNameError("annotator", min(missing), sorted(known)[:9])
            _issue(transaction, "annotator", annotators, tokens, actor)
            return tokens

        return self._writer.run(work)

    def issue_role(self, role: Literal["admin", "join"], *, actor: str) -> str:
        """Issue a token for an admin, or for joining. It cannot be read again later."""
        new = new_token()
        self._writer.run(lambda transaction: _issue(transaction, role, [None], [new], actor))
        return new

    def revoke(self, token: int, *, actor: str) -> None:
        """Revoke a token and end its sessions."""
        self._writer.run(lambda transaction: _revoke(transaction, [token], actor))

    def revoke_all(self, annotator: int | None = None, *, role: Role = "annotator", actor: str) -> int:
        """Revoke all tokens of an annotator or of a role, and return how many there were."""

        def work(transaction: LogTransaction) -> int:
            valid = select(token.c.seq).where(~_REVOKED, token.c.role == role)
            if annotator is not None:
                valid = valid.where(token.c.annotator == annotator)
            found = list(transaction.connection.scalars(valid.order_by(token.c.seq)))
            _revoke(transaction, found, actor)
            return len(found)

        return self._writer.run(work)

    def holders(self) -> set[int]:
        """Return the annotators who have a valid token."""
        query = select(token.c.annotator).where(~_REVOKED, token.c.role == "annotator")
        return self._database.read(lambda connection: set(connection.scalars(query)))

    def valid_tokens(self, role: Role) -> list[tuple[int, int, str]]:
        """Return the tokens of a role that were not revoked: their row, when they were issued, and by whom."""
        issued = log.alias()
        query = select(token.c.seq, issued.c.at, issued.c.actor).join_from(token, issued, token.c.seq == issued.c.seq)
        query = query.where(~_REVOKED, token.c.role == role).order_by(token.c.seq)
        rows = self._database.read(lambda connection: connection.execute(query).fetchall())
        return [(seq, at, actor) for seq, at, actor in rows]

    def issued(self, role: Role) -> bool:
        """Return whether there is a valid token of this role."""
        query = select(token.c.seq).where(~_REVOKED, token.c.role == role).limit(1)
        return self._database.read(lambda connection: connection.scalar(query)) is not None

    def find_token(self, secret: str) -> Principal | None:
        """Return whose token this is, or None."""
        return self._find(_BY_TOKEN, {"hash": hash_token(secret)})

    def find_session(self, secret: str) -> Principal | None:
        """Return whose session this is, or None if it has expired or its token was revoked."""
        return self._find(_BY_SESSION, {"hash": hash_token(secret), "now": self._clock()})

    def open_session(self, secret: str, *, seconds: float) -> str:
        """Exchange a token for a session and return its secret, which a cookie holds."""
        new = new_token()

        def work(transaction: LogTransaction) -> str:
            found = transaction.connection.execute(_BY_TOKEN, {"hash": hash_token(secret)}).first()
            if found is None:
                raise UnknownTokenError("This token does not exist or was revoked.")
            transaction.execute(delete(session).where(session.c.expires_at <= transaction.now))
            expires_at = transaction.now + round(seconds * 1e6)
            row = {
                "hash": hash_token(new),
                "token": found.seq,
                "opened_at": transaction.now,
                "expires_at": expires_at,
            }
            transaction.connection.execute(insert(session), row)
            return new

        return self._writer.run(work)

    def close_session(self, secret: str) -> None:
        """End a session."""
        closed = delete(session).where(session.c.hash == hash_token(secret))
        self._writer.run(lambda transaction: transaction.execute(closed))

    def throttle(self, key: str, *, times: int, seconds: float) -> float:
        """Count one request under `key` and return how long it has to wait.

        Parameters
        ----------
        key : str
            What is limited, for example an annotator or an IP address.
        times : int
            Requests allowed per period, and at once.
        seconds : float
            The length of the period.

        Returns
        -------
        float
            0 if the request is allowed. Otherwise the seconds until it would be; it was not counted then. All
            processes that share the database share the limit.
        """
        if times < 1 or seconds <= 0:
            raise SettingError(f"A rate limit must allow at least one request, got {times} per {seconds} s.")
        interval, now = max(1, round(seconds * 1e6 / times)), self._clock()
        burst = interval * (times - 1)
        values = {"key": self._keys.hash_address(key), "now": now, "interval": interval, "burst": burst}
        values |= {"latest": now + 2 * round(seconds * 1e6)}

        def attempt(connection: Connection) -> float:
            if connection.execute(_TAKE_PERMIT, values).first() is not None:
                return 0.0
            free_at = connection.scalar(select(rate_limit.c.free_at).where(rate_limit.c.key_hash == values["key"]))
            return max(int(free_at or 0) - now - burst, 1) / 1e6

        return self._database.write_temporary(attempt)

    def delete_expired(self) -> None:
        """Delete expired sessions, rate limits and addresses. Once in a while is enough."""
        now = self._clock()

        def sweep(connection: Connection) -> None:
            connection.execute(delete(rate_limit).where(rate_limit.c.free_at <= now))
            connection.execute(delete(session).where(session.c.expires_at <= now))
            connection.execute(delete(visit).where(visit.c.expires_at <= now))

        self._database.write_temporary(sweep)

    def remember_address(self, annotator: int, address: str, *, seconds: float) -> None:
        """Store the hash of the address from which an annotator joined, for a limited time."""
        row = {
            "annotator": annotator,
            "address": self._keys.hash_address(f"visit {address}"),
            "expires_at": self._clock() + round(seconds * 1e6),
        }
        self._database.write_temporary(lambda connection: connection.execute(insert(visit), row))

    def shared_addresses(self) -> dict[bytes, list[int]]:
        """Return the annotators who joined from each address that is still stored, by the hash of the address."""
        query = select(visit.c.address, visit.c.annotator).order_by(visit.c.annotator)
        found: dict[bytes, list[int]] = {}
        for address, id_ in self._database.read(
            lambda connection: connection.execute(query.where(visit.c.expires_at > self._clock())).fetchall()
        ):
            found.setdefault(bytes(address), []).append(id_)
        return found

    def _find(self, query: Select[Any], values: dict[str, Any]) -> Principal | None:
        row = self._database.read(lambda connection: connection.execute(query, values).first())
        return None if row is None else Principal(*row)


def _issue(
    transaction: LogTransaction, role: Role, annotators: Sequence[int | None], tokens: list[str], actor: str
) -> None:
    numbers = transaction.append_all("token_issued", actor, ((holder, {"role": role}) for holder in annotators))
    rows = [
        {"seq": seq, "hash": hash_token(new), "role": role, "annotator": holder}
        for seq, new, holder in zip(numbers, tokens, annotators, strict=True)
    ]
    if rows:
        transaction.connection.execute(insert(token), rows)


def _revoke(transaction: LogTransaction, tokens: list[int], actor: str) -> None:
    known = set(transaction.connection.scalars(select(token.c.seq).where(token.c.seq.in_(tokens[:1]))))
    if tokens and not known:
        raise UnknownNameError("token", tokens[0], [])
    transaction.append_all("token_revoked", actor, ((number, {}) for number in tokens))
    if tokens:
        transaction.connection.execute(
            delete(session).where(session.c.token == bindparam("revoked")), [{"revoked": number} for number in tokens]
        )
