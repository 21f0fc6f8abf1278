"""Conversions between comparisons, ratings and rankings."""

from __future__ import annotations

from typing import Literal

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, Int32Array, IntArray
from crowdrank.data.comparisons import Comparisons
from crowdrank.data.pair_counts import ROUNDING
from crowdrank.data.rankings import Rankings
from crowdrank.data.ratings import Ratings
from crowdrank.errors import DataError


def pairs_within(offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Return all pairs (earlier row, later row) within each group of consecutive rows."""
    ends = np.repeat(offsets[1:], np.diff(offsets))
    followers = ends - np.arange(offsets[0], offsets[-1]) - 1
    first = np.repeat(np.arange(offsets[0], offsets[-1]), followers)
    begins = np.cumsum(followers) - followers
    second = first + 1 + np.arange(len(first)) - np.repeat(begins, followers)
    return first, second


def ratings_to_rankings(ratings: Ratings) -> Rankings:
    """List each annotator's items per query, best grade first (the mean of repeated grades)."""
    assert ratings.annotator is not None
    return _lists_by_value(ratings, ratings.annotator, ratings.item, ratings.grade, ratings.weights)


def comparisons_to_rankings(comparisons: Comparisons) -> Rankings:
    """List each annotator's items per query, most net wins first."""
    who = comparisons.annotator
    if who is None:
        who = np.zeros(len(comparisons), np.int32)
    points = comparisons.outcome * comparisons.weights
    return _lists_by_value(
        comparisons,
        np.concatenate((who, who)),
        np.concatenate((comparisons.left, comparisons.right)),
        np.concatenate((points, -points)),
    )


def _lists_by_value(
    source: Ratings | Comparisons,
    who: Int32Array,
    item: Int32Array,
    value: FloatArray,
    weight: FloatArray | None = None,
) -> Rankings:
    """Order items by the sum of their values, or by their weighted mean; values that differ by rounding are tied."""
    items = source.items
    cells, row = np.unique(who.astype(np.int64) * len(items) + item, return_inverse=True)
    terms = value if weight is None else value * weight
    total: AnyArray = np.bincount(row, terms)
    slack: AnyArray = ROUNDING * np.bincount(row, np.abs(terms))
    if weight is not None:
        count = np.bincount(row, weight)
        total, slack = total / count, slack / count
    owner, item = cells // len(items), cells % len(items)
    list_key = owner * len(items.queries) + items.query[item]
    order = np.lexsort((item, -total, list_key))
    key, total, slack = list_key[order], total[order], slack[order]
    new_list = np.append(True, key[1:] != key[:-1])
    new_place = new_list | np.append(True, total[:-1] - total[1:] > np.maximum(slack[:-1], slack[1:]))
    offsets = np.append(np.flatnonzero(new_list), len(key)).astype(np.int64)
    place = np.cumsum(new_place) - 1
    # Tied items by code: rounding may have put them in any order.
    order = order[np.lexsort((item[order], place))]
    place -= np.repeat(place[offsets[:-1]], np.diff(offsets))
    named = source.annotator is not None
    return Rankings(
        items=items,
        item=item[order].astype(np.int32),
        place=place.astype(np.int32),
        offsets=offsets,
        annotators=source.annotators,
        frame_backend=source.frame_backend,
        annotator=owner[order][offsets[:-1]].astype(np.int32) if named else None,
    )


def ratings_to_comparisons(ratings: Ratings, ties: Literal["drop", "keep"] = "drop") -> Comparisons:
    """Compare grades within one annotator and query; the better grade wins (CrowdAgg, eq. 5)."""
    return rankings_to_comparisons(ratings_to_rankings(ratings), "all", ties)


def rankings_to_comparisons(
    rankings: Rankings, pairs: Literal["all", "adjacent"] = "all", ties: Literal["drop", "keep", "above_last"] = "drop"
) -> Comparisons:
    """Compare pairs of items of each list; their positions on the screen are unknown."""
    first, second = pairs_within(rankings.offsets)
    steps = rankings.place[second] - rankings.place[first]
    wanted = steps <= 1 if pairs == "adjacent" else np.ones(len(steps), bool)
    if ties == "drop":
        wanted &= steps > 0
    elif ties == "above_last":
        last = rankings.place[rankings.offsets[1:] - 1]
        wanted &= (steps > 0) | (rankings.place[first] < last[rankings.list_of_row[first]])
    first, second, steps = first[wanted], second[wanted], steps[wanted]
    if not len(first):
        raise DataError(
            "The judgments do not order any two items, so there is nothing to compare.",
            remedy="Give lists of at least two items that are not tied.",
        )
    of_list = rankings.list_of_row[first]
    return Comparisons(
        items=rankings.items,
        left=rankings.item[first],
        right=rankings.item[second],
        outcome=(steps > 0).astype(np.int8),
        annotators=rankings.annotators,
        annotator=None if rankings.annotator is None else rankings.annotator[of_list],
        weight=None if rankings.weight is None else rankings.weight[of_list],
        positions_known=False,
        frame_backend=rankings.frame_backend,
    )


def rankings_to_ratings(rankings: Rankings) -> Ratings:
    """Grade each item by the share of the others in its list that are below it; tied items count half."""
    lengths = rankings.lengths[rankings.list_of_row]
    return Ratings(
        items=rankings.items,
        item=rankings.item,
        grade=0.5 + 0.5 * margins(rankings) / np.maximum(lengths - 1, 1),
        annotators=rankings.annotators,
        annotator=None if rankings.annotator is None else rankings.annotator[rankings.list_of_row],
        weight=None if rankings.weight is None else rankings.weight[rankings.list_of_row],
        frame_backend=rankings.frame_backend,
    )


def margins(rankings: Rankings) -> IntArray:
    """Return, for each row, the number of items below it in its list minus the number above."""
    rows, of_list = np.arange(len(rankings.item)), rankings.list_of_row
    fresh = np.append(True, rankings.place[1:] != rankings.place[:-1])
    fresh[rankings.offsets[:-1]] = True
    tie = np.cumsum(fresh) - 1
    first = rows[fresh][tie]
    after = np.append(rows[fresh][1:], len(rows))[tie]
    return np.asarray((rankings.offsets[1:][of_list] - after) - (first - rankings.offsets[:-1][of_list]))


def comparisons_to_ratings(comparisons: Comparisons) -> Ratings:
    """Turn every comparison into two grades: 1 for the winner and 0 for the loser, ½ each for a tie."""
    who, weight, points = comparisons.annotator, comparisons.weight, comparisons.outcome / 2
    return Ratings(
        items=comparisons.items,
        item=np.concatenate((comparisons.left, comparisons.right)),
        grade=np.concatenate((0.5 + points, 0.5 - points)),
        annotators=comparisons.annotators,
        annotator=None if who is None else np.tile(who, 2),
        weight=None if weight is None else np.tile(weight, 2),
        frame_backend=comparisons.frame_backend,
    )


def ratings_to_links(ratings: Ratings) -> Comparisons:
    """Connect the items that one annotator graded by a chain of ties; all of a query if annotators are unknown."""
    who = np.zeros(len(ratings), np.int32) if ratings.annotator is None else ratings.annotator
    query = ratings.items.query[ratings.item]
    order = np.lexsort((ratings.item, query, who))
    item, who, query = ratings.item[order], who[order], query[order]
    joined = np.flatnonzero((who[1:] == who[:-1]) & (query[1:] == query[:-1]) & (item[1:] != item[:-1]))
    return Comparisons(
        items=ratings.items,
        left=item[joined],
        right=item[joined + 1],
        outcome=np.zeros(len(joined), np.int8),
        positions_known=False,
        frame_backend=ratings.frame_backend,
    )


def rankings_to_links(rankings: Rankings) -> Comparisons:
    """Connect the items of each list by comparing each row with the one before it.

    Items tied on the last place were left unordered, so each of them is compared only with the row above that place.
    """
    rows, place, of_list = np.arange(len(rankings.item)), rankings.place, rankings.list_of_row
    last = place[rankings.offsets[1:] - 1][of_list]
    fresh = np.append(True, (place[1:] != place[:-1]) | (of_list[1:] != of_list[:-1]))
    begins = np.maximum.accumulate(np.where(fresh, rows, 0))
    above = np.where(place == last, begins, rows) - 1
    joined = above >= rankings.offsets[:-1][of_list]
    above, rows = above[joined], rows[joined]
    return Comparisons(
        items=rankings.items,
        left=rankings.item[above],
        right=rankings.item[rows],
        outcome=(place[above] < place[rows]).astype(np.int8),
        positions_known=False,
        frame_backend=rankings.frame_backend,
    )


def add_missing_last(rankings: Rankings) -> Rankings:
    """Add the items of the query that a list does not name, tied on one more place at its end."""
    items, query = rankings.items, rankings.items.query[rankings.item[rankings.offsets[:-1]]]
    sizes = np.diff(items.starts)[query]
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    # Write every item of each list's query with its place, then sort by place within the list.
    item = np.arange(offsets[-1]) + np.repeat(items.starts[query] - offsets[:-1], sizes)
    place = np.full(offsets[-1], np.iinfo(np.int32).max, np.int64)
    begins = offsets[:-1][rankings.list_of_row] - items.starts[query][rankings.list_of_row]
    place[begins + rankings.item] = rankings.place
    of_row = np.repeat(np.arange(len(rankings)), sizes)
    last = rankings.place[rankings.offsets[1:] - 1].astype(np.int64) + 1
    place = np.minimum(place, last[of_row])
    order = np.lexsort((item, place, of_row))
    return Rankings(
        items=items,
        item=item[order].astype(np.int32),
        place=place[order].astype(np.int32),
        offsets=offsets,
        annotators=rankings.annotators,
        annotator=rankings.annotator,
        weight=rankings.weight,
        frame_backend=rankings.frame_backend,
    )
