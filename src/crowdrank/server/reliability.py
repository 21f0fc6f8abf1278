"""How far a board can be relied on, told from the questions that were drawn at random, and how it came about."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdrank.errors import CrowdrankError
from crowdrank.judgments import Comparisons
from crowdrank.models import CrowdBT
from crowdrank.questions import reliability
from crowdrank.results import Ranking

Json = dict[str, Any]

QUICK = CrowdBT(ties="half")
"""Eleven fits are needed, for which the whole posterior takes five to nine times as long as the board."""
_POINTS = 8
"""Of the history: boards of the first eighth of the votes, the first quarter …"""


def reliability_of(told: Comparisons) -> Json | None:
    """From the questions drawn at random, as fitted by the quicker model."""
    try:
        found = reliability(told, model=QUICK)
    except CrowdrankError:
        return None

    def estimate(one: Any) -> Json | None:
        return None if one is None else {"value": one.value, "low": one.low, "high": one.high}

    return {
        "model": found.model, "judgments": found.judgments, "random": found.random, "too_few": found.too_few,
        "of_all": estimate(found.of_all), "separation": estimate(found.separation),
        "split_half": estimate(found.split_half), "lines": found.lines(),
    }  # fmt: skip


def history_of(judgments: Comparisons, now: Ranking) -> tuple[Json, ...]:
    """How the board came about: the first eighth of the votes, the first quarter …, each fitted by itself."""
    if len(judgments) < 2 * _POINTS:
        return ()
    from crowdrank.evaluation import kendall_correlation

    points = []
    for part in range(1, _POINTS + 1):
        count = len(judgments) * part // _POINTS
        early = judgments.take(slice(count))
        board = QUICK.fit(early)
        seen = np.isin(np.arange(len(now.items)), np.concatenate([early.left, early.right]))
        alike = kendall_correlation(board.scores[seen], now.scores[seen]) if seen.sum() > 1 else float("nan")
        error = float(np.mean(board.uncertainty.std_error[seen]))
        points.append(
            {"votes": count, "uncertainty": round(error, 4), "agreement": None if np.isnan(alike) else round(alike, 4)}
        )
    return tuple(points)
