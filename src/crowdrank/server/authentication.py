"""Authenticate requests by session cookie or bearer token, check CSRF tokens, and limit request rates."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from crowdrank.server.errors import RequestError, too_many_requests
from crowdrank.server.projection import Projection
from crowdrank.storage import AccountRole, AccountSession, Collection, Principal, UnknownTokenError
from crowdrank.storage.access import Access

ANNOTATOR_COOKIE, ADMIN_COOKIE, FORM_COOKIE, DEVICE_COOKIE = "annotator", "admin", "form", "device"
"""Kinds of cookies. Their names also have the id of the collection, see `Authenticator.cookie_name`."""
SESSION_SECONDS = 30 * 86_400
ADMIN_SECONDS = 7 * 86_400
DEVICE_SECONDS = 365 * 86_400
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_CACHE_SECONDS = 2.0
"""How long a session is not looked up again, unless the log shows a revocation."""
_MAX_CACHED = 10_000
_MAX_SECRET_LENGTH = 200
"""Our secrets are shorter. Longer ones are rejected without hashing them."""
_CHALLENGE = {"WWW-Authenticate": "Bearer"}
_RIGHTS: dict[AccountRole, int] = {"viewer": 0, "editor": 1, "owner": 2}


class RateLimit(NamedTuple):
    """A limit of `times` requests per `seconds`.

    A process takes `block` permits from the database at once, so that few requests wait for it.
    """

    times: int
    seconds: float
    block: int = 1


ANNOTATOR_LIMIT = RateLimit(600, 60, 20)
ADMIN_LIMIT = RateLimit(1200, 60, 20)
ADDRESS_LIMIT = RateLimit(60_000, 60, 200)
"""Requests from one IP address, which a whole school may share."""
FAILED_LOGIN_LIMIT = RateLimit(30, 60)
"""Invalid tokens presented from one IP address."""
JOIN_LIMIT = RateLimit(120, 60)
"""Participants who join with the public link from one IP address. The settings have a limit per hour as well."""


class RateLimiter:
    """Rate limits that all processes of a server share through the database."""

    def __init__(self, access: Access, clock: Callable[[], float] = time.monotonic) -> None:
        self._access, self._clock = access, clock
        self._permits: dict[str, tuple[int, float]] = {}
        self._blocked_until: dict[str, float] = {}
        self._lock = threading.Lock()

    def take(self, key: str, limit: RateLimit) -> None:
        """Count one request; raise RequestError (429) if there were too many."""
        if self._take_local(key):
            return
        wait = self._access.throttle(key, times=max(1, limit.times // limit.block), seconds=limit.seconds)
        if wait > 0:
            self._store(self._blocked_until, key, self._clock() + wait)
            raise too_many_requests(wait)
        if limit.block > 1:
            self._store(self._permits, key, (limit.block - 1, self._clock() + limit.seconds))

    def check(self, key: str) -> None:
        """Raise RequestError (429) if `key` is blocked at the moment. Counts nothing and reads no database."""
        wait = self._blocked_until.get(key, 0.0) - self._clock()
        if wait > 0:
            raise too_many_requests(wait)

    def _take_local(self, key: str) -> bool:
        with self._lock:
            left, until = self._permits.get(key, (0, 0.0))
            if left < 1 or until < self._clock():
                self._permits.pop(key, None)
                return False
            self._permits[key] = (left - 1, until)
            return True

    def _store(self, table: dict[str, Any], key: str, value: object) -> None:
        with self._lock:
            if len(table) >= _MAX_CACHED:
                table.clear()
            table[key] = value


class Session(NamedTuple):
    """An authenticated request.

    Parameters
    ----------
    principal : Principal
        Who it is.
    csrf : str
        The token that their forms must contain; empty for bearer tokens, which need none.
    account : AccountSession, optional
        The session of an organiser who signed in to an account.
    secret : str, default ""
        The secret of the session; empty for bearer tokens.
    of_server : bool, default False
        Whether it is a session of the whole server, which has several studies.
    """

    principal: Principal
    csrf: str
    account: AccountSession | None = None
    secret: str = ""
    of_server: bool = False

    @property
    def role(self) -> AccountRole:
        """What an organiser may do. The admin link gives all rights."""
        return "owner" if self.account is None else self.account.role

    @property
    def actor(self) -> str:
        """The name under which the log records what an organiser does."""
        if self.account is not None:
            return f"organiser {self.account.name}"
        return f"{'server ' if self.of_server else ''}admin {self.principal.token}"


class Authenticator:
    """Finds out who sent a request, and slows down clients that guess tokens."""

    def __init__(
        self,
        collection: Collection,
        limiter: RateLimiter,
        projection: Projection,
        *,
        public_url: str | None = None,
        trusted_proxies: int = 0,
    ) -> None:
        self._access, self._limiter, self._projection = collection.access, limiter, projection
        self._accounts = collection.accounts
        self.parent: Authenticator | None = None  # of the organisers of a server with several studies
        self._cookie_suffix = collection.id[:8]
        self._public_url, self._trusted_proxies = public_url, trusted_proxies
        self._cache: dict[tuple[str, str], tuple[float, int, Principal | AccountSession]] = {}

    def client_address(self, request: Request) -> str:
        """Return the IP address of the client, from X-Forwarded-For only if a trusted proxy set it.

        For IPv6 it is the network of 64 bits, all of which a single client has at its disposal.
        """
        peer = request.client.host if request.client else "unknown"
        if not self._trusted_proxies:
            return _network(peer)
        forwarded = [part.strip() for line in request.headers.getlist("x-forwarded-for") for part in line.split(",")]
        claimed = forwarded[-self._trusted_proxies] if len(forwarded) >= self._trusted_proxies else peer
        try:
            return _network(str(ipaddress.ip_address(claimed)))
        except ValueError:
            return _network(peer)

    def annotator(self, request: Request, form_token: str | None = None, *, caught_up: bool = False) -> Session:
        """Return the session of an annotator; raise RequestError (401) for anyone else.

        `form_token` is the CSRF token of a submitted form. `caught_up` says that the log was just read.
        """
        if not caught_up:
            self._projection.catch_up()  # another process may have revoked the token
        session = self._authenticate(request, ANNOTATOR_COOKIE, "annotator", form_token)
        if session is None:
            raise RequestError(401, "Open your personal link, or send its token as a bearer token.", headers=_CHALLENGE)
        self._limiter.take(f"annotator {session.principal.annotator}", ANNOTATOR_LIMIT)
        return session

    def annotator_or_none(self, request: Request) -> Session | None:
        """Return the session of an annotator, or None. Only for requests that change nothing."""
        self._projection.catch_up()
        return self._authenticate(request, ANNOTATOR_COOKIE, "annotator")

    def admin(self, request: Request, form_token: str | None = None, *, needs: AccountRole | None = None) -> Session:
        """Return the session of an organiser; raise RequestError (401, or 403 if their role does not suffice).

        `needs` is the role that the request needs: by default a viewer's to read, and an editor's to change something.
        """
        self._projection.catch_up()
        session = self._authenticate(request, ADMIN_COOKIE, "admin", form_token)
        if session is None:
            raise RequestError(401, "Admins only: open the admin link, or send its token.", headers=_CHALLENGE)
        needed = needs or ("viewer" if request.method in _SAFE_METHODS else "editor")
        if _RIGHTS[session.role] < _RIGHTS[needed]:
            raise RequestError(403, f"This needs the role {needed}, and yours is {session.role}.", code="role")
        self._limiter.take(f"admin {session.principal.token}", ADMIN_LIMIT)
        request.state.role = session.role
        return session

    def is_admin(self, request: Request) -> bool:
        """Return whether an admin sent a request. Does not check CSRF tokens, so it allows nothing by itself."""
        try:
            session = self._authenticate(request, ADMIN_COOKIE, "admin", is_safe=True)
            return session is not None and session.role != "viewer"
        except RequestError:
            return False

    def cookie_name(self, kind: str) -> str:
        """Return the name of a cookie. Browsers share cookies between ports, so every collection has its own names."""
        return f"crowdrank_{kind}_{self._cookie_suffix}"

    def cookie(self, request: Request, kind: str) -> str:
        """Return the value of a cookie; empty if there is none."""
        return request.cookies.get(self.cookie_name(kind), "")

    def admin_or_none(self, request: Request) -> Session | None:
        """Return the session of an admin, or None. Only for requests that change nothing."""
        self._projection.catch_up()
        session = self._authenticate(request, ADMIN_COOKIE, "admin")
        request.state.role = None if session is None else session.role
        return session

    def exchange(self, request: Request, token: str, role: str) -> str:
        """Exchange the token of a link for a session, whose secret goes into a cookie."""
        if self._find_token(request, token, role)[0] is not None:
            seconds = ADMIN_SECONDS if role == "admin" else SESSION_SECONDS
            try:
                return self._access.open_session(token, seconds=seconds)
            except UnknownTokenError:  # revoked at this very moment
                pass
        raise RequestError(
            404, "This link is not valid. It may have been replaced: ask the person who sent it for a new one."
        )

    def check_form(self, request: Request, form_token: str | None, secret: str) -> None:
        """Raise RequestError (403) unless a request that changes something was sent by one of our pages."""
        self._check_origin(request)
        if not form_token or not hmac.compare_digest(form_token.encode(), csrf_token(secret).encode()):
            raise RequestError(403, "This form has expired. Reload the page and try again.", code="csrf")

    def close(self, session: Session) -> None:
        """End a session of this collection."""
        (self._access if session.account is None else self._accounts).close_session(session.secret)
        self.forget(session.secret)

    def forget(self, session: str) -> None:
        """Drop a closed session from the cache."""
        for kind in ("session", "account"):
            self._cache.pop((kind, session), None)

    def set_cookie(self, request: Request, response: Response, kind: str, value: str, seconds: int | None) -> None:
        is_https = (self._public_url or str(request.url)).startswith("https:")
        name = self.cookie_name(kind)
        response.set_cookie(name, value, max_age=seconds, httponly=True, samesite="lax", secure=is_https, path="/")

    def _authenticate(
        self, request: Request, cookie: str, role: str, form_token: str | None = None, *, is_safe: bool = False
    ) -> Session | None:
        self._limiter.take(f"address {self.client_address(request)}", ADDRESS_LIMIT)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            bearer, of_server = self._find_token(request, token.strip())
            if bearer is None:
                raise RequestError(401, "This token does not exist or was revoked.", headers=_CHALLENGE)
            return Session(bearer, "", of_server=of_server) if bearer.role == role else None
        secret, holder, of_server = self._find_holder(request, cookie)
        account = holder if isinstance(holder, AccountSession) else None
        principal = holder if account is None else Principal("admin", None, account.account)
        if not isinstance(principal, Principal) or principal.role != role:
            return None
        if request.method not in _SAFE_METHODS and not is_safe:
            self.check_form(request, form_token or request.headers.get("x-csrf-token"), secret)
        return Session(principal, csrf_token(secret), account, secret, of_server)

    def _find_holder(self, request: Request, cookie: str) -> tuple[str, Principal | AccountSession | None, bool]:
        """Return the secret in a cookie, whose session it is, and whether it is one of the whole server."""
        secret = self.cookie(request, cookie)
        holder = self._find_cached("session", secret, self._access.find_session)
        if holder is None and cookie == ADMIN_COOKIE:
            holder = self._find_cached("account", secret, self._accounts.find_session)
            if holder is None and self.parent is not None:
                self.parent._projection.catch_up()
                return (*self.parent._find_holder(request, cookie)[:2], True)
        return secret, holder, False

    def _find_token(self, request: Request, token: str, role: str | None = None) -> tuple[Principal | None, bool]:
        """Look up a token, and whether it is one of the whole server.

        Addresses that sent many invalid ones have to wait, but a valid token is never refused.

        Tokens have 128 random bits, so the limit does not have to prevent guessing; it bounds the effort of refusing.
        """
        key = f"attempts {self.client_address(request)}"
        found = self._find_cached("bearer", token, self._access.find_token)
        of_server = found is None and self.parent is not None and role is None
        if of_server and self.parent is not None:
            self.parent._projection.catch_up()
            found = self.parent._find_cached("bearer", token, self.parent._access.find_token)
        if not isinstance(found, Principal) or (role is not None and found.role != role):
            self._limiter.check(key)
            self._limiter.take(key, FAILED_LOGIN_LIMIT)
            return None, False
        return found, of_server

    def _find_cached(
        self, kind: str, secret: str, find: Callable[[str], Principal | AccountSession | None]
    ) -> Principal | AccountSession | None:
        if not 0 < len(secret) <= _MAX_SECRET_LENGTH:
            return None
        now, revocation = time.monotonic(), self._projection.last_revocation
        until, cached_at, principal = self._cache.get((kind, secret), (0.0, 0, None))
        if principal is not None and until > now and cached_at == revocation:
            return principal
        found = find(secret)
        if found is None:
            self._cache.pop((kind, secret), None)
        else:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[kind, secret] = (now + _CACHE_SECONDS, revocation, found)
        return found

    def _check_origin(self, request: Request) -> None:
        origin = request.headers.get("origin")
        is_foreign = origin is not None and not self._is_own_origin(origin, request)
        if is_foreign or request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise RequestError(403, "This request came from another site.", code="csrf")

    def _is_own_origin(self, origin: str, request: Request) -> bool:
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        if self._public_url is not None:
            own = urlsplit(self._public_url)
            return (parts.scheme, parts.netloc) == (own.scheme, own.netloc)
        return bool(parts.netloc) and parts.netloc == request.headers.get("host")


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if parsed.version == 4 else str(ipaddress.ip_network((parsed, 64), strict=False))


def csrf_token(secret: str) -> str:
    """Derive the CSRF token of a session from its secret, so that nothing needs to be stored."""
    return hashlib.sha256(b"crowdrank form\0" + secret.encode("utf-8", "surrogatepass")).hexdigest()[:32]
