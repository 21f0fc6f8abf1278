"""How well a model foretells judgments it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crowdrank.errors import SettingError
from crowdrank.judgments import Comparisons
from crowdrank.models import name_of
from crowdrank.results import Ranking

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class HeldOut:
    """Mean log chance given to each held-out judgment, in nats; nearer 0 is better."""

    mean: float
    std_error: float
    judgments: int
    folds: int


def log_chances(
    model: Any, ranking: Ranking, comparisons: Comparisons, ties: Literal["drop", "keep"] = "drop"
) -> Vector:
    """Log of the chance the model gave to each answer.

    With ties dropped, to each decided answer given that it was decided: models with and without room for ties
    then compare like with like.
    """
    chances = model.predict(ranking, comparisons)
    rows = np.arange(len(comparisons))
    if ties == "drop":
        rows = np.flatnonzero(comparisons.outcome != 0)
        chances = chances / (1.0 - chances[:, 1:2])
    return np.asarray(np.log(chances[rows, 1 - comparisons.outcome[rows]]))


def held_out(
    model: Any,
    comparisons: Comparisons,
    *,
    folds: int = 5,
    by: Literal["judgment", "annotator"] = "judgment",
    ties: Literal["drop", "keep"] = "drop",
    seed: int = 0,
) -> HeldOut:
    """Cross-validated log-likelihood, whole judgments or whole annotators held out in turn."""
    if not hasattr(model, "predict"):
        raise SettingError(f"{name_of(model)} gives an order, not chances: it cannot foretell judgments.")
    fold = _folds(comparisons, folds, by, np.random.default_rng(seed))
    gained, weights = [], []
    for n in range(folds):
        unseen = comparisons.take(np.flatnonzero(fold == n))
        ranking = model.fit(comparisons.take(np.flatnonzero(fold != n)))
        gained.append(log_chances(model, ranking, unseen, ties))
        weights.append(unseen.weights[unseen.outcome != 0] if ties == "drop" else unseen.weights)
    value, weight = np.concatenate(gained), np.concatenate(weights)
    mean = float(np.average(value, weights=weight))
    spread = np.average((value - mean) ** 2, weights=weight) * np.sum(weight**2) / np.sum(weight) ** 2
    return HeldOut(mean, float(np.sqrt(spread)), len(value), folds)


def _folds(comparisons: Comparisons, folds: int, by: str, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """The fold of each row, as even as can be."""
    of_row: npt.NDArray[Any]
    if by == "judgment":
        units, of_row = len(comparisons), np.arange(len(comparisons))
    elif by == "annotator" and comparisons.annotator is not None:
        units, of_row = len(comparisons.annotators), comparisons.annotator
    else:
        raise SettingError('by must be "judgment", or "annotator" where annotators are known.')
    if not 2 <= folds <= units:
        raise SettingError(f"folds must lie between 2 and the number of {by}s ({units}), got {folds}.")
    return np.asarray(rng.permutation(np.arange(units) % folds)[of_row])
