"""Send webhooks: signed, in the order of the log, and repeated until they are accepted.

Every event is sent at least once. Its `id` is the number of its row, by which receivers recognise repetitions. The log
records for each webhook how far events were sent, so that a restart continues there, and so that a webhook that does
not respond neither delays the others nor makes them receive events twice.
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
from functools import partial
from typing import Any

from crowdrank.server.projection import Projection
from crowdrank.server.records import TaskVote
from crowdrank.server.settings import Webhook, is_internal
from crowdrank.storage import TASK_TYPES, Batch, Collection, Event
from crowdrank.storage.judgments import OUTCOME_CODES

Json = dict[str, Any]
Send = Callable[[Webhook, bytes, dict[str, str]], int]

MILESTONES = (1, 10, 25, 50, 100, 250, 500, 1000)
"""Numbers of votes that are reported; after the last one, every further thousand."""
_CURSOR = "webhooks sent"
_TURN_SECONDS = 30.0
"""How long one process sends to a webhook before another may take over."""
_SENDING_SECONDS = 15.0
"""How long a process starts to send further events in its turn."""
_LAST_ATTEMPT = 24.0
"""How long a process repeats an event in its turn. The timeout of one request must fit into the rest."""
_BATCH_SIZE = 200
_ATTEMPTS = 4
_OUTCOMES = {code: name for name, code in OUTCOME_CODES.items()}
_logger = logging.getLogger("crowdrank.server")


def _judged(projection: Projection, vote: TaskVote) -> Json:
    """Return what a vote on another task than a pair says: the items with their ranks, or the grade of one."""
    items = [projection.items[id_].label for id_ in vote.question.items]
    if vote.answer is None:
        return {"task": vote.question.task, "items": items, "skipped": True}
    places = TASK_TYPES[vote.question.task].places(vote.answer["value"], vote.question)
    name = "grade" if vote.question.task == "rating" else "rank"
    judged = [{"item": projection.items[id_].label, name: place} for id_, place in places]
    return {"task": vote.question.task, "items": items, "judged": judged}


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the HMAC-SHA256 of timestamp and body, which receivers compare with the header."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


class WebhookSender:
    """Sends events in the order of the log, to every webhook from one process at a time.

    Attributes
    ----------
    retry_pause : float
        Seconds before the first retry. Every further retry waits twice as long.
    """

    def __init__(
        self,
        collection: Collection,
        projection: Projection,
        send: Send | None = None,
        *,
        allow_internal: bool = False,
    ) -> None:
        self._collection, self._projection = collection, projection
        self._send = send or partial(post, allow_internal=allow_internal)
        self._cursors: dict[str, int] = {}
        self._sending: dict[str, threading.Thread] = {}
        # Accepted events after the cursor: two events may have the same number, and one of them may fail.
        self._accepted: set[tuple[str, int, str]] = set()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.retry_pause = 1.0

    def start(self, every: float = 1.0) -> None:
        self._thread = threading.Thread(target=self._run, args=(every,), name="webhooks", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in (self._thread, *list(self._sending.values())):
            if thread is not None:
                thread.join(timeout=5)

    def lag(self) -> int:
        """Return how many rows of the log were not processed yet, by the webhook that is furthest behind."""
        hooks = self._projection.settings.webhooks
        return self._projection.seq - min(self._cursors.get(hook.url, 0) for hook in hooks) if hooks else 0

    def _run(self, every: float) -> None:
        while not self._stopping.wait(every):
            try:
                self._start_sending()
            except Exception as error:  # tried again in the next round
                _logger.error("sending webhooks failed", exc_info=error)

    def _start_sending(self) -> None:
        """Send to every webhook in a thread of its own, so that none waits for another."""
        for hook in self._projection.catch_up().settings.webhooks:
            running = self._sending.get(hook.url)
            if (running is None or not running.is_alive()) and self._is_our_turn(hook):
                thread = threading.Thread(target=self._send_in_turn, args=(hook,), name="webhook", daemon=True)
                self._sending[hook.url] = thread
                thread.start()

    def _send_in_turn(self, hook: Webhook) -> None:
        try:
            self.send_to(hook, start=time.monotonic())
        except Exception as error:  # tried again in the next turn
            _logger.error("sending a webhook failed", exc_info=error, extra={"webhook": hook.url})

    def _is_our_turn(self, hook: Webhook) -> bool:
        return self._collection.access.throttle(f"webhook {hook.url}", times=1, seconds=_TURN_SECONDS) == 0

    def send_new(self) -> int:
        """Send new events to all webhooks, one after the other, and return how many were accepted."""
        return sum(self.send_to(hook) for hook in self._projection.catch_up().settings.webhooks)

    def send_to(self, hook: Webhook, start: float | None = None) -> int:
        """Send new events to one webhook and return how many were accepted.

        Stops at the first event that is not accepted, and at the end of the turn that began at `start`.
        """
        cursor, sent = self._read_cursor(hook), 0
        while start is None or time.monotonic() < start + _SENDING_SECONDS:
            batch = self._collection.log.after(cursor, _BATCH_SIZE)
            if batch.last == cursor:
                break
            for event in self._events(batch):
                key = (hook.url, event["id"], event["event"])
                if event["event"] not in hook.events or key in self._accepted:
                    continue
                is_over = start is not None and time.monotonic() >= start + _SENDING_SECONDS
                body = json.dumps(event, sort_keys=True).encode()
                if is_over or self._stopping.is_set() or not self._deliver(hook, body, start):
                    self._store_cursor(hook, event["id"] - 1)
                    return sent
                self._accepted.add(key)
                sent += 1
            self._accepted = {key for key in self._accepted if key[0] != hook.url}
            cursor = batch.last
            self._store_cursor(hook, cursor, write=bool(len(batch.votes)))
        return sent

    def _read_cursor(self, hook: Webhook) -> int:
        """Return the last row whose events were sent, as the log says; for a new webhook, the row that added it."""
        cursor, is_present = self._cursors.get(hook.url, 0), False
        for event in self._collection.log.events():
            if _is_cursor(event) and event.detail.get("url", hook.url) == hook.url:
                cursor = max(cursor, int(event.detail["seq"]))
            elif event.kind == "settings_changed" and "webhooks" in event.detail:
                was_present, urls = is_present, [one["url"] for one in event.detail["webhooks"] or ()]
                is_present = hook.url in urls
                cursor = max(cursor, event.seq) if is_present and not was_present else cursor
        self._cursors[hook.url] = cursor
        return cursor

    def _store_cursor(self, hook: Webhook, cursor: int, write: bool = True) -> None:
        if cursor > self._cursors.get(hook.url, 0):
            self._cursors[hook.url] = cursor
            if write:
                self._collection.log.note(_CURSOR, actor="server", detail={"seq": cursor, "url": hook.url})

    def _deliver(self, hook: Webhook, body: bytes, start: float | None) -> bool:
        secret = self._collection.keys.open(hook.secret)
        if secret is None:
            _logger.error("the secret of a webhook cannot be decrypted: remove and add it", extra={"webhook": hook.url})
            return False
        for attempt in range(_ATTEMPTS):
            timestamp = str(int(time.time()))
            headers = {
                "Content-Type": "application/json",
                "User-Agent": "crowdrank",
                "X-Crowdrank-Timestamp": timestamp,
                "X-Crowdrank-Signature": f"sha256={signature(secret, timestamp, body)}",
            }
            if 200 <= self._send(hook, body, headers) < 300:
                return True
            pause = self.retry_pause * 2**attempt
            is_late = start is not None and time.monotonic() + pause > start + _LAST_ATTEMPT
            if attempt + 1 == _ATTEMPTS or is_late or self._stopping.wait(pause):
                break
        _logger.warning("webhook not accepted", extra={"webhook": hook.url})
        return False

    def _events(self, batch: Batch) -> Iterator[Json]:
        projection, votes = self._projection.catch_up(), batch.votes
        rows: list[Json] = []
        for seq, at, annotator, left, right, code in zip(
            *(c.tolist() for c in (votes.seq, votes.at, votes.annotator, votes.left, votes.right, votes.outcome)),
            strict=True,
        ):
            outcome, index = _OUTCOMES[code], projection.vote_index(seq)
            vote = projection.task_votes.get(index)
            if vote is None or vote.question.is_pair:
                labels = {"left": projection.items[left].label, "right": projection.items[right].label}
                judged: Json = {**labels, "winner": labels.get(outcome, outcome)}
            else:
                judged, left = _judged(projection, vote), vote.question.items[0]
            rows.append(
                {
                    "id": seq,
                    "event": "vote",
                    "at": at // 1000,
                    "annotator": projection.annotators[annotator].name,
                    **judged,
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


def post(hook: Webhook, body: bytes, headers: dict[str, str], *, allow_internal: bool = False) -> int:
    """Send one event and return the HTTP status; 0 if there was no response. Redirects are not followed.

    Unless `allow_internal`, nothing is sent to addresses of this machine or of the local network.
    """
    if not allow_internal and is_internal(hook.url, resolve=True):
        return 0
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
