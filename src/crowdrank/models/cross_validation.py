"""Cross-validation: folds, held-out log probabilities, and settings chosen by them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, IntArray
from crowdrank.data import Comparisons
from crowdrank.errors import SettingError, muted_warnings
from crowdrank.models.base import FitOptions, is_auto
from crowdrank.results import Ranking


def log_probabilities(
    model: Any, ranking: Ranking, comparisons: Comparisons, ties: Literal["drop", "keep"] = "drop"
) -> FloatArray:
    """Log probability that the model gives to each answer.

    With ties dropped, it is the probability of each decided answer given that it was decided, so that models with and
    without ties can be compared.
    """
    probabilities = model.predict(ranking, comparisons)
    rows = np.arange(len(comparisons))
    if ties == "drop":
        rows = np.flatnonzero(comparisons.outcome != 0)
        probabilities = probabilities / (1.0 - probabilities[:, 1:2])
    return np.asarray(np.log(probabilities[rows, 1 - comparisons.outcome[rows]]))


def assign_folds(
    comparisons: Comparisons, folds: int, by: Literal["judgment", "annotator"], rng: np.random.Generator
) -> IntArray:
    """The fold of each row, of nearly equal size; by judgment, or by whole annotator."""
    of_row: AnyArray
    if by == "judgment":
        units, of_row = len(comparisons), np.arange(len(comparisons))
    elif by == "annotator" and comparisons.annotator is not None:
        units, of_row = len(comparisons.annotators), comparisons.annotator
    else:
        raise SettingError('by must be "judgment", or "annotator" where annotators are known.')
    if not 2 <= folds <= units:
        raise SettingError(f"folds must lie between 2 and the number of {by}s ({units}), got {folds}.")
    return np.asarray(rng.permutation(np.arange(units) % folds)[of_row])


CANDIDATES: dict[str, tuple[Any, ...]] = {
    "virtual_weight": (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0),
    "prior_scale": (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0),
    "quality_prior": ((1.0, 1.0), (2.0, 1.0), (3.0, 0.5), (4.0, 2.0), (8.0, 1.0), (16.0, 2.0)),
}
_FIRST = {"virtual_weight": 0.5, "prior_scale": 3.0, "quality_prior": (3.0, 0.5)}
_FOLDS = 5
# With more judgments than this, one fold is enough.
_MANY = 100_000


def tune_settings(model: Any, comparisons: Comparisons, options: FitOptions) -> Any:
    """The model with every setting that is "auto" chosen by cross-validation, one after another."""
    names = [field.name for field in fields(model) if is_auto(getattr(model, field.name))]
    best = replace(model, **{name: _FIRST[name] for name in names})
    if not names or len(comparisons) < _FOLDS:
        return best
    fold = assign_folds(comparisons, _FOLDS, "judgment", np.random.default_rng(model.seed))
    for name in names:
        candidates = _candidates(best, name)
        gained = [_held_out_log_likelihood(candidate, comparisons, fold, options) for candidate in candidates]
        best = candidates[int(np.argmax(gained))]
    return best


def _candidates(model: Any, name: str) -> list[Any]:
    """Candidate values of a setting. Without a virtual item only if there is a prior on the scores."""
    none = (0.0,) if name == "virtual_weight" and model.prior_scale is not None else ()
    return [replace(model, **{name: value}) for value in none + CANDIDATES[name]]


def _held_out_log_likelihood(model: Any, comparisons: Comparisons, fold: Any, options: FitOptions) -> float:
    """Total log-likelihood of the held-out judgments."""
    total = 0.0
    for n in range(1 if len(comparisons) > _MANY else _FOLDS):
        held_out = comparisons.take(np.flatnonzero(fold == n))
        with muted_warnings():  # the final fit repeats them
            ranking = model._fit(comparisons.take(np.flatnonzero(fold != n)), options)
        total += float(held_out.weights[held_out.outcome != 0] @ log_probabilities(model, ranking, held_out))
    return total
