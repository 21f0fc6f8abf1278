"""Check values before they are stored, so that both databases accept the same ones; create and hash tokens."""

from __future__ import annotations

import hashlib
import secrets

from crowdrank.errors import DataError
from crowdrank.storage.schema import MAX_NAME_LENGTH


def check_text(value: object, what: str) -> str:
    """Return `value` if it is text without NUL and without unpaired surrogates."""
    if not isinstance(value, str):
        raise DataError(f"{what} must be text, got {type(value).__name__}.")
    if "\x00" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise DataError(f"{what} contains a character that cannot be stored (NUL or an unpaired surrogate): remove it.")
    return value


def check_name(value: object, what: str, *, may_be_empty: bool = False) -> str:
    """Return `value` if it is text short enough for an index."""
    text = check_text(value, what)
    if not text and not may_be_empty:
        raise DataError(f"{what} must not be empty.")
    if len(text) > MAX_NAME_LENGTH:
        raise DataError(f"{what} must have at most {MAX_NAME_LENGTH} characters, got {len(text)}: {text[:30]!r} …")
    return text


def check_integer(value: object, what: str) -> int:
    """Return `value` if it is an integer that fits into 64 bits."""
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise DataError(f"{what} must be a whole number of at most 64 bits, got {value!r}.")
    return value


def new_token() -> str:
    """Return 128 random bits as 22 characters that are safe in a URL."""
    return secrets.token_urlsafe(16)


def hash_token(token: str) -> bytes:
    """Return the hash under which a token is stored. Tokens have 128 random bits, so a fast hash is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
