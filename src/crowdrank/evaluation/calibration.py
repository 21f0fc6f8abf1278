"""Calibration: predicted probabilities of held-out judgments compared with their outcomes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data import TIE, Comparisons
from crowdrank.errors import CrowdrankWarning, DataError
from crowdrank.evaluation.cross_validation import require_predictions
from crowdrank.evaluation.estimates import wilson_interval
from crowdrank.models.cross_validation import assign_folds
from crowdrank.results.frames import as_native


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Predictions of decided judgments, one row each.

    Parameters
    ----------
    confidence : array of float
        Predicted probability of the more probable answer, at least one half.
    correct : array of float
        1 where that answer was given, 0 where the other was, ½ where both were equally probable.
    native : str, default "polars"
        Data frame library of `frame`.
    """

    confidence: FloatArray
    correct: FloatArray
    native: str = "polars"

    def __repr__(self) -> str:
        return f"<Calibration on {len(self):,} judgments: {self.predicted:.3f} predicted, {self.observed:.3f} observed>"

    def __len__(self) -> int:
        return len(self.confidence)

    @property
    def predicted(self) -> float:
        """Mean confidence: the predicted fraction of correct predictions."""
        return float(np.mean(self.confidence))

    @property
    def observed(self) -> float:
        """Fraction of correct predictions."""
        return float(np.mean(self.correct))

    @property
    def std_error(self) -> float:
        """Standard error of `observed` if the probabilities are true."""
        return float(np.sqrt(np.sum(self.confidence * (1.0 - self.confidence))) / len(self))

    def to_polars(self, bins: int = 10) -> pl.DataFrame:
        """Return `frame` as a polars data frame."""
        n = np.minimum(((self.confidence - 0.5) * 2 * bins).astype(np.int64), bins - 1)
        count = np.bincount(n, minlength=bins)
        used = np.flatnonzero(count)
        correct, predicted = (np.bincount(n, column, bins)[used] for column in (self.correct, self.confidence))
        low, high = wilson_interval(correct, count[used])
        columns = {
            "from": 0.5 + used / (2 * bins),
            "to": 0.5 + (used + 1) / (2 * bins),
            "judgments": count[used],
            "predicted": predicted / count[used],
            "observed": correct / count[used],
            "low": low,
            "high": high,
        }
        return pl.DataFrame(columns)

    def frame(self, bins: int = 10) -> Any:
        """Return one row per bin of confidence: predicted and observed fractions, with 95 % intervals.

        Parameters
        ----------
        bins : int, default 10
            Number of bins between one half and one; empty bins are left out.
        """
        return as_native(self.to_polars(bins), self.native)


def calibration(
    model: Any, comparisons: Comparisons, *, folds: int = 3, max_folds: int = 0, seed: int = 0
) -> Calibration:
    """Predict each fold by the model fitted to the other folds.

    Parameters
    ----------
    model : Model
        A model with `predict`.
    comparisons : Comparisons
        The judgments.
    folds : int, default 3
        Number of folds.
    max_folds : int, default 0
        Predict only so many of the folds, to save time; 0 for all.
    seed : int, default 0
        Seed of the folds.

    Returns
    -------
    Calibration
        The predictions with their outcomes.
    """
    require_predictions(model)
    fold = assign_folds(comparisons, folds, "judgment", np.random.default_rng(seed))
    found = [_predict(model, comparisons, fold == n) for n in range(max_folds or folds)]
    confidence, correct = (np.concatenate(columns) for columns in zip(*found, strict=True))
    if not len(confidence):
        raise DataError("Calibration needs decided judgments, but every judgment is a tie.")
    return Calibration(confidence, correct, comparisons.native)


def _predict(model: Any, comparisons: Comparisons, held_out: BoolArray) -> tuple[FloatArray, FloatArray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdrankWarning)
        ranking = model.fit(comparisons.take(np.flatnonzero(~held_out)))
    test = comparisons.take(np.flatnonzero(held_out & (comparisons.outcome != TIE)))
    probability = model.predict(ranking, test)
    left = probability[:, 0] / (probability[:, 0] + probability[:, 2])
    correct = (left > 0.5) == (test.outcome > 0)
    return np.maximum(left, 1.0 - left), np.where(left == 0.5, 0.5, correct)
