"""Ranks in draws of the scores: rank intervals, one by one or for all items at once, and tie groups.

Everything here counts orders in joint draws, so nothing depends on the unit of the scores.
"""

from __future__ import annotations

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.data import Items

GROUP_LEVEL = 0.95
"""Probability that everything that the groups of a query claim is true."""
# How sure a single claim must be. The groups use the smallest value for which all claims together are sure enough.
_LADDER = (0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999)


def ranks_in_draws(draws: FloatArray, items: Items) -> tuple[Int32Array, Int32Array]:
    """Return the best and the worst rank of every item within its query in each draw; they differ in ties."""
    best, worst = np.empty(draws.shape, np.int32), np.empty(draws.shape, np.int32)
    for query in range(len(items.queries)):
        block = items.of_query(query)
        order = np.argsort(-draws[:, block], axis=1, kind="stable")
        first, last = _tie_bounds(np.take_along_axis(draws[:, block], order, axis=1))
        np.put_along_axis(best[:, block], order, first + 1, axis=1)
        np.put_along_axis(worst[:, block], order, last + 1, axis=1)
    return best, worst


def _tie_bounds(ordered: FloatArray) -> tuple[Int32Array, Int32Array]:
    """Return, row by row, the first and last position of the run of equal values around each value."""
    position = np.broadcast_to(np.arange(ordered.shape[1], dtype=np.int32), ordered.shape)
    same = ordered[:, 1:] == ordered[:, :-1]
    if not same.any():
        return position, position
    opens = np.pad(~same, ((0, 0), (1, 0)), constant_values=True)
    closes = np.pad(~same, ((0, 0), (0, 1)), constant_values=True)
    first = np.maximum.accumulate(np.where(opens, position, 0), axis=1)
    last = np.minimum.accumulate(np.where(closes, position, ordered.shape[1])[:, ::-1], axis=1)[:, ::-1]
    return first, last


def shortest_intervals(best: Int32Array, worst: Int32Array, shown: IntArray, level: float) -> tuple[IntArray, IntArray]:
    """Return for each item the shortest interval with the shown rank and at least `level` of its ranks in the draws.

    Ranks are few whole numbers: an interval with equal tails would be longer than necessary, and may miss the rank that
    is shown. Of several shortest intervals the one in the middle is taken, so that reversed scores reverse the result.
    """
    count = len(best)
    inside = _count_needed(level, count)
    # In sorted order, `inside` neighbours are an interval with enough draws. Where draws have ties, best and worst
    # ranks are sorted apart: at most n draws begin below the n-th best rank, and so on, so the interval holds as many.
    low = np.minimum(np.sort(best, axis=0)[: count - inside + 1], shown)
    high = np.maximum(np.sort(worst, axis=0)[inside - 1 :], shown)
    from_middle = np.abs(np.arange(len(low)) - (len(low) - 1) / 2) / (2 * len(low))
    chosen = np.argmin((high - low) + from_middle[:, None], axis=0)[None]
    return (
        np.take_along_axis(low, chosen, axis=0)[0].astype(np.int64),
        np.take_along_axis(high, chosen, axis=0)[0].astype(np.int64),
    )


def simultaneous_intervals(
    best: Int32Array, worst: Int32Array, shown: IntArray, items: Items, level: float
) -> tuple[IntArray, IntArray]:
    """Return rank intervals that all hold together, in each query, with probability `level`.

    The interval of each item is stretched around the shown rank by a factor that the items of a query share: the
    smallest one for which enough draws have all items inside. With a single number to choose, few draws are enough.
    """
    low, high = shortest_intervals(best, worst, shown, level)
    below, above = shown - low + 0.5, high - shown + 0.5
    stretch = np.maximum((shown - best) / below, (worst - shown) / above)
    for query in range(len(items.queries)):
        block = items.of_query(query)
        farthest = np.sort(stretch[:, block].max(axis=1))
        factor = max(1.0, farthest[_count_needed(level, len(farthest)) - 1])
        # a draw at the end of the interval must be inside in spite of rounding
        reach = factor * (1 + 1e-12)
        low[block] = np.minimum(low[block], np.ceil(shown[block] - reach * below[block]))
        high[block] = np.maximum(high[block], np.floor(shown[block] + reach * above[block]))
        np.clip(low[block], 1, block.stop - block.start, out=low[block])
        np.clip(high[block], 1, block.stop - block.start, out=high[block])
    return low, high


def tie_groups(draws: FloatArray, items: Items, order: IntArray) -> IntArray:
    """Return the tie group of each item within its query, 1 for the best; `order` lists the items from best to worst.

    The groups claim that the first item of each is above all items of later groups. Going down the order, a new group
    begins as soon as that claim is probable enough. How probable is the smallest of a few values for which all claims
    of a query are true together with probability 0.95.
    """
    group = np.ones(len(items), np.int64)
    for query in range(len(items.queries)):
        own = order[items.of_query(query)]
        columns = np.ascontiguousarray(draws[:, own].T)
        best_below = np.maximum.accumulate(columns[::-1], axis=0)[::-1]  # the best item from each position downwards
        for needed in (*_LADDER, 1.0):
            leaders = _leaders(columns, best_below, _count_needed(needed, len(draws)))
            claims = columns[leaders[:-1]] > best_below[leaders[1:]]
            if len(leaders) == 1 or claims.all(axis=0).sum() >= _count_needed(GROUP_LEVEL, len(draws)):
                group[own] = np.searchsorted(leaders, np.arange(len(own)), side="right")
                break
    return group


def _leaders(columns: FloatArray, best_below: FloatArray, needed: int) -> IntArray:
    """Positions of the first item of each group; rows are the items from best to worst."""
    leaders = [0]
    while True:
        leader = columns[leaders[-1]]
        low, high = leaders[-1] + 1, len(columns)
        while low < high:  # the farther down, the more draws agree
            middle = (low + high) // 2
            low, high = (low, middle) if np.sum(leader > best_below[middle]) >= needed else (middle + 1, high)
        if low == len(columns):
            return np.array(leaders, np.int64)
        leaders.append(low)


def _count_needed(probability: float, draws: int) -> int:
    """Number of draws that must agree. A share of few draws is smoothed, so that it is never 1; then all must agree."""
    return min(int(np.ceil(probability * (draws + 1) - 0.5 - 1e-9)), draws)


# Adjustment of p-values for the number of tests.


def benjamini_hochberg(p_values: FloatArray) -> FloatArray:
    """Adjust p-values for the false discovery rate (Benjamini and Hochberg 1995); nan is kept and not counted.

    >>> benjamini_hochberg(np.array([0.01, 0.5, 0.02, np.nan])).tolist()
    [0.03, 0.5, 0.03, nan]
    """
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known])]
    scaled = p_values[order] * len(known) / np.arange(1, len(known) + 1)
    adjusted = np.full(len(p_values), np.nan)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return adjusted
