"""Figures in the form that Prometheus reads. Those of requests are of the process that answers, and say which."""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections import Counter
from typing import Any

_EDGES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Metrics:
    """Requests by route and status, and how long they took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[method, route, status] += 1
            self._buckets.setdefault(route, [0] * (len(_EDGES) + 1))[bisect_left(_EDGES, seconds)] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]

    def text(self, service: Any) -> str:
        with self._lock:
            lines = [*self._of_requests(), *_of_collection(service)]
        return "\n".join(lines) + "\n"

    def _of_requests(self) -> list[str]:
        process = f'process="{os.getpid()}"'
        lines = ["# HELP crowdrank_requests_total Requests answered.", "# TYPE crowdrank_requests_total counter"]
        lines += [
            f'crowdrank_requests_total{{{process},method="{method}",route="{_quoted(route)}",status="{status}"}} '
            f"{count}"
            for (method, route, status), count in sorted(self._requests.items())
        ]
        lines += [
            "# HELP crowdrank_request_seconds How long requests took.", "# TYPE crowdrank_request_seconds histogram",
        ]  # fmt: skip
        for route, counts in sorted(self._buckets.items()):
            labels, total = f'{process},route="{_quoted(route)}"', 0
            for edge, count in zip((*_EDGES, "+Inf"), counts, strict=True):
                total += count
                lines.append(f'crowdrank_request_seconds_bucket{{{labels},le="{edge}"}} {total}')
            lines.append(f"crowdrank_request_seconds_sum{{{labels}}} {self._seconds[route]:.6f}")
            lines.append(f"crowdrank_request_seconds_count{{{labels}}} {total}")
        return lines


def _of_collection(service: Any) -> list[str]:
    live, board = service.live.catch_up(), service.boards.latest
    figures = {
        "log_rows": ("Rows of the log.", live.seq),
        "items": ("Items that are asked about.", sum(not one.hidden for one in live.items.values())),
        "annotators": ("Annotators who joined.", len(live.people)),
        "votes": ("Votes that count.", live.decided),
        "answers": ("Answers of all kinds, those taken back among them.", len(live.folding)),
        "open_questions": ("Questions that wait for an answer.", len(live.open)),
        "open": ("1 while questions are put.", int(live.state == "open")),
        "board_lag_rows": ("Rows that the board has not seen yet.", live.touched - (0 if board is None else board.seq)),
        "board_seconds": ("How long the last board took.", 0.0 if board is None else round(board.seconds, 4)),
        "webhook_lag_rows": ("Rows that webhooks have not told of yet.", service.webhooks.lag()),
    }
    return [
        line
        for name, (said, value) in figures.items()
        for line in (f"# HELP crowdrank_{name} {said}", f"# TYPE crowdrank_{name} gauge", f"crowdrank_{name} {value}")
    ]


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
