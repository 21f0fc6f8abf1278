"""The secret key of a collection, which is not in its database.

The key makes the tokens of open questions, hashes IP addresses and encrypts the secrets of webhooks. Whoever reads the
database, or a backup of it, cannot recover them without the key. It is the environment variable CROWDRANK_KEY, or a
file beside the SQLite database. For PostgreSQL without CROWDRANK_KEY it is stored in the database.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path

from sqlalchemy import Connection, select, text

from crowdrank.errors import SettingError
from crowdrank.storage.database import Database
from crowdrank.storage.schema import identity

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

    def hash_address(self, key: str) -> bytes:
        """Return a hash from which an IP address cannot be recovered by trying all of them."""
        return self._derive(b"address", key.encode("utf-8", "surrogatepass"))

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
