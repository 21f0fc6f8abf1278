"""Metrics for grades of relevance: NDCG, precision, average precision, rank-biased precision.

Every function takes `scores` and `truth` of the same items, larger is better. If scores are tied, the value is the mean
over all orders of the tied items, so the order of the items does not matter. Items whose grade is at least `threshold`
are relevant.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.errors import DataError, SettingError
from crowdrank.evaluation.rank_correlation import check_k, check_pair, mean_over_ties, tie_groups, top_k_probability

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
