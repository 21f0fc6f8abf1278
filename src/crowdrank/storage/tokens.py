"""Secrets: made here, given away once, and only their hash kept."""

from __future__ import annotations

import hashlib
import secrets


def new_token() -> str:
    """128 bits that nobody can guess, as 22 signs that need no quoting in an address."""
    return secrets.token_urlsafe(16)


def hashed(token: str) -> bytes:
    """What is stored of it. A guess at 128 bits is hopeless at any speed, so a fast hash will do."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
