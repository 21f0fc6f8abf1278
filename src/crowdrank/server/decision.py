"""How near a decision is: settled or not, how sure, and how many votes more it may take.

How far a board can be relied on, told from the questions that were drawn at random, and how it came about.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from crowdrank.active import decision, forecast, reliability
from crowdrank.data import Comparisons
from crowdrank.errors import CrowdrankError
from crowdrank.models import CrowdBT
from crowdrank.online import Vocabulary
from crowdrank.results import Ranking


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Of what is to be decided."""

    decision: str
    level: float
    settled: bool
    chance: float
    """That it is right as things stand."""
    more_votes: int | None
    """As likely more as fewer; None where it is settled, or no end is in sight."""
    sentence: str


def standing_of(ranking: Ranking, wish: str, level: float, votes: int) -> Standing:
    """By the draws behind a board."""
    wanted, items = decision(wish), ranking.items
    queries = items.queries[items.query] if items.has_queries else [""] * len(items)
    roll = Vocabulary(tuple(str(one) for one in items.labels), tuple(str(one) for one in queries))
    draws = ranking.uncertainty.draws
    # what a posterior is looked at for, and no more
    beliefs: Any = SimpleNamespace(draws=SimpleNamespace(scores=draws), items=roll, judged=votes, winner=range(votes))
    try:
        chance = wanted.probability(draws, roll)
        settled = chance >= wanted.threshold(level)
        more = 0.0 if settled else forecast(beliefs, wanted, level, votes, paths=50).votes - votes
    except CrowdrankError as error:  # an item that nobody has judged yet
        return Standing(decision=wish, level=level, settled=False, chance=0.0, more_votes=None, sentence=str(error))
    count = None if settled or math.isinf(more) else int(more)
    return Standing(
        decision=wish,
        level=level,
        settled=settled,
        chance=round(chance, 4),
        more_votes=count,
        sentence=_said(wish, level, settled, chance, count),
    )


def _said(wish: str, level: float, settled: bool, chance: float, more: int | None) -> str:
    if settled:
        return f"{wish.capitalize()}: settled at {level:.0%}.".replace("%", " %")
    ahead = "no end is in sight" if more is None else f"about {more:,} more votes would settle it"
    return f"{wish.capitalize()}: open, {chance:.0%} sure; {ahead}.".replace("%", " %")


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
        "model": found.model,
        "judgments": found.judgments,
        "random": found.random,
        "too_few": found.too_few,
        "of_all": estimate(found.projected),
        "separation": estimate(found.separation),
        "split_half": estimate(found.split_half),
        "lines": found.lines(),
    }


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
