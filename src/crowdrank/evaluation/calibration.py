"""Whether a model is as sure as it should be: chances given to judgments held out, beside what came of them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data import TIE, Comparisons
from crowdrank.errors import CrowdrankWarning, SettingError
from crowdrank.evaluation.annotator_tests import wilson
from crowdrank.models import name_of
from crowdrank.models.cross_validation import assign_folds


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Decided judgments that were foretold, a row each: the chance given to the favourite, and whether it won."""

    chance: FloatArray
    """Of the likelier of the two answers, so at least one half."""
    right: FloatArray
    """1 where the favourite won, 0 where it lost, ½ where there was none."""

    def __repr__(self) -> str:
        return f"<Calibration on {len(self):,} judgments: {self.foretold:.3f} foretold, {self.observed:.3f} observed>"

    def __len__(self) -> int:
        return len(self.chance)

    @property
    def foretold(self) -> float:
        """How often the favourite was expected to win."""
        return float(np.mean(self.chance))

    @property
    def observed(self) -> float:
        """How often it did."""
        return float(np.mean(self.right))

    @property
    def std_error(self) -> float:
        """Of `observed`, were the chances true."""
        return float(np.sqrt(np.sum(self.chance * (1.0 - self.chance))) / len(self))

    def frame(self, bins: int = 10) -> pl.DataFrame:
        """Judgments of like chance together, from one half to one: foretold and observed shares, with 95 % intervals.

        Bins that nothing fell into are left out.
        """
        place = np.minimum(((self.chance - 0.5) * 2 * bins).astype(np.int64), bins - 1)
        count = np.bincount(place, minlength=bins)
        seen = np.flatnonzero(count)
        won, foretold = (np.bincount(place, column, bins)[seen] for column in (self.right, self.chance))
        low, high = wilson(won, count[seen])
        columns = {
            "from": 0.5 + seen / (2 * bins),
            "to": 0.5 + (seen + 1) / (2 * bins),
            "judgments": count[seen],
            "foretold": foretold / count[seen],
            "observed": won / count[seen],
            "low": low,
            "high": high,
        }
        return pl.DataFrame(columns)


def calibration(model: Any, comparisons: Comparisons, *, folds: int = 3, parts: int = 0, seed: int = 0) -> Calibration:
    """Each of the folds in turn is foretold by the model fitted to the others; with `parts`, only so many of them."""
    if not hasattr(model, "predict"):
        raise SettingError(f"{name_of(model)} gives an order, not chances: it cannot foretell judgments.")
    fold = assign_folds(comparisons, folds, "judgment", np.random.default_rng(seed))
    found = [_foretell(model, comparisons, fold == n) for n in range(parts or folds)]
    chance, right = (np.concatenate(columns) for columns in zip(*found, strict=True))
    if not len(chance):
        raise SettingError("Every judgment is a tie: there is nothing to foretell.")
    return Calibration(chance, right)


def _foretell(model: Any, comparisons: Comparisons, unseen: BoolArray) -> tuple[FloatArray, FloatArray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdrankWarning)
        ranking = model.fit(comparisons.take(np.flatnonzero(~unseen)))
    asked = comparisons.take(np.flatnonzero(unseen & (comparisons.outcome != TIE)))
    chances = model.predict(ranking, asked)
    left = chances[:, 0] / (chances[:, 0] + chances[:, 2])
    even = left == 0.5
    right = (left > 0.5) == (asked.outcome > 0)
    return np.maximum(left, 1.0 - left), np.where(even, 0.5, right)
