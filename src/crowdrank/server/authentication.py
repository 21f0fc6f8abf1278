"""Who is asking: by a cookie that a link was exchanged for, or by a bearer token; and that a form is our own."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import time
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from crowdrank.server.errors import Problem
from crowdrank.server.projection import Live
from crowdrank.server.rate_limits import ADDRESS, ADMIN, ANNOTATOR, ATTEMPTS, Limits
from crowdrank.storage import Collection, UnknownTokenError, Visitor

ANNOTATOR_COOKIE, ADMIN_COOKIE, FORM_COOKIE = "crowdrank", "crowdrank_admin", "crowdrank_form"
SESSION_SECONDS = 30 * 86_400
ADMIN_SECONDS = 7 * 86_400
_SAFE = ("GET", "HEAD", "OPTIONS")
_MOMENT = 2.0
"""Seconds for which a session is not looked up again, unless the log says that something was revoked."""
_MOST_KEPT = 10_000
_LONGEST = 200
"""Signs of a secret: ours are shorter, and what is longer need not be hashed."""


class Known(NamedTuple):
    """Someone who was let in."""

    visitor: Visitor
    csrf: str
    """What their forms must hold; "" for bearers, who need none."""


class Door:
    """Lets people in, and keeps count of those who try to guess."""

    def __init__(
        self,
        collection: Collection,
        limits: Limits,
        live: Live,
        *,
        public_url: str | None = None,
        trusted_proxies: int = 0,
    ) -> None:
        self._access, self._limits, self._live = collection.access, limits, live
        self._public, self._proxies = public_url, trusted_proxies
        self._kept: dict[tuple[str, str], tuple[float, int, Visitor]] = {}

    def address(self, request: Request) -> str:
        """Where a request comes from. What forwarders claim is believed only of as many as we were told to trust."""
        nearest = request.client.host if request.client else "unknown"
        if not self._proxies:
            return nearest
        said = [part.strip() for line in request.headers.getlist("x-forwarded-for") for part in line.split(",")]
        claimed = said[-self._proxies] if len(said) >= self._proxies else nearest
        try:
            return str(ipaddress.ip_address(claimed))
        except ValueError:
            return nearest

    def annotator(self, request: Request, form: str | None = None) -> Known:
        """Whoever may answer questions, `form` the token of a form they sent; raises a Problem for anyone else."""
        self._live.catch_up()  # whoever was shut out by another process is not let in by this one
        return self.annotator_in_turn(request, form)

    def annotator_in_turn(self, request: Request, form: str | None = None) -> Known:
        """The same where the log was just read."""
        known = self._known(request, ANNOTATOR_COOKIE, "annotator", form)
        if known is None:
            raise Problem(401, "Open the link that you were given, or send its token as a bearer token.", headers=_ASK)
        self._limits.take(f"annotator {known.visitor.annotator}", ANNOTATOR)
        return known

    def admin(self, request: Request, form: str | None = None) -> Known:
        """The organiser; raises a Problem for anyone else."""
        self._live.catch_up()
        known = self._known(request, ADMIN_COOKIE, "admin", form)
        if known is None:
            raise Problem(401, "This is for the organiser: open the admin link, or send its secret.", headers=_ASK)
        self._limits.take(f"admin {known.visitor.token}", ADMIN)
        return known

    def maybe_admin(self, request: Request) -> Known | None:
        """The organiser, if it is they who look; only for what is read."""
        self._live.catch_up()
        return self._known(request, ADMIN_COOKIE, "admin")

    def _known(self, request: Request, cookie: str, role: str, form: str | None = None) -> Known | None:
        self._limits.take(f"address {self.address(request)}", ADDRESS)
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            bearer = self._tried(request, secret.strip())
            return Known(bearer, "") if bearer.role == role else None
        session = request.cookies.get(cookie, "")
        visitor = self._remembered("session", session, self._access.visitor)
        if visitor is None or visitor.role != role:
            return None
        if request.method not in _SAFE:
            self.check_form(request, form or request.headers.get("x-csrf-token"), session)
        return Known(visitor, csrf(session))

    def _tried(self, request: Request, secret: str) -> Visitor:
        found = self._look_up(request, secret)
        if found is None:
            raise Problem(401, "Nobody was given this token, or it was revoked.", headers=_ASK)
        return found

    def _look_up(self, request: Request, secret: str, role: str | None = None) -> Visitor | None:
        """Whose token this is. Who presents many that are nobody's is not even told so for a while."""
        attempts = f"attempts {self.address(request)}"
        self._limits.check(attempts)
        found = self._remembered("bearer", secret, self._access.bearer)
        if found is None or (role is not None and found.role != role):
            self._limits.take(attempts, ATTEMPTS)
            return None
        return found

    def _remembered(self, kind: str, secret: str, look: Callable[[str], Visitor | None]) -> Visitor | None:
        """Whose it is; who was let in a moment ago still is, unless something was revoked since."""
        if not 0 < len(secret) <= _LONGEST:
            return None
        now, revocation = time.monotonic(), self._live.revocation
        until, since, visitor = self._kept.get((kind, secret), (0.0, 0, None))
        if visitor is not None and until > now and since == revocation:
            return visitor
        found = look(secret)
        if found is None:
            self._kept.pop((kind, secret), None)
        else:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[kind, secret] = (now + _MOMENT, revocation, found)
        return found

    def forget(self, session: str) -> None:
        """A session that was closed."""
        self._kept.pop(("session", session), None)

    def exchange(self, request: Request, secret: str, role: str) -> tuple[str, Visitor]:
        """A session for a token of this role."""
        visitor = self._look_up(request, secret, role)
        if visitor is not None:
            seconds = ADMIN_SECONDS if role == "admin" else SESSION_SECONDS
            try:
                return self._access.open_session(secret, seconds=seconds), visitor
            except UnknownTokenError:  # revoked this very moment
                pass
        raise Problem(404, "This link does not work: it may have been replaced by a newer one. Ask who sent it.")

    def check_form(self, request: Request, given: str | None, secret: str) -> None:
        """That a request which changes something was sent by a page of ours."""
        self._check_origin(request)
        if not given or not hmac.compare_digest(given.encode(), csrf(secret).encode()):
            raise Problem(403, "This form is out of date: load the page again.", code="csrf")

    def _check_origin(self, request: Request) -> None:
        origin = request.headers.get("origin")
        if origin is not None and not self._is_ours(origin, request):
            raise Problem(403, "This request came from another site.", code="csrf")
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Problem(403, "This request came from another site.", code="csrf")

    def _is_ours(self, origin: str, request: Request) -> bool:
        try:
            said = urlsplit(origin)
        except ValueError:
            return False
        if self._public is not None:
            ours = urlsplit(self._public)
            return (said.scheme, said.netloc) == (ours.scheme, ours.netloc)
        return bool(said.netloc) and said.netloc == request.headers.get("host")

    def secure(self, request: Request) -> bool:
        """Whether cookies must stay on encrypted connections."""
        return (self._public or str(request.url)).startswith("https:")

    def give_cookie(self, request: Request, response: Response, name: str, value: str, seconds: int | None) -> None:
        response.set_cookie(
            name, value, max_age=seconds, httponly=True, samesite="lax", secure=self.secure(request), path="/"
        )


def csrf(secret: str) -> str:
    """What a form must hold, told from the session it belongs to: nobody else can know it, and nothing is stored."""
    return hashlib.sha256(b"crowdrank form\0" + secret.encode("utf-8", "surrogatepass")).hexdigest()[:32]


_ASK = {"WWW-Authenticate": "Bearer"}
