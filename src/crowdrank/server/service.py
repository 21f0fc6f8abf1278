"""Everything that one process needs to serve one collection."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from starlette.requests import Request

from crowdrank.server.assignments import Answer, AssignmentService, JudgingRequest
from crowdrank.server.authentication import Authenticator, RateLimit, RateLimiter, Session
from crowdrank.server.boards import BoardPublisher
from crowdrank.server.middleware import RequestMetrics
from crowdrank.server.onboarding import check_ready
from crowdrank.server.privacy import apply_retention
from crowdrank.server.projection import Projection
from crowdrank.server.records import Annotator
from crowdrank.server.sign_in import AccountService
from crowdrank.server.webhooks import WebhookSender
from crowdrank.storage import AccountRole, Collection

# Backups on a schedule: copies of an SQLite collection in a folder, the oldest of which are deleted.

KEPT = 14
"""Backups that are kept."""


@dataclass(frozen=True, kw_only=True)
class BackupSchedule:
    """Where and how often a collection is copied.

    Parameters
    ----------
    folder : Path
        The folder of the copies. Several processes may share it.
    name : str
        What the names of the copies start with; their time follows.
    hours : float, default 24
        How many hours lie between two copies.
    """

    folder: Path
    name: str
    hours: float = 24.0

    def run_if_due(self, collection: Collection, now: float | None = None) -> Path | None:
        """Copy the collection if the last copy is old enough, and return the new file."""
        now = time.time() if now is None else now
        copies = self.copies()
        if copies and now - copies[-1].stat().st_mtime < 3600 * self.hours:
            return None
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self.folder / f"{self.name}-{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}.db"
        collection.backup(new)
        for old in self.copies()[:-KEPT]:
            old.unlink(missing_ok=True)
        return new

    def copies(self) -> list[Path]:
        """Return the copies, oldest first."""
        return sorted(self.folder.glob(f"{self.name}-????????T??????Z.db"))


NAVIGATION = (
    *(("/admin", "Overview"), ("/", "Board"), ("/admin/annotators", "Annotators"), ("/admin/items", "Items")),
    *(("/admin/links", "Links"), ("/admin/settings", "Settings"), ("/admin/privacy", "Privacy")),
    *(("/admin/audit", "Audit log"), ("/admin/account", "Account")),
)
"""The pages of organisers, by path."""
CLEANING_SECONDS = 600.0
_logger = logging.getLogger("crowdrank.server")
MAX_BATCH = 64
"""Requests that are handled together."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a server process, as opposed to the settings of a collection.

    Parameters
    ----------
    media : Path, optional
        The folder with the images of items.
    public_url : str, optional
        The URL that people use, if a proxy is in front of the server.
    prefix : str, default ""
        The path under which people reach the server, for example "/rank".
    trusted_proxies : int, default 0
        The number of proxies in front of the server whose X-Forwarded-For header is trusted.
    allow_internal_webhooks : bool, default False
        Whether webhooks may be sent to this machine and to the local network.
    backups : BackupSchedule, optional
        Where and how often to copy the collection; never by default. Only for SQLite.
    timeout : float, default 10
        How many seconds to retry while the database is busy or unreachable.
    durable : bool, default True
        If False, a vote survives a crash of the program, but not one of the machine.
    background : bool, default True
        Whether to send webhooks in the background. Tests turn this off.
    """

    media: Path | None = None
    public_url: str | None = None
    prefix: str = ""
    trusted_proxies: int = 0
    allow_internal_webhooks: bool = False
    backups: BackupSchedule | None = None
    timeout: float = 10.0
    durable: bool = True
    background: bool = True


@dataclass(eq=False)
class Service:
    """One collection, as this process serves it.

    Parameters
    ----------
    collection : Collection
    options : Options
    """

    collection: Collection
    options: Options
    projection: Projection = field(init=False)

    def __post_init__(self) -> None:
        self.projection = Projection(self.collection).catch_up()
        self.limiter = RateLimiter(self.collection.access)
        self.accounts = AccountService(self.collection, self.limiter)
        self.authenticator = Authenticator(
            self.collection,
            self.limiter,
            self.projection,
            public_url=self.options.public_url,
            trusted_proxies=self.options.trusted_proxies,
        )
        self.boards = BoardPublisher(self.collection, self.projection)
        self.assignments = AssignmentService(
            self.collection, self.projection, self.boards.is_decided, prefix=self.options.prefix
        )
        self.batcher = RequestBatcher(lambda requests: self.assignments.handle(requests))
        self.metrics = RequestMetrics()
        self.navigation: tuple[tuple[str, str], ...] = NAVIGATION
        self.is_overview = False
        self.home: str | None = None
        self.public_boards: tuple[object, dict[tuple[str, str], tuple[bytes, str]]] | None = None
        self._stopping = threading.Event()
        self._cleaner: threading.Thread | None = None
        self.webhooks = WebhookSender(
            self.collection, self.projection, allow_internal=self.options.allow_internal_webhooks
        )

    def start(self) -> None:
        compile_ahead()
        gc.collect()
        gc.freeze()  # objects loaded by now stay alive, so the garbage collector need not scan them while requests wait
        if self.options.background:
            self.webhooks.start()
            self._cleaner = threading.Thread(target=self._clean, name="cleaning", daemon=True)
            self._cleaner.start()

    def _clean(self) -> None:
        """Forget addresses, sessions and people whose time is over, and make backups when they are due."""
        while True:
            try:
                self.collection.access.delete_expired()
                self.collection.accounts.delete_expired()
                apply_retention(self.collection, time.time_ns() // 1000)
                if self.options.backups is not None:
                    self.options.backups.run_if_due(self.collection)
            except Exception as error:  # tried again in the next round
                _logger.error("cleaning up or the backup failed", exc_info=error)
            if self._stopping.wait(CLEANING_SECONDS):
                return

    def stop(self) -> None:
        self._stopping.set()
        if self._cleaner is not None:
            self._cleaner.join(timeout=5)
        self.batcher.stop()
        self.webhooks.stop()
        self.boards.stop()
        self.collection.close()

    def annotator(self, request: Request, form_token: str | None = None) -> tuple[Annotator, Session]:
        """Return the annotator who sent a request; raise RequestError for anyone else."""
        session = self.authenticator.annotator(request, form_token)
        return self.assignments.annotator(session.principal.annotator), session

    def judging_request(self, request: Request, answer: Answer | None = None) -> JudgingRequest:
        """Return a request for the batcher. It is authenticated there, after the log was read."""

        def authenticate() -> Annotator:
            session = self.authenticator.annotator(request, caught_up=True)
            annotator = self.assignments.annotator(session.principal.annotator)
            if session.secret:  # a browser; programs with a token need no consent and no practice
                check_ready(self.projection.settings, annotator)
            if answer is not None:
                self.limit_votes(annotator)
            return annotator

        return JudgingRequest(authenticate, answer)

    def limit_votes(self, annotator: Annotator) -> None:
        """Count a vote of someone who joined with the public link; raise RequestError (429) if there are too many."""
        most = self.projection.settings.joining.votes_per_minute
        if most is not None and annotator.metadata.get("joined") in ("open", "panel"):
            # Periods of ten seconds, so that few votes can be cast at once.
            limit = RateLimit(max(1, most // 6), 10.0 if most >= 6 else 60.0 / most, min(5, max(1, most // 12)))
            self.limiter.take(f"votes {annotator.id}", limit)

    def admin(self, request: Request, form_token: str | None = None, *, needs: AccountRole | None = None) -> str:
        """Return the name of the organiser for the log; raise RequestError for anyone without the role `needs`."""
        return self.authenticator.admin(request, form_token, needs=needs).actor


class RequestBatcher:
    """A thread that handles judging requests in batches: all that arrive while it is busy are handled together.

    With one thread per request, every request would wait for the disk and for the other threads. Batches store the
    votes of fifty annotators in one transaction.
    """

    def __init__(self, handle: Callable[[Sequence[JudgingRequest]], None]) -> None:
        self._handle = handle
        self._queue: deque[tuple[JudgingRequest, asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    async def submit(self, request: JudgingRequest) -> JudgingRequest:
        """Queue a request and return it once it was handled."""
        loop = asyncio.get_running_loop()
        handled = loop.create_future()
        with self._changed:
            self._queue.append((request, loop, handled))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="judging", daemon=True)
                self._thread.start()
            self._changed.notify()
        await handled
        return request

    def stop(self) -> None:
        """Handle the queued requests, then stop."""
        with self._changed:
            thread, self._stopping = self._thread, True
            self._changed.notify()
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._stopping)
                if not self._queue:
                    return
                batch = [self._queue.popleft() for _ in range(min(len(self._queue), MAX_BATCH))]
            self._handle_batch([request for request, _, _ in batch])
            for loop in {loop for _, loop, _ in batch}:
                with suppress(RuntimeError):  # the loop was closed, so nobody waits there any more
                    futures = [handled for _, its_loop, handled in batch if its_loop is loop]
                    loop.call_soon_threadsafe(_resolve, futures)

    def _handle_batch(self, requests: list[JudgingRequest]) -> None:
        try:
            self._handle(requests)
        except Exception as error:  # for example, the database is unreachable
            for request in requests:
                request.fail(error)


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():  # the client may have disconnected
            future.set_result(None)


def compile_ahead() -> None:
    """Compile the functions that choose a question, so that the first annotator does not wait for it."""
    from crowdrank.active.branch_and_bound import QueryBlocks
    from crowdrank.active.concurrent_choice import ConcurrentChoice
    from crowdrank.online import CrowdBT
    from crowdrank.online.moments import fantasize
    from crowdrank.server.records import BeliefProjection

    projection = BeliefProjection(CrowdBT())
    projection.add_labels([("", str(n)) for n in range(12)], ["k"])
    one = np.ones(1, np.int64)
    projection.append(0 * one, one, 0 * one, np.ones(1, np.int8), np.ones(1, bool))
    beliefs = projection.beliefs()
    columns = (beliefs.variance, beliefs.alpha, beliefs.beta)
    fantasize(np.array([[0, 1, 0]]), beliefs.mean, *(column.copy() for column in columns))
    pairs = np.array([[0], [1]])
    choice = ConcurrentChoice(
        QueryBlocks.of(beliefs.items.query), beliefs.mean, beliefs.variance, np.zeros(12, int), pairs
    )
    for floor in (1, 0):
        choice.choose(pairs, (2.0, 1.0), 0.5, floor, np.random.default_rng(0))
    choice.add(0, 1, (0.5, 0.5))


def service_of(request: Request) -> Service:
    """Return the service of the application that received a request."""
    service: Service = request.app.state.service
    return service
