"""Keep the latest board, and build the next one in a background thread when someone looks."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace

from crowdrank.server.boards import Board, build_board
from crowdrank.server.projection import Projection
from crowdrank.storage import Collection

_REST = 4.0
"""After each board the thread rests this many times as long as it took, because votes come first."""
_MAX_REST = 60.0
_logger = logging.getLogger("crowdrank.server")


class BoardPublisher:
    """Publishes boards of a collection.

    Attributes
    ----------
    latest_built : Board or None
        The last board that was built in the background.
    """

    def __init__(self, collection: Collection, projection: Projection) -> None:
        self._collection, self._projection = collection, projection
        self.latest_built: Board | None = None
        self._requested, self._built = threading.Event(), threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def latest(self, wait: float = 0.0) -> Board:
        """Return the latest board. If there are newer votes, request a new one and wait for it `wait` seconds."""
        projection = self._projection.catch_up()
        latest, wanted = self.latest_built, projection.board_seq
        if latest is None or latest.seq < wanted:
            self._start()
            self._requested.set()
            if wait:
                with self._built:
                    self._built.wait_for(
                        lambda: self.latest_built is not None and self.latest_built.seq >= wanted, wait
                    )
        if self.latest_built is not None:
            return self.latest_built
        return replace(build_board(self._collection, projection, 0), is_pending=projection.n_counted > 0)

    def build(self, seq: int | None = None) -> Board:
        """Build the board as of row `seq` of the log, by default the current one, in this thread."""
        self._projection.catch_up()
        return build_board(self._collection, self._projection, self._projection.board_seq if seq is None else seq)

    def is_decided(self) -> bool:
        """Return whether the decision of the settings is reached on the latest board."""
        decision = self.latest().decision
        return decision is not None and decision.decided

    def stop(self) -> None:
        self._stopping = True
        self._requested.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(target=self._run, name="boards", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._stopping:
            self._requested.wait()
            self._requested.clear()
            if self._stopping:
                return
            start = time.monotonic()
            try:
                board = self.build()
            except Exception as error:  # pages keep showing the last board
                _logger.error("building the board failed", exc_info=error)
            else:
                with self._built:
                    if self.latest_built is None or self.latest_built.seq <= board.seq:
                        self.latest_built = board
                    self._built.notify_all()
            elapsed = time.monotonic() - start
            for _ in range(int(min(_REST * elapsed, _MAX_REST) / 0.1)):
                if self._stopping:
                    return
                time.sleep(0.1)
