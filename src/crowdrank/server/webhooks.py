"""Send webhooks: signed, in the order of the log, and repeated until they are accepted.

Every event is sent at least once. Its `id` is the number of its row, by which receivers recognise repetitions. The log
also records how far events were sent, so that a restart continues there.
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

from crowdrank.server.projection import Projection
from crowdrank.server.settings import Webhook
from crowdrank.storage import Batch, Collection, Event
from crowdrank.storage.judgments import OUTCOME_CODES

Json = dict[str, Any]
Send = Callable[[Webhook, bytes, dict[str, str]], int]

MILESTONES = (1, 10, 25, 50, 100, 250, 500, 1000)
"""Numbers of votes that are reported; after the last one, every further thousand."""
_CURSOR = "webhooks sent"
_TURN_SECONDS = 30.0
"""How long one process sends webhooks before another may take over."""
_BATCH_SIZE = 200
_ATTEMPTS = 4
_OUTCOMES = {code: name for name, code in OUTCOME_CODES.items()}
_logger = logging.getLogger("crowdrank.server")


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the HMAC-SHA256 of timestamp and body, which receivers compare with the header."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


class WebhookSender:
    """Sends events in the order of the log, from one process at a time.

    Attributes
    ----------
    retry_pause : float
        Seconds before the first retry. Every further retry waits twice as long.
    """

    def __init__(self, collection: Collection, projection: Projection, send: Send | None = None) -> None:
        self._collection, self._projection = collection, projection
        self._send = send or post
        self._cursor: int | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.retry_pause = 1.0

    def start(self, every: float = 1.0) -> None:
        self._thread = threading.Thread(target=self._run, args=(every,), name="webhooks", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def lag(self) -> int:
        """Return how many rows of the log were not processed yet."""
        return 0 if not self._projection.settings.webhooks else self._projection.seq - (self._cursor or 0)

    def _run(self, every: float) -> None:
        while not self._stopping.wait(every):
            try:
                self._projection.catch_up()
                if self._projection.settings.webhooks and self._is_our_turn():
                    self.send_new(until=time.monotonic() + _TURN_SECONDS / 2)
            except Exception as error:  # tried again in the next round
                _logger.error("sending webhooks failed", exc_info=error)

    def _is_our_turn(self) -> bool:
        return self._collection.access.throttle("webhooks", times=1, seconds=_TURN_SECONDS) == 0

    def send_new(self, until: float | None = None) -> int:
        """Send new events and return how many were accepted. Stops at the first event that is not accepted."""
        cursor = self._read_cursor()
        sent = 0
        while until is None or time.monotonic() < until:
            batch = self._collection.log.after(cursor, _BATCH_SIZE)
            if batch.last == cursor:
                break
            for event in self._events(batch):
                if not any(event["event"] in hook.events for hook in self._projection.settings.webhooks):
                    continue
                if self._stopping.is_set() or not self._send_event(event):
                    self._store_cursor(event["id"] - 1)
                    return sent
                sent += 1
            cursor = batch.last
            self._store_cursor(cursor, write=bool(len(batch.votes)))
        return sent

    def _read_cursor(self) -> int:
        """Return the last row whose events were sent, as the log says."""
        stored = [int(event.detail["seq"]) for event in self._collection.log.events() if _is_cursor(event)]
        self._cursor = max([self._cursor or 0, *stored])
        return self._cursor

    def _store_cursor(self, cursor: int, write: bool = True) -> None:
        if cursor > (self._cursor or 0):
            self._cursor = cursor
            if write:
                self._collection.log.note(_CURSOR, actor="server", detail={"seq": cursor})

    def _send_event(self, event: Json) -> bool:
        body = json.dumps(event, sort_keys=True).encode()
        hooks = [hook for hook in self._projection.settings.webhooks if event["event"] in hook.events]
        accepted = [self._deliver(hook, body) for hook in hooks]  # all of them, even if one fails
        return all(accepted)

    def _deliver(self, hook: Webhook, body: bytes) -> bool:
        for attempt in range(_ATTEMPTS):
            timestamp = str(int(time.time()))
            headers = {
                "Content-Type": "application/json",
                "User-Agent": "crowdrank",
                "X-Crowdrank-Timestamp": timestamp,
                "X-Crowdrank-Signature": f"sha256={signature(hook.secret, timestamp, body)}",
            }
            if 200 <= self._send(hook, body, headers) < 300:
                return True
            if attempt + 1 < _ATTEMPTS and self._stopping.wait(self.retry_pause * 2**attempt):
                return False
        _logger.warning("webhook not accepted", extra={"webhook": hook.url})
        return False

    def _events(self, batch: Batch) -> Iterator[Json]:
        projection, votes = self._projection.catch_up(), batch.votes
        rows: list[Json] = []
        for seq, at, annotator, left, right, code in zip(
            *(c.tolist() for c in (votes.seq, votes.at, votes.annotator, votes.left, votes.right, votes.outcome)),
            strict=True,
        ):
            outcome = _OUTCOMES[code]
            labels = {"left": projection.items[left].label, "right": projection.items[right].label}
            index = projection.vote_index(seq)
            rows.append(
                {
                    "id": seq,
                    "event": "vote",
                    "at": at // 1000,
                    "annotator": projection.annotators[annotator].name,
                    **labels,
                    "winner": labels.get(outcome, outcome),
                    "query": projection.items[left].query,
                    "policy": projection.vote_policies[index],
                }
            )
            if (count := index + 1) in MILESTONES or count % 1000 == 0:
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
    """Send one event and return the HTTP status; 0 if there was no response. Redirects are not followed."""
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
