"""What an answer is expected to teach (Chen et al. 2013, eq. 10), and which one would teach most.

Items and annotators may be given by name or by their code in the beliefs. `exploration` is the paper's γ: what is
learnt of an annotator counts so many times as much as what is learnt of items.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from crowdrank.active import gain_formulas as formula
from crowdrank.active.bounding_boxes import Leaves, grow
from crowdrank.active.branch_and_bound import Found, group, search
from crowdrank.active.exclusions import Excluded
from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.online.beliefs import Beliefs, Roll

PLAIN_UP_TO = 20_000
"""Triplets up to which all are scored: 200 items and one annotator, or 20 items and 100 of them."""


def expected_gain(
    beliefs: Beliefs, left: str | int, right: str | int, annotator: str | int, exploration: float = 1.0, query: str = ""
) -> float:
    """Of one question, in nats."""
    i, j = (_code(beliefs.items, item, "item", query) for item in (left, right))
    if i == j or beliefs.items.query[i] != beliefs.items.query[j]:
        raise DataError(f"{left!r} and {right!r} cannot be compared: name two items of one query.")
    k = _code(beliefs.annotators, annotator, "annotator")
    one, other, who = (np.array([code]) for code in (i, j, k))
    return float(_gains(beliefs, one, other, who, _checked(beliefs, exploration))[0, 0])


def gains_of(beliefs: Beliefs, annotator: str | int | None = None, exploration: float = 1.0) -> FloatArray:
    """Of every pair, items by items; of all annotators without one, annotators by items by items; all of them scored.

    nan where an item is paired with itself, or with one of another query.
    """
    every = np.arange(len(beliefs.annotators))
    who = every if annotator is None else np.array([_code(beliefs.annotators, annotator, "annotator")])
    one, other = _pairs(beliefs.items.query)
    gains = np.full((len(who), len(beliefs.items), len(beliefs.items)), np.nan)
    gains[:, one, other] = gains[:, other, one] = _gains(beliefs, one, other, who, _checked(beliefs, exploration))
    return gains if annotator is None else gains[0]


def best_pair(
    beliefs: Beliefs, annotator: str | int, exploration: float = 1.0, excluded: Excluded | None = None
) -> Found | None:
    """The pair whose answer by this annotator is expected to teach most; None where every pair is excluded."""
    who = np.array([_code(beliefs.annotators, annotator, "annotator")])
    return best_triplet(beliefs, exploration, who, excluded=excluded)


def best_triplet(
    beliefs: Beliefs,
    exploration: float = 1.0,
    annotators: IntArray | None = None,
    prices: FloatArray | None = None,
    excluded: Excluded | None = None,
    plain_up_to: int = PLAIN_UP_TO,
) -> Found | None:
    """The pair, and who of `annotators` to ask, of which the answer is expected to teach most for its price.

    `annotators` are codes, everyone without; `prices` are those of all annotators in the beliefs, by code. The gain
    in the answer is not divided by the price. More than `plain_up_to` triplets are searched by a compiled loop, which
    is quicker at any number, once it is compiled.
    """
    who = np.arange(len(beliefs.annotators)) if annotators is None else np.asarray(annotators, np.int64)
    price = np.ones(len(who)) if prices is None else np.asarray(prices, np.float64)[who]
    if not np.all(price > 0):
        raise SettingError(f"Prices must be above zero, got {price.min()}.")
    kept = Excluded(len(beliefs.items)) if excluded is None else excluded
    look = _score_all if _triplets(beliefs, who) <= plain_up_to else _search
    found = look(beliefs, who, price, kept, _checked(beliefs, exploration)) if len(who) else None
    return None if found is None or found.annotator < 0 else found


def _search(beliefs: Beliefs, who: IntArray, price: FloatArray, kept: Excluded, exploration: float) -> Found:
    tree = grow(beliefs.mean, beliefs.variance, _leaves(beliefs.items))
    return search(tree, group(who, beliefs.truths[who], beliefs.lies[who], price), kept, exploration)


@lru_cache(maxsize=64)
def _leaves(items: Roll) -> Leaves:
    return Leaves.of(items.query)


def _score_all(beliefs: Beliefs, who: IntArray, price: FloatArray, kept: Excluded, exploration: float) -> Found | None:
    one, other = _pairs(beliefs.items.query)
    gains = _gains(beliefs, one, other, who, exploration)
    allowed = kept.allows(who[:, None], one, other)
    if not allowed.any():
        return None
    row, pair = np.unravel_index(np.argmax(np.where(allowed, gains / price[:, None], -np.inf)), gains.shape)
    return Found(int(one[pair]), int(other[pair]), int(who[row]), float(gains[row, pair]), 0, gains.size)


def _triplets(beliefs: Beliefs, who: IntArray) -> int:
    size = np.bincount(beliefs.items.query, minlength=1).astype(np.int64)
    return int(np.sum(size * (size - 1) // 2)) * len(who)


def _pairs(query: Int32Array) -> tuple[IntArray, IntArray]:
    """All pairs within queries: each item with those that follow it in its own."""
    order = np.argsort(query, kind="stable")
    place = np.arange(len(order))
    following = np.searchsorted(query[order], query[order], side="right") - place - 1
    first = np.repeat(place, following)
    return order[first], order[first + 1 + _count_up(following)]


def _count_up(lengths: IntArray) -> IntArray:
    """0, 1, … for each length in turn."""
    ends = np.cumsum(lengths)
    return np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)


def _gains(beliefs: Beliefs, one: IntArray, other: IntArray, who: IntArray, exploration: float) -> FloatArray:
    """Annotators by pairs."""
    truths, lies = beliefs.truths[who][:, None], beliefs.lies[who][:, None]
    lead = beliefs.mean[one] - beliefs.mean[other]
    variances = beliefs.variance[one], beliefs.variance[other]
    return np.asarray(formula.expected_gain(lead, *variances, truths, lies, exploration))


def _checked(beliefs: Beliefs, exploration: float) -> float:
    if "truths" not in beliefs.of_annotators:
        raise DataError("These beliefs hold nothing of annotators' quality: begin with those of Crowd-BT.")
    if not 0 <= exploration < np.inf:
        raise SettingError(f"exploration must be zero or more, got {exploration!r}.")
    return float(exploration)


def _code(roll: Roll, name: str | int, kind: str, query: str = "") -> int:
    if not isinstance(name, int | np.integer):
        return roll.index(name, query, kind)
    if not 0 <= name < len(roll):
        raise UnknownNameError(kind, name, roll.labels)
    return int(name)
