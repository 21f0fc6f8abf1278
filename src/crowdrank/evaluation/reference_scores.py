"""Scores to test an annotator against: fitted to other annotators, of whom none weighs more than a small share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.data import Comparisons
from crowdrank.errors import muted_warnings
from crowdrank.models.base import Model
from crowdrank.models.camps import Camps

_MIN_ANNOTATORS = 3
"""Smallest crowd that others are tested against."""
_MAX_SHARE = 0.1
"""Largest share of the weight that one annotator has in the scores; more only if there are few annotators."""
_MAX_SHARE_OF_FEW = 1.5
"""The same in small crowds, as a multiple of an equal share."""
_MAX_INFORMATION = 25.0
"""In averages over annotators, nobody counts as more than this number of answers."""
_BINS = 64


@dataclass(frozen=True)
class References:
    """What the scores of others predict for each comparison.

    Parameters
    ----------
    expected : array of float
        Mean of an answer that is 1 (left) or −1 (right), by the scores of other annotators of the same camp; 0 where
        they predict nothing.
    larger, smaller : array of float
        The same by the scores of the larger and of the smaller camp; `smaller` is 0 in a crowd without camps.
    """

    expected: FloatArray
    larger: FloatArray
    smaller: FloatArray


def cross_fit_references(
    comparisons: Comparisons, model: Model, folds: int, camps: Camps | None, rng: np.random.Generator
) -> References:
    """Predict the answers of each fold of annotators from scores that were fitted to all other annotators.

    The scale of the scores is then fitted to the answers, with a common slope: a model may be too sure of its scores.

    Only the sign of the scores is decided by everyone together: with many reversed annotators it could otherwise depend
    on who was held out. If a single annotator decides the sign, nothing is predicted for anyone.
    """
    assert comparisons.annotator is not None
    present, annotator = np.unique(comparisons.annotator, return_inverse=True)
    nothing = np.zeros(len(comparisons))
    if len(present) < _MIN_ANNOTATORS:
        return References(nothing, nothing, nothing)
    fold = rng.permutation(np.arange(len(present)) % min(folds, len(present)))[annotator]
    if camps is None:
        margin = _cross_fit(comparisons, model, fold, np.ones(len(comparisons), bool))
        expected = _calibrated(margin, comparisons)
        return References(expected, expected, nothing)
    camp = camps.camp[comparisons.annotator]
    larger, smaller = (
        _calibrated(_cross_fit(comparisons, model, fold, camp == n), comparisons, camp == n) for n in (1, 2)
    )
    # Whoever belongs to neither camp is tested against the one that explains more, be it in reverse.
    of_smaller = np.abs(_agreement(comparisons, smaller)) > np.abs(_agreement(comparisons, larger))
    own = np.where(camp == 0, of_smaller[comparisons.annotator], camp == 2)
    return References(np.where(own, smaller, larger), larger, smaller)


def _agreement(comparisons: Comparisons, expected: FloatArray) -> FloatArray:
    assert comparisons.annotator is not None
    n = len(comparisons.annotators)
    total = np.bincount(comparisons.annotator, comparisons.outcome * expected, n)
    return np.asarray(total / np.sqrt(np.bincount(comparisons.annotator, expected**2, n) + 1e-9))


def _cross_fit(comparisons: Comparisons, model: Model, fold: IntArray, used: BoolArray) -> FloatArray:
    """Difference of the scores of left and right for each comparison; 0 where the other annotators judged neither."""
    margin = np.zeros(len(comparisons))
    crowd = comparisons.take(np.flatnonzero(used))
    overall = _margins(_fit_scores(model, crowd), comparisons, crowd)
    if not _has_clear_majority(crowd, overall[used]):
        return margin
    for n in np.unique(fold):
        test, train = np.flatnonzero(fold == n), np.flatnonzero((fold != n) & used)
        if not len(train):
            continue
        held_out, others = comparisons.take(test), comparisons.take(train)
        scores = _fit_scores(model, others)
        sign = np.sign(np.tanh(_margins(scores, others, others)) @ np.tanh(overall[train]))
        margin[test] = sign * _margins(scores, held_out, others)
    return margin


def _margins(scores: FloatArray, asked: Comparisons, fitted: Comparisons) -> FloatArray:
    known = fitted.n_judgments_per_item > 0
    return np.where(known[asked.left] & known[asked.right], scores[asked.left] - scores[asked.right], 0.0)


def _fit_scores(model: Model, comparisons: Comparisons) -> FloatArray:
    with muted_warnings():
        return np.asarray(model.fit(_cap_weights(comparisons)).scores)


def _cap_weights(comparisons: Comparisons) -> Comparisons:
    """Weigh down annotators with most answers, so that none becomes the reference for all others."""
    assert comparisons.annotator is not None
    total = np.bincount(comparisons.annotator, comparisons.weights, len(comparisons.annotators))
    share = max(_MAX_SHARE, _MAX_SHARE_OF_FEW / np.count_nonzero(total))
    limit = share * total.sum()
    for _ in range(100):  # the limit is a share of what is left after capping
        limit = share * np.minimum(total, limit).sum()
    if share >= 1 or total.max() <= limit * (1 + 1e-6):
        return comparisons
    factor = np.minimum(1.0, limit / np.maximum(total, limit * 1e-9))
    return comparisons.reweighted(comparisons.weights * factor[comparisons.annotator])


def _has_clear_majority(comparisons: Comparisons, margin: FloatArray) -> bool:
    """Whether more annotators agree with the scores than contradict them, even without any one of them."""
    assert comparisons.annotator is not None
    return bool(np.sum(np.sign(np.bincount(comparisons.annotator, comparisons.outcome * np.tanh(margin / 2)))) >= 2)


def _calibrated(margin: FloatArray, comparisons: Comparisons, used: BoolArray | None = None) -> FloatArray:
    """Expected answers tanh(β·margin/2), β the most probable one if answers have the mean c·tanh(β·margin/2)."""
    assert comparisons.annotator is not None
    rows = np.flatnonzero((comparisons.outcome != 0) & (margin != 0) & (True if used is None else used))
    if not len(rows):
        return margin
    size, who = np.abs(margin[rows]), comparisons.annotator[rows]
    weight = (1 / np.maximum(1.0, np.bincount(who) / _MAX_INFORMATION))[who]
    edges = np.quantile(size, np.linspace(0, 1, _BINS + 1)[1:-1])
    bin_of = np.searchsorted(edges, size)
    total = np.bincount(bin_of, weight, _BINS)
    agreed = np.bincount(bin_of, weight * (comparisons.outcome[rows] * margin[rows] > 0), _BINS)
    middle = np.bincount(bin_of, weight * size, _BINS) / np.maximum(total, 1e-12)
    scale = np.geomspace(0.05, 3, 42)[:, None, None]
    mean = np.linspace(0.05, 0.98, 32)[:, None] * np.tanh(scale * middle / 2)
    value = (agreed * np.log1p(mean) + (total - agreed) * np.log1p(-mean)).sum(axis=2)
    best = float(scale.ravel()[np.unravel_index(np.argmax(value), value.shape)[0]])
    return np.asarray(np.tanh(best * margin / 2))
