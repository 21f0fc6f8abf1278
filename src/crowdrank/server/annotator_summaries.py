"""What is told of annotators: how much and how fast they answer, whether they lean, and how far to believe them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from crowdrank.data import LEFT, RIGHT, TIE
from crowdrank.errors import CrowdrankError
from crowdrank.evaluation import Verdicts, verdicts
from crowdrank.results import Ranking
from crowdrank.server.boards import Board, quietly
from crowdrank.server.decision import QUICK
from crowdrank.server.projection import Live, Person
from crowdrank.storage import SKIPPED
from crowdrank.storage.log import iso

Json = dict[str, Any]

EDGES = (1, 2, 3, 5, 8, 13, 21, 34, 60)
"""Seconds between which answers are counted for the histogram."""


def figures(live: Live, board: Board) -> list[Json]:
    """A row an annotator, in the order they joined."""
    judged, quality = _verdicts(board), _qualities(board.ranking)
    with live.lock:
        return [
            _figures(live, person, judged.get(person.name), quality.get(person.name)) for person in live.people.values()
        ]


def _figures(live: Live, person: Person, verdict: Json | None, quality: Json | None) -> Json:
    rows = np.array([row for row in person.votes if live.stands(row)], np.int64)
    outcome = live.folding.outcome[rows]
    left, right = int(np.sum(outcome == LEFT)), int(np.sum(outcome == RIGHT))
    tied, skipped = int(np.sum(outcome == TIE)), int(np.sum(outcome == SKIPPED))
    seconds = np.array([live.response_ms[row] for row in rows if live.response_ms[row] >= 0]) / 1000
    return {
        "id": person.id,
        "name": person.name,
        "excluded": person.excluded,
        "quota": person.quota if person.quota is not None else live.settings.budget.per_annotator,
        "votes": len(rows) - skipped,
        "answers": len(rows),
        "ties": tied,
        "skips": skipped,
        "tie_share": _share(tied, len(rows) - skipped),
        "skip_share": _share(skipped, len(rows)),
        "left_share": _share(left, left + right),
        "left_p": _coin(left, left + right),
        "median_seconds": float(np.median(seconds)) if len(seconds) else None,
        "histogram": _histogram(seconds),
        "last_seen": iso(live.at[person.votes[-1]]) if person.votes else None,
        **_gold(live, rows),
        **_repeats(live, rows),
        **(quality or {"quality": None, "low": None, "high": None}),
        **(verdict or {"verdict": "too few to say", "reason": "No answers yet.", "agreement": None}),
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _coin(left: int, decided: int) -> float | None:
    """How likely a share of left answers as far from one half is by chance: sides were drawn."""
    if not decided:
        return None
    from scipy.stats import binomtest

    return float(binomtest(left, decided, 0.5).pvalue)


def _histogram(seconds: Any) -> list[int]:
    counts: list[int] = np.histogram(seconds, (0, *EDGES, np.inf))[0].tolist()
    return counts


def _gold(live: Live, rows: Any) -> Json:
    """Of the questions whose answer is known, how many were decided and how many of these rightly."""
    folding, ids = live.folding, live.ids
    known = right = 0
    for row in rows:
        if live.gold[row] and folding.outcome[row] in (LEFT, RIGHT):
            side = folding.left if folding.outcome[row] == LEFT else folding.right
            known, right = known + 1, right + (ids[int(side[row])] == live.gold[row])
    return {"gold": int(right), "gold_of": known}


def _repeats(live: Live, rows: Any) -> Json:
    """Of the pairs that were asked again, how many were answered alike."""
    folding = live.folding
    said: dict[tuple[int, int], int] = {}
    again = alike = 0
    for row in rows:
        one, other, outcome = int(folding.left[row]), int(folding.right[row]), int(folding.outcome[row])
        if outcome == SKIPPED:
            continue
        pair, towards = ((one, other), outcome) if one < other else ((other, one), -outcome)
        if pair in said:
            again, alike = again + 1, alike + (said[pair] == towards)
        said[pair] = towards
    return {"repeats": again, "consistency": _share(int(alike), again)}


def _qualities(ranking: Ranking | None) -> dict[str, Json]:
    if ranking is None:
        return {}
    told = quietly(lambda: ranking.annotators)
    estimate, low, high = told.estimates["quality"]
    return {
        str(name): {"quality": round(float(q), 4), "low": round(float(a), 4), "high": round(float(b), 4)}
        for name, q, a, b in zip(told.labels, estimate, low, high, strict=True)
    }


def _verdicts(board: Board) -> dict[str, Json]:
    """With its reason, and the share of answers that agree with what the others' answers say."""
    if board.judgments is None:
        return {}
    judgments = board.judgments
    try:
        found: Verdicts = quietly(lambda: verdicts(judgments))
    except CrowdrankError:
        return {}
    return {
        str(name): {
            "verdict": str(found.verdict[n]),
            "reason": str(found.reason[n]),
            "agreement": _share(int(found.agreed[n]), int(found.decided[n])),
        }
        for n, name in enumerate(found.annotators)
    }


def without(board: Board, name: str) -> list[Json]:
    """The board as it would be without one annotator, by the quicker model: item, rank with and without."""
    if board.judgments is None or board.judgments.annotator is None:
        return []
    judgments = board.judgments
    names = judgments.annotators.tolist()
    if name not in names:
        return []
    kept = judgments.take(np.flatnonzero(judgments.annotator != names.index(name)))
    if not len(kept):
        return []
    with_them, without_them = (quietly(partial(QUICK.fit, table)) for table in (judgments, kept))
    queries = (
        with_them.items.queries[with_them.items.query] if with_them.items.has_queries else [""] * len(with_them.items)
    )
    return [
        {
            "item": str(with_them.items.labels[n]),
            "query": str(queries[n]),
            "rank": int(with_them.rank[n]),
            "rank_without": int(without_them.rank[n]),
        }
        for n in with_them.order.tolist()
    ]
