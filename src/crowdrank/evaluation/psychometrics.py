"""Reliability as psychometricians report it: scale separation, split halves, misfit of judges and items, agreement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray, IntArray
from crowdrank.data import Comparisons, Judgments, Ratings
from crowdrank.errors import CrowdrankWarning, DataError, DisconnectedError, SeparationError, muted_warnings
from crowdrank.models.base import Model
from crowdrank.results import Ranking

OUTCOME_DISTANCE = 1.0 - np.eye(3)
"""Right, tie and left are nominal: any two are equally far apart."""
# Share of the items that both halves must have judged.
_SHARE_IN_BOTH = 0.5
_SPLITS = 10
_SMALLEST_VARIANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """Reliability of a ranking from comparisons.

    Parameters
    ----------
    scale_separation : float
        Share of the variance of the scores that is not error: 1 is perfect, 0 is chance.
    split_half : float
        Correlation of the scores from two halves of the judgments, stepped up to the full length by Spearman and Brown.
    alpha : float
        Krippendorff's α of the answers: agreement beyond chance; NaN if no pair was judged twice.
    items, judges : polars.DataFrame
        Infit and outfit of each item and each judge; 1 is expected, larger values are misfit. `judges` is empty if the
        judgments do not name them.
    """

    scale_separation: float
    split_half: float
    alpha: float
    items: pl.DataFrame
    judges: pl.DataFrame

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as a dictionary; NaN becomes None."""
        numbers = {name: getattr(self, name) for name in ("scale_separation", "split_half", "alpha")}
        return {name: None if np.isnan(value) else value for name, value in numbers.items()} | {
            "items": self.items.to_dicts(),
            "judges": self.judges.to_dicts(),
        }


def reliability(model: Model, comparisons: Comparisons, ranking: Ranking, *, seed: int = 0) -> Reliability:
    """Compute the reliability of a ranking.

    Parameters
    ----------
    model : Model
        The model behind the ranking; it must predict the outcome of comparisons.
    comparisons : Comparisons
        The judgments that it was fitted to.
    ranking : Ranking
        The fitted ranking, of a single query.
    seed : int, default 0
        Seed of the split halves.

    Examples
    --------
    >>> from crowdrank import BradleyTerry
    >>> from crowdrank.simulation import crowd_bt
    >>> votes = crowd_bt(items=10, annotators=6, pairs=45, votes=6, labels="logistic").judgments
    >>> found = reliability(BradleyTerry(), votes, BradleyTerry().fit(votes))
    >>> 0.5 < found.split_half < found.scale_separation + 0.3 < 1.3
    True
    """
    if len(ranking.items.queries) > 1:
        raise DataError("Reliability is computed for one ranking, but these judgments have several queries.")
    residual, variance = _residuals(model, comparisons, ranking)
    both = np.concatenate((comparisons.left, comparisons.right))
    twice = np.tile(residual, 2), np.tile(variance, 2), np.tile(comparisons.weights, 2)
    judges = pl.DataFrame()
    if comparisons.annotator is not None:
        own = residual, variance, comparisons.weights
        judges = _misfit("judge", comparisons.annotators, comparisons.annotator, *own)
    return Reliability(
        scale_separation=scale_separation(ranking),
        split_half=split_half(model, comparisons, seed=seed),
        alpha=krippendorff_alpha(comparisons),
        items=_misfit("item", ranking.items.labels, both, *twice),
        judges=judges,
    )


def scale_separation(ranking: Ranking) -> float:
    """Return the scale separation reliability: the share of the variance of true scores in that of the scores.

    Without a prior the variance of the scores is that of the true scores plus error: (V − MSE) / V with MSE the mean
    squared standard error (Andrich 1978). Scores under a prior are shrunk, and their variance lacks what remains
    unknown: V / (V + MSE).
    """
    variance, error = float(np.var(ranking.scores)), float(np.mean(ranking.uncertainty.std_error**2))
    if ranking.settings.get("prior_scale", "") is None:
        return max(0.0, 1.0 - error / variance) if variance else 0.0
    return variance / (variance + error)


def split_half(model: Model, comparisons: Comparisons, *, splits: int = _SPLITS, seed: int = 0) -> float:
    """Return the mean correlation of the scores of two random halves, stepped up by Spearman and Brown: 2r/(1 + r).

    Halves are made of annotators if there are several, else of judgments. Items that only one half judged are left out
    of its correlation. NaN if these are more than half of the items, or if a half has no finite scores.
    """
    rng = np.random.default_rng(seed)
    by_annotator = comparisons.annotator is not None and len(comparisons.annotators) > 1
    unit = comparisons.annotator if by_annotator else np.arange(len(comparisons))
    units = int(np.max(unit)) + 1  # type: ignore[arg-type]
    found = []
    for _ in range(splits):
        in_first = np.zeros(units, bool)
        in_first[rng.permutation(units)[: units // 2]] = True
        halves = [comparisons.take(np.flatnonzero(in_first[unit] == side)) for side in (True, False)]
        in_both = np.logical_and(*(half.n_judgments_per_item > 0 for half in halves))
        if in_both.sum() < max(3, _SHARE_IN_BOTH * len(in_both)):
            return float("nan")
        try:
            with muted_warnings(CrowdrankWarning):
                one, other = (model.fit(half).scores[in_both] for half in halves)
        except (DisconnectedError, SeparationError):  # a model without prior has no finite scores for a half
            return float("nan")
        r = 0.0 if not (np.ptp(one) and np.ptp(other)) else float(np.corrcoef(one, other)[0, 1])
        found.append(2 * r / (1 + r) if r > -1 else -1.0)
    return float(np.mean(found))


def krippendorff_alpha(judgments: Judgments) -> float:
    """Return Krippendorff's α: 1 − observed / expected disagreement; NaN if nothing was judged twice.

    Comparisons are nominal (first, tie or second item of a pair), ratings are interval data. Which item of a pair is
    the first is arbitrary, so both are equally frequent by chance.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b", "b"], ["b", "b", "c", "c"], ["a", "a", "b", "c"])
    >>> krippendorff_alpha(votes)
    0.25
    """
    if isinstance(judgments, Comparisons):
        low, high = np.minimum(judgments.left, judgments.right), np.maximum(judgments.left, judgments.right)
        unit = low.astype(np.int64) * len(judgments.items) + high
        value = np.where(judgments.left == low, judgments.outcome, -judgments.outcome) + 1
        return float(alpha_of_counts(_count_values(unit, value, 3), OUTCOME_DISTANCE, symmetric=True)[0])
    if isinstance(judgments, Ratings):
        grades, value = np.unique(judgments.grade, return_inverse=True)
        counts = _count_values(judgments.item.astype(np.int64), value, len(grades))
        return float(alpha_of_counts(counts, (grades[:, None] - grades) ** 2)[0])
    raise DataError("Krippendorff's alpha is computed for comparisons and ratings, not for lists.")


def alpha_of_counts(
    counts: FloatArray, distance: FloatArray, weight: FloatArray | None = None, *, symmetric: bool = False
) -> FloatArray:
    """Return Krippendorff's α from the number of answers of each value, for each row of weights.

    Parameters
    ----------
    counts : array, shape (units, values)
        How often each unit was given each value.
    distance : array, shape (values, values)
        Disagreement between two values.
    weight : array, shape (draws, units), optional
        Weights of the units.
    symmetric : bool, default False
        Whether the values in reverse order are as frequent by chance.

    Returns
    -------
    array, shape (draws,)
        1 for perfect agreement, 0 for chance; NaN if no unit has two answers.

    Examples
    --------
    >>> alpha_of_counts(np.array([[2.0, 0, 0], [0, 0, 2.0]]), OUTCOME_DISTANCE)
    array([1.])
    """
    size = counts.sum(axis=1)
    paired = size > 1
    counts, size = counts[paired], size[paired]
    of_units = np.ones((1, len(size))) if weight is None else weight[:, paired]
    # Pairs of values of one unit, each unit weighted by 1/(m − 1). A value is at distance 0 from itself.
    observed = of_units @ (np.sum((counts @ distance) * counts, axis=1) / (size - 1))
    total = of_units @ counts
    if symmetric:
        total = (total + total[:, ::-1]) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.sum((total @ distance) * total, axis=1) / (total.sum(axis=1) - 1)
        agreed = (observed == 0) & (total.sum(axis=1) > 0)
        return np.where(agreed, 1.0, 1 - observed / expected)


def _count_values(unit: IntArray, value: IntArray, n_values: int) -> FloatArray:
    units, code = np.unique(unit, return_inverse=True)
    counts = np.bincount(code * n_values + value, minlength=len(units) * n_values)
    return np.asarray(counts.reshape(len(units), n_values), np.float64)


def _residuals(model: Model, comparisons: Comparisons, ranking: Ranking) -> tuple[FloatArray, FloatArray]:
    """Residual of each answer (1 left, ½ tie, 0 right) and the variance that the model expects."""
    predict = getattr(model, "predict", None)
    if predict is None:
        raise DataError("Misfit needs a model that predicts answers, such as bradley-terry or crowd-bt.")
    left, tie, _ = predict(ranking, comparisons).T
    expected = left + 0.5 * tie
    variance = left + 0.25 * tie - expected**2
    return 0.5 + 0.5 * comparisons.outcome - expected, np.maximum(variance, _SMALLEST_VARIANCE)


def _misfit(
    kind: str, labels: AnyArray, code: AnyArray, residual: FloatArray, variance: FloatArray, weight: FloatArray
) -> pl.DataFrame:
    """Infit and outfit of each item or judge, largest infit first."""
    size = len(labels)
    count = np.bincount(code, weight, size)
    seen = count > 0
    infit = np.bincount(code, weight * residual**2, size)[seen] / np.bincount(code, weight * variance, size)[seen]
    outfit = np.bincount(code, weight * residual**2 / variance, size)[seen] / count[seen]
    columns = {kind: labels[seen].tolist(), "infit": infit, "outfit": outfit, "judgments": np.rint(count[seen])}
    return pl.DataFrame(columns).with_columns(pl.col("judgments").cast(pl.Int64)).sort("infit", descending=True)
