"""Sign organisers in: passwords by argon2, one-time codes (RFC 6238), and limits for those who guess."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from crowdrank.errors import DataError
from crowdrank.server.authentication import RateLimit, RateLimiter
from crowdrank.server.errors import RequestError
from crowdrank.storage import Account, Collection

if TYPE_CHECKING:
    from argon2 import PasswordHasher

MIN_PASSWORD_LENGTH, MAX_PASSWORD_LENGTH = 10, 200
SIGN_IN_LIMIT = RateLimit(10, 900)
"""Attempts to sign in to one account from one address, or from one browser that has signed in to it before."""
ACCOUNT_LIMIT = RateLimit(100, 3600)
"""Attempts to sign in to one account from everywhere, except from browsers that have signed in to it before."""
TOTP_SECONDS, TOTP_DIGITS = 30, 6
_TURN, _QUEUE = threading.BoundedSemaphore(1), threading.BoundedSemaphore(8)
"""A hash takes 32 MB and a twentieth of a second: one is computed at a time, and few requests wait for their turn."""
_REFUSED = "The name, the password or the code is wrong."


def totp_code(secret: bytes, step: int) -> str:
    """Return the one-time code of a time step, as RFC 6238 defines it with SHA-1 and six digits.

    Parameters
    ----------
    secret : bytes
        The key that the server shares with the app of the organiser.
    step : int
        The number of periods of 30 seconds since 1970.

    Examples
    --------
    >>> totp_code(b"12345678901234567890", 59 // 30)
    '287082'
    """
    digest = hmac.new(secret, struct.pack(">Q", step), hashlib.sha1).digest()
    start = digest[-1] & 15  # dynamic truncation, RFC 4226 section 5.3
    number = int.from_bytes(digest[start : start + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**TOTP_DIGITS:0{TOTP_DIGITS}}"


def matching_step(secret: bytes, code: str, now: float) -> int | None:
    """Return the time step of a code: the present one or one of its neighbours, because clocks differ; else None."""
    current = int(now // TOTP_SECONDS)
    given = "".join(code.split()).encode()
    matches = [step for step in (current - 1, current, current + 1) if _same(totp_code(secret, step).encode(), given)]
    return matches[-1] if matches else None


def _same(one: bytes, other: bytes) -> bool:
    return hmac.compare_digest(one, other)


def check_password(password: str, name: str) -> str:
    """Return a new password if it is long enough and not trivial; raise DataError otherwise."""
    if not MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH:
        raise DataError(f"The password must have {MIN_PASSWORD_LENGTH} to {MAX_PASSWORD_LENGTH} characters.")
    if len(set(password)) < 5 or password.casefold() == name:
        raise DataError("This password is easily guessed: choose another one, for example four random words.")
    return password


class AccountService:
    """Passwords, one-time codes and sign-in of the organisers of a collection.

    Parameters
    ----------
    collection : Collection
    limiter : RateLimiter
    clock : callable
        Returns seconds since 1970, for one-time codes.
    """

    def __init__(self, collection: Collection, limiter: RateLimiter, clock: Callable[[], float] = time.time) -> None:
        self._collection, self._limiter, self._clock = collection, limiter, clock

    def sign_in(self, name: str, password: str, code: str, *, address: str, device: str = "") -> Account:
        """Return the account with this name and password; raise RequestError (401, or 429 after many attempts).

        Attempts are counted by account and address, so that nobody is locked out by what others at the same address
        do. A browser that has signed in before shows it by `device`, and is not locked out by anybody else.
        """
        account = self._collection.accounts.by_name(name)
        known = account is not None and self._is_device_of(device, account)
        if known:
            self._limiter.take(f"sign-in device {device}", SIGN_IN_LIMIT)
        else:
            self._limiter.take(f"sign-in {address} {name[:100].casefold()}", SIGN_IN_LIMIT)
            self._limiter.take(f"sign-in {name[:100].casefold()}", ACCOUNT_LIMIT)
        # The same work for names that do not exist, so that the time does not tell which ones do.
        stored = None if account is None else account.password
        right = self._verify(stored or _dummy_hash(), password) and stored is not None
        if not right or account is None or not self._accept_code(account, code):
            raise RequestError(401, _REFUSED, code="wrong_password")
        if stored is not None and _hasher().check_needs_rehash(stored):
            self._collection.accounts.rehash(account.id, self.hash(password))
        return account

    def accept_invitation(self, secret: str, password: str) -> Account:
        """Set the password of an invited organiser."""
        account = self._collection.accounts.by_invitation(secret)
        if account is None:
            raise RequestError(404, "This link was used already, or has expired: ask an owner for a new one.")
        return self._collection.accounts.accept(secret, self.hash(check_password(password, account.name)))

    def change_password(self, account: Account, old: str, new: str, *, keep: str) -> None:
        """Replace a password, and end all other sessions. `keep` is the secret of the session that stays."""
        self.confirm(account, old)
        hashed = self.hash(check_password(new, account.name))
        self._collection.accounts.set_password(account.id, hashed, actor=f"organiser {account.name}", keep=keep)

    def confirm(self, account: Account, password: str) -> None:
        """Raise RequestError (403) unless this is the password of the account."""
        self._limiter.take(f"confirm {account.id}", SIGN_IN_LIMIT)
        if account.password is None or not self._verify(account.password, password):
            raise RequestError(403, "The password is wrong.", code="wrong_password")

    def new_totp(self, account: Account) -> tuple[str, str, str]:
        """Return a new secret of one-time codes: as text, as the URI of a QR code, and sealed for the next request."""
        secret = base64.b32encode(secrets.token_bytes(20)).decode()
        label = quote(f"crowdrank:{account.name}")
        query = urlencode({"secret": secret, "issuer": "crowdrank"})
        return secret, f"otpauth://totp/{label}?{query}", self._collection.keys.seal(f"{account.id} {secret}")

    def set_up_totp(self, account: Account, sealed: str, code: str) -> None:
        """Ask for one-time codes from now on, if the organiser can show one."""
        opened = self._collection.keys.open(sealed) if sealed.startswith("sealed:") else None
        owner, _, secret = (opened or "").partition(" ")
        step = matching_step(base64.b32decode(secret), code, self._clock()) if owner == str(account.id) else None
        if step is None:
            raise RequestError(422, "The code is wrong: check the clock of your phone, and scan the QR code again.")
        actor = f"organiser {account.name}"
        stored = self._collection.keys.seal(secret)
        self._collection.accounts.set_totp(account.id, stored, actor=actor, step=step)

    def remove_totp(self, account: Account, password: str) -> None:
        self.confirm(account, password)
        self._collection.accounts.set_totp(account.id, None, actor=f"organiser {account.name}")

    def device_of(self, account: Account) -> str:
        """Return what a browser shows at the next sign-in to this account."""
        nonce = secrets.token_urlsafe(12)
        return f"{nonce}.{self._collection.keys.sign(f'device {account.id} {nonce}')}"

    def hash(self, password: str) -> str:
        with _turn():
            return _hasher().hash(password)

    def _verify(self, stored: str, password: str) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        with _turn(), suppress(VerificationError, InvalidHashError):
            return bool(_hasher().verify(stored, password[:MAX_PASSWORD_LENGTH]))
        return False

    def _accept_code(self, account: Account, code: str) -> bool:
        """Return whether a one-time code is right and was not used before, or whether none is needed."""
        if account.totp is None:
            return True
        secret = self._collection.keys.open(account.totp)
        if secret is None:
            raise RequestError(
                409, "The secret key of the collection was replaced: ask an owner for a link that sets a new password."
            )
        step = matching_step(base64.b32decode(secret), code, self._clock())
        return step is not None and self._collection.accounts.use_totp_step(account.id, step)

    def _is_device_of(self, device: str, account: Account) -> bool:
        nonce, _, signature = device.partition(".")
        return _same(signature.encode(), self._collection.keys.sign(f"device {account.id} {nonce}").encode())


@contextmanager
def _turn() -> Iterator[None]:
    """Wait for a turn to compute a hash; raise RequestError (429) if too many others wait."""
    if not _QUEUE.acquire(blocking=False):
        raise RequestError(429, "Too many people are signing in. Try again in a moment.", headers={"Retry-After": "1"})
    try:
        with _TURN:
            yield
    finally:
        _QUEUE.release()


@lru_cache(maxsize=1)
def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=3, memory_cost=32 * 1024, parallelism=1)


@lru_cache(maxsize=1)
def _dummy_hash() -> str:
    return str(_hasher().hash(secrets.token_urlsafe(16)))
