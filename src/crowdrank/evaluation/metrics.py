"""Agreement of an estimated with the true order: accuracy, Kendall, Spearman, top-k overlap.

Every function takes `scores` and `truth` of the same items, larger is better. The order of the items does not matter.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.errors import DataError, SettingError


def check_pair(scores: npt.ArrayLike, truth: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both as arrays of the same length. Infinite values are allowed: they can be ordered."""
    estimate, known = check_column(scores, "scores"), check_column(truth, "truth")
    if len(estimate) != len(known):
        raise DataError(f"scores and truth must have the same length, got {len(estimate)} and {len(known)} values.")
    if not len(known):
        raise DataError("scores and truth are empty: pass at least one item.")
    return estimate, known


def check_column(values: npt.ArrayLike, name: str) -> FloatArray:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be numbers, got {error}.") from error
    if column.ndim != 1:
        raise DataError(f"{name} must have one dimension, got {column.ndim}.")
    if (bad := np.flatnonzero(np.isnan(column))).size:
        raise DataError(f"Row {int(bad[0]) + 1}: {name} must be a number, got nan.")
    return column


def check_k(k: int) -> int:
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise SettingError(f"k must be a whole number of at least 1, got {k!r}.")
    return int(k)


def tie_groups(scores: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the order, best first, and the start and size of each group of equal scores in it."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    return order, starts, np.diff(np.append(starts, len(scores)))


def mean_over_ties(by_position: FloatArray, scores: FloatArray) -> FloatArray:
    """Return the value of each item's position, averaged over all orders of the items tied with it."""
    order, starts, sizes = tie_groups(scores)
    by_item = np.empty(len(scores))
    by_item[order] = np.repeat(np.add.reduceat(by_position, starts) / sizes, sizes)
    return by_item


def top_k_probability(k: int, scores: FloatArray) -> FloatArray:
    """Return the probability of each item to be among the first k if ties are broken at random."""
    return mean_over_ties((np.arange(len(scores)) < k).astype(np.float64), scores)


def count_inversions(permutation: IntArray) -> int:
    """Count the pairs of a permutation of 0 … n − 1 in which the larger number comes first, in O(n log n).

    >>> count_inversions(np.array([2, 3, 0, 1, 4]))
    4
    """
    # Bit by bit from the highest: once numbers are sorted by their higher bits, numbers that share them fill a block
    # that begins at their common prefix. Within it, a 1 before a 0 is an inversion that no other bit counts.
    position = np.arange(len(permutation))
    numbers, total = np.asarray(permutation, np.int64), 0
    for bit in reversed(range((len(permutation) - 1).bit_length())):
        block = position >> (bit + 1) << (bit + 1)
        one = numbers >> bit & 1
        ones_before = np.cumsum(one) - one
        ones_before -= ones_before[block]
        total += int(ones_before[one == 0].sum())
        target = np.where(one == 1, block + (1 << bit) + ones_before, position - ones_before)
        moved = np.empty_like(numbers)
        moved[target] = numbers
        numbers = moved
    return total


class _PairCounts(NamedTuple):
    """Numbers of pairs of items."""

    concordant: int
    discordant: int
    tied_scores: int
    """Tied in the scores, in the truth or not."""
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
    """Return the fraction of truly ordered pairs that the scores order in the same way.

    Parameters
    ----------
    scores, truth : array of float
        Estimated and true values of the same items; larger is better.

    Returns
    -------
    float
        ACC of Crowd-BT (Chen et al. 2013, eq. 20). A tie in the scores counts as wrong; pairs tied in the truth do not
        count. nan if the truth orders no pair.

    Examples
    --------
    >>> accuracy([3, 1, 2], [30, 20, 10])
    0.6666666666666666
    """
    pairs = _count(*check_pair(scores, truth))
    return pairs.concordant / pairs.truly_ordered if pairs.truly_ordered else np.nan


def kendall_distance(scores: npt.ArrayLike, truth: npt.ArrayLike, normalised: bool = False) -> float:
    """Return the number of pairs that the scores order differently from the truth (TPP, Wang et al. 2016, §V.A).

    Parameters
    ----------
    scores, truth : array of float
        Estimated and true values of the same items; larger is better.
    normalised : bool, default False
        Divide by the number of truly ordered pairs: 0 is the true order, 1 its reverse, nan without such pairs.

    Notes
    -----
    A pair tied only in the scores counts one half, the expectation if ties are broken at random. Pairs tied in the
    truth do not count.

    Examples
    --------
    >>> kendall_distance([3, 2, 5, 4, 1], [5, 4, 3, 2, 1])
    4.0
    """
    pairs = _count(*check_pair(scores, truth))
    distance = pairs.discordant + pairs.wrongly_tied / 2
    if not normalised:
        return distance
    return distance / pairs.truly_ordered if pairs.truly_ordered else np.nan


def kendall_correlation(scores: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Return Kendall's tau-b; nan if all scores, or all true values, are tied.

    Parameters
    ----------
    scores, truth : array of float
        Estimated and true values of the same items; larger is better.

    Examples
    --------
    >>> round(kendall_correlation([3, 1, 2], [30, 20, 10]), 3)
    0.333
    """
    pairs = _count(*check_pair(scores, truth))
    untied = (pairs.all - pairs.tied_scores) * (pairs.all - pairs.tied_truth)
    return (pairs.concordant - pairs.discordant) / math.sqrt(untied) if untied else np.nan


def spearman_correlation(scores: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Return Spearman's rank correlation, with mean ranks for ties; nan if all are tied.

    Parameters
    ----------
    scores, truth : array of float
        Estimated and true values of the same items; larger is better.

    Examples
    --------
    >>> round(spearman_correlation([3, 1, 2], [30, 20, 10]), 3)
    0.5
    """
    estimate, known = check_pair(scores, truth)
    rank = np.arange(len(known), dtype=np.float64) - (len(known) - 1) / 2
    a, b = mean_over_ties(rank, estimate), mean_over_ties(rank, known)
    spread = math.sqrt((a @ a) * (b @ b))
    return float(np.clip(a @ b / spread, -1, 1)) if spread else np.nan


def top_k_overlap(scores: npt.ArrayLike, truth: npt.ArrayLike, k: int) -> float:
    """Return the fraction of the estimated top k that belongs to the true top k.

    Parameters
    ----------
    scores, truth : array of float
        Estimated and true values of the same items; larger is better.
    k : int
        Size of the top; more than the number of items means all.

    Notes
    -----
    Items truly tied at position k are interchangeable. With tied scores, each item counts by its probability to be in
    the top k if ties are broken at random, up to the number of positions left.

    Examples
    --------
    >>> top_k_overlap([9, 8, 7, 6], [4, 1, 3, 2], k=2)
    0.5
    """
    estimate, known = check_pair(scores, truth)
    k = min(check_k(k), len(known))
    last = np.sort(known)[-k]
    probability = top_k_probability(k, estimate)
    certain = known > last
    positions_left = k - np.count_nonzero(certain)
    return float(probability[certain].sum() + min(probability[known == last].sum(), positions_left)) / k


def _count(scores: FloatArray, truth: FloatArray) -> _PairCounts:
    order = np.lexsort((scores, truth))
    s, t = scores[order], truth[order]
    tied_scores, tied_truth, tied_both = _tied_pairs(np.sort(scores)), _tied_pairs(t), _tied_pairs(s, t)
    # Scores ascend among items of equal truth, and a stable sort keeps the order of equal scores: ties never invert.
    discordant = count_inversions(np.argsort(s, kind="stable"))
    every = len(s) * (len(s) - 1) // 2
    concordant = every - discordant - tied_scores - tied_truth + tied_both
    return _PairCounts(concordant, discordant, tied_scores, tied_truth, tied_both)


def _tied_pairs(*columns: FloatArray) -> int:
    """Count pairs of rows that are equal in every column; equal rows must be adjacent."""
    new = np.ones(len(columns[0]) + 1, bool)
    new[1:-1] = np.any([c[1:] != c[:-1] for c in columns], axis=0)
    sizes = np.diff(np.flatnonzero(new))
    return int((sizes * (sizes - 1) // 2).sum())


# Metrics for grades of relevance: NDCG, precision, average precision, rank-biased precision.
#
# Every function takes `scores` and `truth` of the same items, larger is better. If scores are tied, the value is the
# mean over all orders of the tied items, so the order of the items does not matter. Items whose grade is at least
# `threshold` are relevant.

Gain = Literal["exponential", "linear"]
Normaliser = Literal["k", "all"]


def ndcg(
    scores: npt.ArrayLike,
    truth: npt.ArrayLike,
    k: int | None = None,
    gain: Gain = "exponential",
    normaliser: Normaliser = "k",
) -> float:
    """Return the normalised discounted cumulative gain of the first k items.

    Parameters
    ----------
    scores, truth : array of float
        Estimated and true values of the same items; larger is better.
    k : int, optional
        Cut-off; all items by default.
    gain : {"exponential", "linear"}, default "exponential"
        Gain of a grade: 2^grade − 1 (usual, and CrowdAgg §2.3) or the grade itself.
    normaliser : {"k", "all"}, default "k"
        Divide by the best gain of the first k positions (usual), or of all positions as in CrowdAgg, eq. 2, with which
        even the perfect order stays below 1.

    Returns
    -------
    float
        Σ gain / log₂(1 + position), divided by its maximum; nan if no grade is above zero.

    Examples
    --------
    >>> ndcg([3, 2, 1], [0, 1, 2], k=1), ndcg([3, 2, 1], [2, 1, 0], k=1)
    (0.0, 1.0)
    """
    _check_name("gain", gain, get_args(Gain))
    _check_name("normaliser", normaliser, get_args(Normaliser))
    estimate, grades = check_pair(scores, truth)
    depth = len(grades) if k is None else min(check_k(k), len(grades))
    gains = _gains(grades, gain)
    discount = 1 / np.log2(np.arange(2, len(grades) + 2))
    best = np.sort(gains)[::-1] * discount
    maximum = best.sum() if normaliser == "all" else best[:depth].sum()
    discount[depth:] = 0
    return float(gains @ mean_over_ties(discount, estimate) / maximum) if maximum > 0 else np.nan


def precision_at(scores: npt.ArrayLike, truth: npt.ArrayLike, k: int, threshold: float = 1) -> float:
    """Return the number of relevant items among the first k, divided by k (CrowdAgg, eq. 3).

    Parameters
    ----------
    scores, truth : array of float
        Estimated and true values of the same items; larger is better.
    k : int
        Cut-off; the divisor even if there are fewer items.
    threshold : float, default 1
        Smallest relevant grade.

    Examples
    --------
    >>> precision_at([4, 3, 2, 1], [2, 0, 1, 0], k=2)
    0.5
    """
    estimate, relevant = _relevant(scores, truth, threshold)
    return float(top_k_probability(check_k(k), estimate)[relevant].sum() / k)


def average_precision(scores: npt.ArrayLike, truth: npt.ArrayLike, threshold: float = 1) -> float:
    """Return the mean precision at the positions of the relevant items; its mean over queries is MAP.

    Parameters
    ----------
    scores, truth : array of float
        Estimated and true values of the same items; larger is better.
    threshold : float, default 1
        Smallest relevant grade.

    Returns
    -------
    float
        The average precision; nan if nothing is relevant.

    Examples
    --------
    >>> average_precision([4, 3, 2, 1], [1, 0, 0, 1])
    0.75
    """
    estimate, relevant = _relevant(scores, truth, threshold)
    if not relevant.any():
        return np.nan
    order, starts, sizes = tie_groups(estimate)
    hits = np.add.reduceat(relevant[order].astype(np.float64), starts)
    position = np.arange(len(order))
    # Given a relevant item at one position of a tie, each other position of it holds one of the remaining hits − 1.
    another = (hits - 1) / np.maximum(sizes - 1, 1)
    tied_before = (position - np.repeat(starts, sizes)) * np.repeat(another, sizes)
    found = np.repeat(np.cumsum(hits) - hits, sizes) + tied_before + 1
    probability = np.repeat(hits / sizes, sizes)
    return float((probability * found / (position + 1)).sum() / np.count_nonzero(relevant))


def rbp(scores: npt.ArrayLike, truth: npt.ArrayLike, persistence: float = 0.8, threshold: float = 1) -> float:
    """Return the rank-biased precision (Moffat and Zobel 2008; CrowdAgg, eq. 4).

    Parameters
    ----------
    scores, truth : array of float
        Estimated and true values of the same items; larger is better.
    persistence : float, default 0.8
        Probability that a reader goes on to the next position. CrowdAgg's tables use 0.95.
    threshold : float, default 1
        Smallest relevant grade.

    Notes
    -----
    (1 − p) Σ p^(position − 1) over the relevant items. The perfect order of finitely many items stays below 1.

    Examples
    --------
    >>> round(rbp([3, 2, 1], [1, 0, 1], persistence=0.5), 3)
    0.625
    """
    if not 0 <= persistence < 1:
        raise SettingError(f"persistence must be at least 0 and below 1, got {persistence!r}.")
    estimate, relevant = _relevant(scores, truth, threshold)
    reached = persistence ** np.arange(len(estimate), dtype=np.float64)
    return float((1 - persistence) * mean_over_ties(reached, estimate)[relevant].sum())


def _relevant(scores: npt.ArrayLike, truth: npt.ArrayLike, threshold: float) -> tuple[FloatArray, BoolArray]:
    estimate, grades = check_pair(scores, truth)
    return estimate, grades >= threshold


def _gains(grades: FloatArray, gain: Gain) -> FloatArray:
    if (bad := np.flatnonzero((grades < 0) | np.isinf(grades))).size:
        raise DataError(f"Row {int(bad[0]) + 1}: NDCG needs finite grades that are not negative, got {grades[bad[0]]}.")
    if gain == "linear":
        return grades
    # 2^y − 1, divided by the largest 2^y: the ratio is the same, and a grade of 2,000 does not overflow.
    scaled: FloatArray = -np.expm1(-grades * np.log(2)) * np.exp2(grades - grades.max())
    return scaled


def _check_name(setting: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise SettingError(f"{setting} must be one of {', '.join(map(repr, known))}, got {value!r}.")
