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

    Halves are made of annotators if there are several, else of judgments. NaN if a half cannot rank all items.
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
        if any(not len(half) or not half.n_judgments_per_item.all() for half in halves):
            return float("nan")
        try:
            with muted_warnings(CrowdrankWarning):
                one, other = (model.fit(half).scores for half in halves)
        except (DisconnectedError, SeparationError):  # a model without prior has no finite scores for a half
            return float("nan")
        r = 0.0 if not (np.ptp(one) and np.ptp(other)) else float(np.corrcoef(one, other)[0, 1])
        found.append(2 * r / (1 + r) if r > -1 else -1.0)
    return float(np.mean(found))


def krippendorff_alpha(judgments: Judgments) -> float:
    """Return Krippendorff's α: 1 − observed / expected disagreement; NaN if nothing was judged twice.

    Comparisons are nominal (first, tie or second item of a pair), ratings are interval data.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a", "b", "b"], ["b", "b", "c", "c"], ["a", "a", "b", "c"])
    >>> round(krippendorff_alpha(votes), 3)
    0.0
    """
    if isinstance(judgments, Comparisons):
        low, high = np.minimum(judgments.left, judgments.right), np.maximum(judgments.left, judgments.right)
        unit = low.astype(np.int64) * len(judgments.items) + high
        value = np.where(judgments.left == low, judgments.outcome, -judgments.outcome).astype(np.float64)
        return _alpha(unit, value, nominal=True)
    if isinstance(judgments, Ratings):
        return _alpha(judgments.item.astype(np.int64), judgments.grade, nominal=False)
    raise DataError("Krippendorff's alpha is computed for comparisons and ratings, not for lists.")


def _alpha(unit: IntArray, value: FloatArray, nominal: bool) -> float:
    _, unit, counts = np.unique(unit, return_inverse=True, return_counts=True)
    kept = counts[unit] > 1
    if not kept.any():
        return float("nan")
    _, unit = np.unique(unit[kept], return_inverse=True)
    kinds, value_code = np.unique(value[kept], return_inverse=True)
    table = np.zeros((int(unit.max()) + 1, len(kinds)))
    np.add.at(table, (unit, value_code), 1.0)
    size = table.sum(axis=1)
    # coincidences: pairs of values of one unit, each unit weighted by 1/(m − 1)
    weighted = table / (size - 1)[:, None]
    coincidence = weighted.T @ table - np.diag(weighted.sum(axis=0))
    total = coincidence.sum(axis=1)
    expected = (np.outer(total, total) - np.diag(total)) / (total.sum() - 1)
    distance = 1.0 - np.eye(len(kinds)) if nominal else (kinds[:, None] - kinds) ** 2
    disagreement = float(np.sum(expected * distance))
    return 1.0 if disagreement == 0 else 1.0 - float(np.sum(coincidence * distance)) / disagreement


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
