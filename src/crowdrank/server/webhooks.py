"""Events told to others: signed, in order, again until they are taken. How far they were told is in the log.

Each is sent at least once; `id` is the number of its row, by which a receiver knows what it had before.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

from crowdrank.server.boards import Boards
from crowdrank.server.projection import Live
from crowdrank.server.settings import Webhook
from crowdrank.storage import Batch, Collection, Event
from crowdrank.storage.batches import CODES

Json = dict[str, Any]
Send = Callable[[Webhook, bytes, dict[str, str]], int]

MILESTONES = (1, 10, 25, 50, 100, 250, 500, 1000)
"""Votes that are told of; beyond, every further thousand."""
_CURSOR = "webhooks told"
_TURN = 30.0
"""Seconds for which one process alone tells."""
_AT_ONCE = 200
_TRIES = 4
_OUTCOMES = {code: name for name, code in CODES.items()}
_logger = logging.getLogger("crowdrank.server")


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """What a receiver compares with: HMAC-SHA256 over the time and the body."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


class Webhooks:
    """Tells events in the order of the log; one process at a time does."""

    def __init__(self, collection: Collection, live: Live, boards: Boards, send: Send | None = None) -> None:
        self._collection, self._live, self._boards = collection, live, boards
        self._send = send or post
        self._cursor: int | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.pause = 1.0
        """Seconds before the first retry; each further one waits twice as long."""

    def start(self, every: float = 1.0) -> None:
        self._thread = threading.Thread(target=self._run, args=(every,), name="webhooks", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def lag(self) -> int:
        return 0 if not self._live.settings.webhooks else self._live.seq - (self._cursor or 0)

    def _run(self, every: float) -> None:
        while not self._stopping.wait(every):
            try:
                self._live.catch_up()
                if self._live.settings.webhooks and self._is_our_turn():
                    self.tell(until=time.monotonic() + _TURN / 2)
            except Exception as error:  # the next round tries again
                _logger.error("webhooks", exc_info=error)

    def _is_our_turn(self) -> bool:
        return self._collection.access.wait("webhooks", times=1, seconds=_TURN) == 0

    def tell(self, until: float | None = None) -> int:
        """Tell what is new; gives how many events were taken. Stops at the first that nobody takes, to go on there."""
        cursor = self._begin()
        told = 0
        while until is None or time.monotonic() < until:
            batch = self._collection.log.after(cursor, _AT_ONCE)
            if batch.last == cursor:
                break
            for event in self._events(batch):
                if not any(event["event"] in hook.events for hook in self._live.settings.webhooks):
                    continue
                if self._stopping.is_set() or not self._tell(event):
                    self._keep(event["id"] - 1)
                    return told
                told += 1
            cursor = batch.last
            self._keep(cursor, only_if=bool(len(batch.votes)))
        return told

    def _begin(self) -> int:
        """Where it stopped last: rows of the log say so."""
        told = [event.detail["seq"] for event in self._collection.log.events() if _is_cursor(event)]
        self._cursor = max([self._cursor or 0, *(int(one) for one in told)])
        return self._cursor

    def _keep(self, cursor: int, only_if: bool = True) -> None:
        if cursor > (self._cursor or 0):
            self._cursor = cursor
            if only_if:
                self._collection.log.note(_CURSOR, actor="server", detail={"seq": cursor})

    def _tell(self, event: Json) -> bool:
        body = json.dumps(event, sort_keys=True).encode()
        taken = [self._deliver(hook, body) for hook in self._live.settings.webhooks if event["event"] in hook.events]
        return all(taken)

    def _deliver(self, hook: Webhook, body: bytes) -> bool:
        for attempt in range(_TRIES):
            timestamp = str(int(time.time()))
            headers = {
                "Content-Type": "application/json",
                "User-Agent": "crowdrank",
                "X-Crowdrank-Timestamp": timestamp,
                "X-Crowdrank-Signature": f"sha256={signature(hook.secret, timestamp, body)}",
            }
            if 200 <= self._send(hook, body, headers) < 300:
                return True
            if attempt + 1 < _TRIES and self._stopping.wait(self.pause * 2**attempt):
                return False
        _logger.warning("webhook not taken", extra={"webhook": hook.url})
        return False

    def _events(self, batch: Batch) -> Iterator[Json]:
        live, votes = self._live.catch_up(), batch.votes
        rows: list[Json] = []
        for seq, at, who, left, right, outcome in zip(
            *(c.tolist() for c in (votes.seq, votes.at, votes.annotator, votes.left, votes.right, votes.outcome)),
            strict=True,
        ):
            said = _OUTCOMES[outcome]
            names = {"left": live.items[left].label, "right": live.items[right].label}
            place = live.place_of(seq)
            rows.append(
                {
                    "id": seq,
                    "event": "vote",
                    "at": at // 1000,
                    "annotator": live.people[who].name,
                    **names,
                    "winner": names.get(said, said),
                    "query": live.items[left].query,
                    "policy": live.policies[place],
                }
            )
            if (count := place + 1) in MILESTONES or count % 1000 == 0:
                rows.append({"id": seq, "event": "milestone", "at": at // 1000, "kind": "votes", "votes": count})
        rows += [
            {"id": event.seq, "event": "milestone", "at": event.at // 1000, "kind": event.kind}
            for event in batch.events
            if event.kind in ("closed", "paused", "resumed")
        ]
        yield from sorted(rows, key=lambda row: int(row["id"]))


def _is_cursor(event: Event) -> bool:
    return event.kind == "noted" and event.detail.get("text") == _CURSOR


def post(hook: Webhook, body: bytes, headers: dict[str, str]) -> int:
    """The status that came back; 0 where nothing did. Redirections are not followed."""
    request = urllib.request.Request(hook.url, body, headers, method="POST")
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=5) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return int(error.code)
    except (OSError, ValueError):
        return 0


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None
