"""How good the top of an estimated order is, where the truth is a grade of relevance: NDCG, precision, AP, RBP.

Every function takes `scores` and `truth` over the same items, larger is better. Where scores are tied, the value is
the mean over all ways to break the ties, so the order in which items are given never matters. For the functions with
a `threshold`, an item is relevant when its true grade is at least that.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.errors import DataError, SettingError
from crowdrank.evaluation.rank_correlation import chance_of_top, check_k, check_pair, mean_over_ties, tie_groups

Gain = Literal["exponential", "linear"]
Normaliser = Literal["k", "all"]


def ndcg(
    scores: npt.ArrayLike,
    truth: npt.ArrayLike,
    k: int | None = None,
    gain: Gain = "exponential",
    normaliser: Normaliser = "k",
) -> float:
    """Discounted gain of the first k items (all where k is None) over the best that could be had.

    `gain` is 2^grade - 1 ("exponential", usual, and CrowdAgg §2.3) or the grade itself ("linear"); the discount is
    1 / log(1 + place). `normaliser` is the best gain of the first k places ("k", usual), or of all places as CrowdAgg
    eq. 2 is printed ("all"), with which even the perfect order stays below 1. A k beyond the number of items means
    all. nan where no item has a grade above zero.

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
    most = best.sum() if normaliser == "all" else best[:depth].sum()
    discount[depth:] = 0
    return float(gains @ mean_over_ties(discount, estimate) / most) if most > 0 else np.nan


def precision_at(scores: npt.ArrayLike, truth: npt.ArrayLike, k: int, threshold: float = 1) -> float:
    """CrowdAgg eq. 3: relevant items among the first k, over k (also where there are fewer than k items).

    >>> precision_at([4, 3, 2, 1], [2, 0, 1, 0], k=2)
    0.5
    """
    estimate, relevant = _relevant(scores, truth, threshold)
    return float(chance_of_top(check_k(k), estimate)[relevant].sum() / k)


def average_precision(scores: npt.ArrayLike, truth: npt.ArrayLike, threshold: float = 1) -> float:
    """The mean, over the relevant items, of the precision at their places; nan where nothing is relevant.

    Its mean over queries is MAP.

    >>> average_precision([4, 3, 2, 1], [1, 0, 0, 1])
    0.75
    """
    estimate, relevant = _relevant(scores, truth, threshold)
    if not relevant.any():
        return np.nan
    order, starts, sizes = tie_groups(estimate)
    hits = np.add.reduceat(relevant[order].astype(np.float64), starts)
    place = np.arange(len(order))
    # Given a relevant item at one place of a tie, each other place of it holds one of the hits - 1 that remain.
    chance_of_another = (hits - 1) / np.maximum(sizes - 1, 1)
    tied_before = (place - np.repeat(starts, sizes)) * np.repeat(chance_of_another, sizes)
    found = np.repeat(np.cumsum(hits) - hits, sizes) + tied_before + 1
    chance = np.repeat(hits / sizes, sizes)
    return float((chance * found / (place + 1)).sum() / np.count_nonzero(relevant))


def rbp(scores: npt.ArrayLike, truth: npt.ArrayLike, persistence: float = 0.8, threshold: float = 1) -> float:
    """Rank-biased precision (CrowdAgg eq. 4): what a reader finds who goes on to each next place with `persistence`.

    The perfect order of finitely many items stays below 1. CrowdAgg's tables use a persistence of 0.95.

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
        raise DataError(
            f"Row {int(bad[0]) + 1}: NDCG needs grades that are finite and not negative, got {grades[bad[0]]}."
        )
    if gain == "linear":
        return grades
    # 2^y - 1, all divided by the largest 2^y: the ratio is the same, and a grade of 2,000 does not overflow.
    scaled: FloatArray = -np.expm1(-grades * np.log(2)) * np.exp2(grades - grades.max())
    return scaled


def _check_name(setting: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise SettingError(f"{setting} must be one of {', '.join(map(repr, known))}, got {value!r}.")
