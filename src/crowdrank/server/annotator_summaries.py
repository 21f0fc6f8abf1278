"""Summarise annotators for the admin: how much and how fast they answer, side bias, gold pairs, and the verdict."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import LEFT, RIGHT, TIE, Comparisons
from crowdrank.errors import CrowdrankError, muted_warnings
from crowdrank.evaluation import Verdicts, verdicts
from crowdrank.results import Ranking
from crowdrank.server.boards import Board, board_model
from crowdrank.server.projection import Projection
from crowdrank.server.records import Annotator
from crowdrank.storage import ANSWERED, BOTH_BAD, SKIPPED
from crowdrank.storage.judgments import iso_time

Json = dict[str, Any]

_MAX_PLOTTED = 200
HISTOGRAM_EDGES = (1, 2, 3, 5, 8, 13, 21, 34, 60)
"""Bin edges of the histogram of response times, in seconds."""


def summarise(projection: Projection, board: Board) -> list[Json]:
    """Return one row per annotator, in the order in which they joined."""
    verdict_by_name, quality_by_name = _verdicts(board), _qualities(board.ranking)
    with projection.lock:
        return [
            _summary(projection, annotator, verdict_by_name.get(annotator.name), quality_by_name.get(annotator.name))
            for annotator in projection.annotators.values()
        ]


def dashboard(projection: Projection) -> Json:
    """Return what the overview plots.

    Returns
    -------
    dict
        `votes`: pairs of a time in seconds since 1970 and the number of votes that count until then, at most 200;
        `seconds`: the distribution of response times, by `HISTOGRAM_EDGES`.
    """
    with projection.lock:
        counted = np.flatnonzero(projection.votes.counts)
        times = np.array(projection.vote_times, np.float64)[counted] / 1e6
        taken = np.array(projection.response_ms, np.float64)
    shown = np.unique(np.linspace(0, len(times) - 1, min(len(times), _MAX_PLOTTED)).astype(int)) if len(times) else []
    return {
        "votes": [(float(times[n]), int(n) + 1) for n in shown],
        "seconds": _histogram(taken[taken >= 0] / 1000),
    }


def ranks_without(board: Board, name: str) -> list[Json]:
    """Return the ranks of all items with and without one annotator, according to the model of the board."""
    if board.judgments is None or board.judgments.annotator is None:
        return []
    judgments = board.judgments
    names = judgments.annotators.tolist()
    if name not in names:
        return []
    others = judgments.take(np.flatnonzero(judgments.annotator != names.index(name)))
    if not len(others):
        return []
    model = board_model(judgments)
    with muted_warnings():
        with_them, without_them = (model.fit(table) for table in (judgments, others))
    items = with_them.items
    queries = items.queries[items.query] if items.has_queries else [""] * len(items)
    return [
        {
            "item": str(items.labels[n]),
            "query": str(queries[n]),
            "rank": int(with_them.rank[n]),
            "rank_without": int(without_them.rank[n]),
        }
        for n in with_them.order.tolist()
    ]


def _summary(projection: Projection, annotator: Annotator, verdict: Json | None, quality: Json | None) -> Json:
    votes = np.array([vote for vote in annotator.votes if not projection.is_withdrawn(vote)], np.int64)
    outcome = _without_both_bad(projection.votes.outcome[votes])
    left, right = int(np.sum(outcome == LEFT)), int(np.sum(outcome == RIGHT))
    tied, skipped = int(np.sum(outcome == TIE)), int(np.sum(outcome == SKIPPED))
    seconds = np.array([projection.response_ms[vote] for vote in votes if projection.response_ms[vote] >= 0]) / 1000
    default_quota = projection.settings.budget.per_annotator
    return {
        "id": annotator.id,
        "name": annotator.name,
        "excluded": annotator.excluded,
        "quarantined": annotator.quarantined,
        "excluded_because": annotator.excluded_because,
        "paused_because": annotator.paused_because,
        "erased": annotator.erased,
        "quota": annotator.quota if annotator.quota is not None else default_quota,
        "votes": len(votes) - skipped,
        "answers": len(votes),
        "ties": tied,
        "skips": skipped,
        "tie_share": _share(tied, len(votes) - skipped),
        "skip_share": _share(skipped, len(votes)),
        "left_share": _share(left, left + right),
        "left_p": _side_p_value(left, left + right),
        "median_seconds": float(np.median(seconds)) if len(seconds) else None,
        "histogram": _histogram(seconds),
        "last_seen": iso_time(projection.vote_times[annotator.votes[-1]]) if annotator.votes else None,
        **_gold(projection, votes),
        **_repeats(projection, votes),
        **(quality or {"quality": None, "low": None, "high": None}),
        **(verdict or _no_verdict(projection)),
    }


def _no_verdict(projection: Projection) -> Json:
    if projection.settings.task.type == "pair":
        return {"verdict": "too few to say", "reason": "No answers yet.", "agreement": None}
    reason = "Verdicts are for comparisons of pairs. The quality is the one that the board estimates."
    return {"verdict": "not tested", "reason": reason, "agreement": None}


def _without_both_bad(outcome: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    return np.where(outcome == BOTH_BAD, TIE, outcome).astype(np.int8)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _side_p_value(left: int, decided: int) -> float | None:
    """Return the p-value of a binomial test that both sides win equally often. Sides are balanced at random."""
    if not decided:
        return None
    from scipy.stats import binomtest

    return float(binomtest(left, decided, 0.5).pvalue)


def _histogram(seconds: FloatArray) -> list[int]:
    counts: list[int] = np.histogram(seconds, (0, *HISTOGRAM_EDGES, np.inf))[0].tolist()
    return counts


def _gold(projection: Projection, rows: IntArray) -> Json:
    """Count the decided questions with a known answer, and those answered correctly."""
    votes, ids = projection.votes, projection.item_ids
    total = correct = 0
    for row in rows:
        if projection.vote_gold[row] and votes.outcome[row] in (LEFT, RIGHT):
            winner = votes.left if votes.outcome[row] == LEFT else votes.right
            total, correct = total + 1, correct + (ids[int(winner[row])] == projection.vote_gold[row])
    return {"gold_correct": int(correct), "gold_total": total}


def _repeats(projection: Projection, rows: IntArray) -> Json:
    """Count the questions that were repeated, and the share of them answered as before."""
    votes = projection.votes
    answers: dict[tuple[int, int], int] = {}
    repeated = same = 0
    for row in rows:
        one, other, outcome = int(votes.left[row]), int(votes.right[row]), int(votes.outcome[row])
        if outcome in (SKIPPED, ANSWERED):
            continue
        outcome = int(TIE) if outcome == BOTH_BAD else outcome
        pair, answer = ((one, other), outcome) if one < other else ((other, one), -outcome)
        if pair in answers:
            repeated, same = repeated + 1, same + (answers[pair] == answer)
        answers[pair] = answer
    return {"repeats": repeated, "consistency": _share(int(same), repeated)}


def _qualities(ranking: Ranking | None) -> dict[str, Json]:
    if ranking is None or not ranking.has_annotators:
        return {}
    with muted_warnings():
        annotators = ranking.annotators
    if "quality" not in annotators.estimates:
        return {}
    estimate, low, high = annotators.estimates["quality"]
    return {
        str(name): {"quality": round(float(q), 4), "low": round(float(a), 4), "high": round(float(b), 4)}
        for name, q, a, b in zip(annotators.labels, estimate, low, high, strict=True)
    }


def _verdicts(board: Board) -> dict[str, Json]:
    """Return the verdict on each annotator, with its reason and the agreement with the other annotators."""
    judgments = board.judgments
    if not isinstance(judgments, Comparisons):
        return {}
    try:
        with muted_warnings():
            found: Verdicts = verdicts(judgments)
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
