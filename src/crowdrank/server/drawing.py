"""Draw the next question of any task for an annotator. Read-only: storage writes the assignment.

Pairs are chosen as `choice.py` says. Larger sets start with such a pair and grow by the items with the largest expected
information gain beside it. Items to rate are those that were rated least. Some questions are random, as for pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crowdrank.active.gain_formulas import expected_gain
from crowdrank.arrays import FloatArray, IntArray
from crowdrank.errors import NothingToAskError
from crowdrank.server.choice import AnnotatorView, PendingState, available_items, choose_pair, policy_of
from crowdrank.server.projection import Projection
from crowdrank.server.records import Annotator
from crowdrank.storage import Question

RANDOM, COVERAGE = "random", "coverage"


@dataclass(frozen=True, kw_only=True)
class DrawnQuestion:
    """A question as it is to be asked.

    Parameters
    ----------
    question : Question
    policy : str
        What chose the items.
    probability : float
        The probability of the item, or of the pair from which a larger set was built.
    gold : int or None
        The item known to be better; None if unknown.
    """

    question: Question
    policy: str
    probability: float
    gold: int | None = None


def draw(
    projection: Projection, annotator: Annotator, pending: PendingState, rng: np.random.Generator
) -> DrawnQuestion:
    """Draw a question of the task of the settings. Raises NothingToAskError if none is left for this annotator."""
    return _DRAW.get(projection.settings.task.type, _draw_set)(projection, annotator, pending, rng)


def _draw_pair(
    projection: Projection, annotator: Annotator, pending: PendingState, rng: np.random.Generator
) -> DrawnQuestion:
    pair = choose_pair(projection, annotator, pending, rng)
    question = Question(items=(pair.left, pair.right), criteria=projection.settings.task.criteria)
    return DrawnQuestion(question=question, policy=pair.policy, probability=pair.probability, gold=pair.gold)


def _draw_rating(
    projection: Projection, annotator: Annotator, pending: PendingState, rng: np.random.Generator
) -> DrawnQuestion:
    """Draw an item that the annotator has not rated: one of those with the fewest ratings, or any."""
    with projection.lock:
        codes = available_items(projection, annotator, minimum=1)
        codes = codes[~np.isin(codes, list(annotator.answered_items))]
        if not len(codes):
            raise NothingToAskError("This annotator has rated all items.")
        counts = (projection.appearances + pending.without(annotator.id).item_counts())[codes]
        task, ids = projection.settings.task, projection.item_ids
    share = projection.settings.questions.random_share
    least = codes[counts == counts.min()]
    policy = RANDOM if rng.random() < share else COVERAGE
    code = int(rng.choice(codes if policy == RANDOM else least))
    probability = share / len(codes) + (1 - share) * float(code in least) / len(least)
    question = Question(task="rating", items=(ids[code],), grades=len(task.scale), criteria=task.criteria)
    return DrawnQuestion(question=question, policy=policy, probability=probability)


def _draw_set(
    projection: Projection, annotator: Annotator, pending: PendingState, rng: np.random.Generator
) -> DrawnQuestion:
    """Draw a pair that the annotator has not seen together, and add items to it."""
    with projection.lock:
        settings, codes = projection.settings, available_items(projection, annotator)
        view = AnnotatorView(projection, annotator, codes, pending.without(annotator.id))
        ids = projection.item_ids
    pair = view.pick(policy_of(settings.questions), rng)
    chosen = _extend(view, [pair.first, pair.second], settings.task.size, pair.policy == RANDOM, rng)
    items = tuple(ids[int(codes[code])] for code in rng.permutation(chosen))
    question = Question(task=settings.task.type, items=items, criteria=settings.task.criteria)
    return DrawnQuestion(question=question, policy=pair.policy, probability=pair.probability)


def _extend(view: AnnotatorView, chosen: list[int], size: int, at_random: bool, rng: np.random.Generator) -> list[int]:
    """Add items of the same query until there are `size`: at random, or those with the largest expected gain.

    Items that were shown the least come first while some were not shown at all.
    """
    query = view.beliefs.items.query
    others = rng.permutation(np.flatnonzero((query == query[chosen[0]]) & ~np.isin(np.arange(len(query)), chosen)))
    gain = np.zeros(len(others))
    for code in chosen:
        gain += _gains(view, code, others)
    new = (view.appearances[others] == 0) * 1e9
    while len(chosen) < size and len(others):
        best = 0 if at_random else int(np.argmax(gain + new))
        chosen = [*chosen, int(others[best])]
        kept = np.arange(len(others)) != best
        others, gain, new = others[kept], gain[kept], new[kept]
        gain += _gains(view, chosen[-1], others)
    return chosen


def _gains(view: AnnotatorView, code: int, others: IntArray) -> FloatArray:
    """Return the expected information gain of comparing an item with each of the others."""
    beliefs = view.expected_beliefs
    one = np.full(len(others), code)
    return np.asarray(
        expected_gain(
            beliefs.mean[one] - beliefs.mean[others],
            beliefs.variance[one],
            beliefs.variance[others],
            beliefs.alpha[np.zeros(len(others), np.int64)],
            beliefs.beta[np.zeros(len(others), np.int64)],
            1.0,
        )
    )


_DRAW: dict[str, Callable[[Projection, Annotator, PendingState, np.random.Generator], DrawnQuestion]] = {
    "pair": _draw_pair,
    "rating": _draw_rating,
}
