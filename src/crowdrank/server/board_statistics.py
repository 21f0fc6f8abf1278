"""Statistics that a board shows next to the ranking: decision status, reliability and history."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdrank.active import decision, reliability
from crowdrank.active.forecasting import forecast_from_draws
from crowdrank.data import Comparisons, Judgments
from crowdrank.errors import CrowdrankError
from crowdrank.models import Model
from crowdrank.online import Vocabulary
from crowdrank.results import Ranking

Json = dict[str, Any]

_HISTORY_POINTS = 8
_FORECAST_PATHS = 50


@dataclass(frozen=True, kw_only=True)
class DecisionStatus:
    """Whether the decision that a collection is for has been reached.

    Parameters
    ----------
    target : str
        The decision, for example "top 3".
    confidence : float
        The probability with which it must be right.
    decided : bool
    probability : float
        The probability that the current answer is right.
    more_votes : int or None
        The expected (median) number of further votes; None if it is decided or cannot be predicted.
    summary : str
        One sentence for people.
    """

    target: str
    confidence: float
    decided: bool
    probability: float
    more_votes: int | None
    summary: str


def decision_status(ranking: Ranking, target: str, confidence: float, n_votes: int) -> DecisionStatus:
    """Return the status of a decision, from the posterior draws behind a board."""
    wanted, items = decision(target), ranking.items
    queries = items.queries[items.query] if items.has_queries else [""] * len(items)
    vocabulary = Vocabulary(tuple(str(label) for label in items.labels), tuple(str(query) for query in queries))
    draws = ranking.uncertainty.draws
    try:
        probability = wanted.probability(draws, vocabulary)
        decided = probability >= wanted.threshold(confidence)
        more = 0.0
        if not decided:
            predicted = forecast_from_draws(draws, vocabulary, wanted, n_votes, confidence, paths=_FORECAST_PATHS)
            more = predicted.votes - n_votes
    except CrowdrankError as error:  # the decision names an item that has no votes yet
        return DecisionStatus(
            target=target, confidence=confidence, decided=False, probability=0.0, more_votes=None, summary=str(error)
        )
    more_votes = None if decided or math.isinf(more) else int(more)
    return DecisionStatus(
        target=target,
        confidence=confidence,
        decided=decided,
        probability=round(probability, 4),
        more_votes=more_votes,
        summary=_summary(target, confidence, decided, probability, more_votes),
    )


def _summary(target: str, confidence: float, decided: bool, probability: float, more_votes: int | None) -> str:
    if decided:
        return f"{target.capitalize()}: decided with {confidence:.0%} confidence.".replace("%", " %")
    expectation = (
        "more votes are needed, but how many cannot be predicted yet"
        if more_votes is None
        else f"about {more_votes:,} more votes needed"
    )
    return f"{target.capitalize()}: not decided yet ({probability:.0%} sure); {expectation}.".replace("%", " %")


def reliability_summary(judgments: Comparisons, model: Model) -> Json | None:
    """Return the reliability measured on the questions that were chosen at random; None if it cannot be measured."""
    try:
        found = reliability(judgments, model=model)
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


def board_history(judgments: Judgments, current: Ranking, model: Model) -> tuple[Json, ...]:
    """Fit the first eighth, quarter, … of the votes: mean standard error, and Kendall's τ with the current order."""
    if len(judgments) < 2 * _HISTORY_POINTS:
        return ()
    from crowdrank.evaluation import kendall_correlation

    points = []
    for part in range(1, _HISTORY_POINTS + 1):
        count = len(judgments) * part // _HISTORY_POINTS
        early = judgments.take(np.arange(count))
        board = model.fit(early)
        seen = early.n_judgments_per_item > 0
        tau = kendall_correlation(board.scores[seen], current.scores[seen]) if seen.sum() > 1 else float("nan")
        error = float(np.mean(board.uncertainty.std_error[seen]))
        points.append(
            {"votes": count, "uncertainty": round(error, 4), "agreement": None if np.isnan(tau) else round(tau, 4)}
        )
    return tuple(points)
