"""Explain in one sentence why an item is above another on the board."""

from __future__ import annotations

import numpy as np

from crowdrank.data import LEFT, RIGHT, Comparisons, Judgments, Rankings, Ratings
from crowdrank.results import Ranking


def explain_order(ranking: Ranking, judgments: Judgments, above: str, below: str, query: str = "") -> str:
    """Say how two items were compared, and how certain their order is."""
    codes = {key: code for code, key in enumerate(item_keys(ranking))}
    if (query, above) not in codes or (query, below) not in codes:
        return "One of the two items has no votes yet."
    a, b = codes[query, above], codes[query, below]
    probability = ranking.uncertainty.probability_above(ranking.scores, a, b)
    if isinstance(judgments, Ratings):
        evidence = _compare_grades(judgments, above, below, a, b)
    else:
        evidence = _compare_directly(judgments, above, a, b)
    order = "above" if ranking.scores[a] >= ranking.scores[b] else "below"
    certainty = probability if order == "above" else 1 - probability
    return f"{above} is {order} {below} with {_percent(certainty)} probability: {evidence}."


def _compare_grades(ratings: Ratings, above: str, below: str, a: int, b: int) -> str:
    one, other = (ratings.grade[ratings.item == code] for code in (a, b))
    return (
        f"{above} has a mean grade of {one.mean():.2f} ({_count(len(one))}), "
        f"{below} one of {other.mean():.2f} ({_count(len(other))})"
    )


def _count(ratings: int) -> str:
    return f"{ratings} rating{'' if ratings == 1 else 's'}"


def _compare_directly(judgments: Comparisons | Rankings, above: str, a: int, b: int) -> str:
    won, lost, tied = _direct_comparisons(judgments, a, b)
    if won + lost + tied == 0:
        evidence = "they were never compared directly, so the order follows from comparisons with other items"
    elif won + lost == 0:
        evidence = f"all direct comparisons were ties ({tied})"
    else:
        ties = f", and {tied} {'was a tie' if tied == 1 else 'were ties'}" if tied else ""
        evidence = f"{above} won {won} of {won + lost} direct comparisons{ties}"
    return evidence


def _percent(probability: float) -> str:
    return "more than 99 %" if probability > 0.99 else f"{probability:.0%}".replace("%", " %")


def _direct_comparisons(judgments: Comparisons | Rankings, a: int, b: int) -> tuple[int, int, int]:
    """Return how often `a` won against `b`, lost and tied."""
    if isinstance(judgments, Rankings):
        judgments = judgments.to_comparisons()  # items that share a place were not compared
    forward, backward = (judgments.left == a) & (judgments.right == b), (judgments.left == b) & (judgments.right == a)
    won = np.sum(judgments.outcome[forward] == LEFT) + np.sum(judgments.outcome[backward] == RIGHT)
    lost = np.sum(judgments.outcome[forward] == RIGHT) + np.sum(judgments.outcome[backward] == LEFT)
    both = int(np.sum(forward) + np.sum(backward))
    return int(won), int(lost), both - int(won) - int(lost)


def item_keys(ranking: Ranking) -> list[tuple[str, str]]:
    """Return the query and the label of every item of a ranking."""
    items = ranking.items
    queries = items.queries[items.query] if items.has_queries else [""] * len(items)
    return [(str(query), str(label)) for query, label in zip(queries, items.labels, strict=True)]
