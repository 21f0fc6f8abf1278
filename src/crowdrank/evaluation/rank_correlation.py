"""Places in an order, and what becomes of a place that several items share.

How many pairs of a permutation stand in the wrong order, in O(n log n) array operations.

How well an estimated order agrees with the true one: accuracy, Kendall, Spearman, the top k.

Every function takes `scores` and `truth` over the same items, larger is better, and ignores the order of the items.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.errors import DataError, SettingError


def check_pair(scores: npt.ArrayLike, truth: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both as numbers over the same items. Infinite values are fine: they have a place in the order."""
    estimate, known = check_column(scores, "scores"), check_column(truth, "truth")
    if len(estimate) != len(known):
        raise DataError(f"scores and truth must be over the same items, got {len(estimate)} and {len(known)} values.")
    if not len(known):
        raise DataError("There are no items to evaluate: scores and truth are empty.")
    return estimate, known


def check_column(values: npt.ArrayLike, name: str) -> FloatArray:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be numbers, got {error}.") from error
    if column.ndim != 1:
        raise DataError(f"{name} must be one row of numbers, got {column.ndim} dimensions.")
    if (bad := np.flatnonzero(np.isnan(column))).size:
        raise DataError(f"Row {int(bad[0]) + 1}: {name} must be a number, got nan.")
    return column


def check_k(k: int) -> int:
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise SettingError(f"k must be a whole number of at least 1, got {k!r}.")
    return int(k)


def tie_groups(scores: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
    """The order, best first, and where each group of equal scores starts in it, and its size."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    return order, starts, np.diff(np.append(starts, len(scores)))


def mean_over_ties(of_place: FloatArray, scores: FloatArray) -> FloatArray:
    """What each item gets from its place, on average over all orders of the items tied with it."""
    order, starts, sizes = tie_groups(scores)
    of_item = np.empty(len(scores))
    of_item[order] = np.repeat(np.add.reduceat(of_place, starts) / sizes, sizes)
    return of_item


def chance_of_top(k: int, scores: FloatArray) -> FloatArray:
    """The chance of each item to stand among the first k, ties broken at random."""
    return mean_over_ties((np.arange(len(scores)) < k).astype(np.float64), scores)


def count_inversions(permutation: IntArray) -> int:
    """Pairs of which the larger number comes first.

    >>> count_inversions(np.array([2, 3, 0, 1, 4]))
    4
    """
    # Bit by bit from the highest: once numbers are sorted by their higher bits, those that share them fill a block
    # that begins at their common prefix; within it, a 1 before a 0 is an inversion no other bit will see.
    place = np.arange(len(permutation))
    numbers, total = np.asarray(permutation, np.int64), 0
    for bit in reversed(range((len(permutation) - 1).bit_length())):
        block = place >> (bit + 1) << (bit + 1)
        one = numbers >> bit & 1
        ones_before = np.cumsum(one) - one
        ones_before -= ones_before[block]
        total += int(ones_before[one == 0].sum())
        target = np.where(one == 1, block + (1 << bit) + ones_before, place - ones_before)
        moved = np.empty_like(numbers)
        moved[target] = numbers
        numbers = moved
    return total


class _Pairs(NamedTuple):
    """Pairs of items, counted."""

    concordant: int
    discordant: int
    tied_scores: int
    """Tied in the scores, whatever the truth says."""
    tied_truth: int
    tied_both: int

    @property
    def all(self) -> int:
        return self.concordant + self.discordant + self.tied_scores + self.tied_truth - self.tied_both

    @property
    def truly_ordered(self) -> int:
        return self.all - self.tied_truth

    @property
    def wrongly_tied(self) -> int:
        return self.tied_scores - self.tied_both


def accuracy(scores: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Crowd-BT eq. 20 (ACC): the share of truly ordered pairs that the scores put strictly in the same order.

    An estimated tie counts as wrong, a pair tied in the truth not at all; nan where the truth orders no pair.

    >>> accuracy([3, 1, 2], [30, 20, 10])
    0.6666666666666666
    """
    pairs = _count(*check_pair(scores, truth))
    return pairs.concordant / pairs.truly_ordered if pairs.truly_ordered else np.nan


def kendall_distance(scores: npt.ArrayLike, truth: npt.ArrayLike, normalised: bool = False) -> float:
    """How many pairs the scores put the wrong way round (TPP §V.A).

    A pair tied only in the scores counts one half, as it would on average if ties were broken at random; a pair tied
    in the truth counts nothing. `normalised` divides by the number of truly ordered pairs: 0 is the true order, 1 its
    reverse, nan where the truth orders no pair.

    >>> kendall_distance([3, 2, 5, 4, 1], [5, 4, 3, 2, 1])
    4.0
    """
    pairs = _count(*check_pair(scores, truth))
    distance = pairs.discordant + pairs.wrongly_tied / 2
    if not normalised:
        return distance
    return distance / pairs.truly_ordered if pairs.truly_ordered else np.nan


def kendall_correlation(scores: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Kendall's tau-b; nan where all scores, or all truths, are tied."""
    pairs = _count(*check_pair(scores, truth))
    untied = (pairs.all - pairs.tied_scores) * (pairs.all - pairs.tied_truth)
    return (pairs.concordant - pairs.discordant) / math.sqrt(untied) if untied else np.nan


def spearman_correlation(scores: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Pearson's correlation of the ranks, tied items sharing their mean rank; nan where all are tied."""
    estimate, known = check_pair(scores, truth)
    rank = np.arange(len(known), dtype=np.float64) - (len(known) - 1) / 2
    a, b = mean_over_ties(rank, estimate), mean_over_ties(rank, known)
    spread = math.sqrt((a @ a) * (b @ b))
    return float(np.clip(a @ b / spread, -1, 1)) if spread else np.nan


def top_k_overlap(scores: npt.ArrayLike, truth: npt.ArrayLike, k: int) -> float:
    """The share of the estimated top k that belongs to the true top k; k beyond the number of items means all.

    Items truly tied for the last of the k places are equally welcome on it. Tied scores give each item its chance of
    standing in the top k; where that leaves more of the welcome than there are places for them, the places count.

    >>> top_k_overlap([9, 8, 7, 6], [4, 1, 3, 2], k=2)
    0.5
    """
    estimate, known = check_pair(scores, truth)
    k = min(check_k(k), len(known))
    last = np.sort(known)[-k]
    chance = chance_of_top(k, estimate)
    certain = known > last
    places_left = k - np.count_nonzero(certain)
    return float(chance[certain].sum() + min(chance[known == last].sum(), places_left)) / k


def _count(scores: FloatArray, truth: FloatArray) -> _Pairs:
    order = np.lexsort((scores, truth))
    s, t = scores[order], truth[order]
    tied_scores, tied_truth, tied_both = _tied_pairs(np.sort(scores)), _tied_pairs(t), _tied_pairs(s, t)
    # Scores ascend among items of equal truth, and a stable sort keeps equal scores as they stand: ties never invert.
    discordant = count_inversions(np.argsort(s, kind="stable"))
    every = len(s) * (len(s) - 1) // 2
    concordant = every - discordant - tied_scores - tied_truth + tied_both
    return _Pairs(concordant, discordant, tied_scores, tied_truth, tied_both)


def _tied_pairs(*columns: FloatArray) -> int:
    """Pairs of rows equal in every column, where equal rows stand together."""
    new = np.ones(len(columns[0]) + 1, bool)
    new[1:-1] = np.any([c[1:] != c[:-1] for c in columns], axis=0)
    sizes = np.diff(np.flatnonzero(new))
    return int((sizes * (sizes - 1) // 2).sum())
