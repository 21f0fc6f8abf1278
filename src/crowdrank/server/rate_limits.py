"""How often anyone may ask, whichever process answers: counted in the database, a block at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from crowdrank.server.errors import too_many
from crowdrank.storage.access import Access


class Limit(NamedTuple):
    """So many in so many seconds; a process fetches `block` of them at once, so that few requests wait for the disk."""

    times: int
    seconds: float
    block: int = 1


ANNOTATOR = Limit(600, 60, 20)
"""Requests of one annotator."""
ADMIN = Limit(1200, 60, 20)
ADDRESS = Limit(60_000, 60, 200)
"""Requests from one address: a whole school may share one."""
ATTEMPTS = Limit(30, 60)
"""Secrets that nobody was given, presented from one address."""
JOINING = Limit(30, 60)
"""People who join by the open link, from one address."""
_MOST_KEPT = 10_000


class Limits:
    """Permits in hand, by who they are for."""

    def __init__(self, access: Access, clock: Callable[[], float] = time.monotonic) -> None:
        self._access, self._clock = access, clock
        self._left: dict[str, tuple[int, float]] = {}
        self._shut: dict[str, float] = {}
        self._lock = threading.Lock()

    def take(self, key: str, limit: Limit) -> None:
        """Count one request; raises a Problem where there were too many."""
        if self._in_hand(key):
            return
        wait = self._access.wait(key, times=max(1, limit.times // limit.block), seconds=limit.seconds)
        if wait > 0:
            self._keep(self._shut, key, self._clock() + wait)
            raise too_many(wait)
        if limit.block > 1:
            self._keep(self._left, key, (limit.block - 1, self._clock() + limit.seconds))

    def check(self, key: str) -> None:
        """Raises a Problem where there were too many a moment ago: nothing is counted, and nothing looked up."""
        wait = self._shut.get(key, 0.0) - self._clock()
        if wait > 0:
            raise too_many(wait)

    def _keep(self, table: dict[str, Any], key: str, value: object) -> None:
        with self._lock:
            if len(table) >= _MOST_KEPT:
                table.clear()
            table[key] = value

    def _in_hand(self, key: str) -> bool:
        with self._lock:
            left, until = self._left.get(key, (0, 0.0))
            if left < 1 or until < self._clock():
                self._left.pop(key, None)
                return False
            self._left[key] = (left - 1, until)
            return True
